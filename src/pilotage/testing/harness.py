"""A whole cluster and its scheduler in one process, under virtual time: what behaviour tests run on.

    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n1"

Laws: the test is synchronous and time stands still while it runs; time passes only inside `run_for` and
`run_until`. All clients (scheduler, services, user) go through one `Faults`, whose log has every
request. Two runs with one seed have the same log byte for byte. Leaving the `with` block without an
error checks all invariants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from pilotage.calls.types import CallType
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.localcluster.cluster import ClusterServices, ServiceSettings
from pilotage.plugins import default_registry
from pilotage.runtime.call_types_loading import AddedType
from pilotage.runtime.config import default_settings, load_settings
from pilotage.runtime.pilotage_config import CallTuning
from pilotage.runtime.scheduler import Scheduler
from pilotage.scheduling.messages import Attempt
from pilotage.scheduling.stories import StoryEntry
from pilotage.testing import builders, invariants, virtualtime
from pilotage.testing.extenders import Extender, opener
from pilotage.testing.faults import Faults
from pilotage.testing.inprocess import Server
from pilotage.testing.observing import Recorder
from pilotage.testing.podstate import PodState, state_of
from pilotage.testing.requestlog import Record
from pilotage.testing.user import User
from pilotage.testing.virtualtime import VirtualClock, VirtualLoop

T = TypeVar("T")
Tree = dict[str, Any]
MAX_SECONDS = 7 * 86_400.0


class NotReachedError(AssertionError):
    """`run_until` passed its timeout; the text says how things stood."""


class Harness(User):
    """Starts on entering (or with `start()`); ends on leaving (or with `close()`).

    `services=None` leaves kubelets and controllers out; `scheduler=False` starts none. `registry` and
    `settings` default to those of `pilotage run` without a file. Leases are off: they would fill the log.
    """

    node = staticmethod(builders.node)
    pod = staticmethod(builders.pod)
    deployment = staticmethod(builders.deployment)
    stateful_set = staticmethod(builders.stateful_set)
    disruption_budget = staticmethod(builders.disruption_budget)
    storage_class = staticmethod(builders.storage_class)
    claim = staticmethod(builders.claim)
    local_volume = staticmethod(builders.local_volume)
    uses = staticmethod(builders.uses)

    def __init__(
        self,
        *,
        seed: int = 0,
        settings: Settings | Mapping[str, Any] | None = None,
        registry: Registry | None = None,
        services: ServiceSettings | None = ServiceSettings(leases=False),  # noqa: B008  # frozen value
        scheduler: bool = True,
        history: int = 20_000,
        extenders: Mapping[str, Extender] | None = None,
        call_types: Sequence[CallType[Any]] = (),
    ) -> None:
        """`settings`: a KubeSchedulerConfiguration as a dict is read like a file. `history`: watch events
        that the server keeps before it answers 410. `extenders`: by URL prefix, who answers there.
        `call_types`: beside the built-in ones."""
        self._settings, self._registry = _configured(settings, registry)
        self.seed = seed
        self.loop = VirtualLoop(max_seconds=MAX_SECONDS)
        self.clock = VirtualClock(self.loop)
        self.faults = Faults(self.loop.time)
        self.may_overcommit = False  # set by tests that shrink a node under its pods
        self.recorder = Recorder(self.loop.time)
        self._open_poster = opener(extenders or {})
        self._tuning = CallTuning(types=tuple(AddedType(one) for one in call_types))
        self._service_settings = services
        self._wants_scheduler = scheduler
        self._is_started = False
        self._problems: list[str] = []
        self.loop.set_exception_handler(self._on_loop_problem)
        self.server = self.do(self._make_server(history))
        super().__init__(self.server, self.faults, self.do)
        self._services: ClusterServices | None = None
        self._scheduler: Scheduler | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None

    async def _make_server(self, history: int) -> Server:
        return Server(self.clock, self.seed, history)

    # -- life

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.check_invariants()
        finally:
            self.close()

    def start(self) -> Self:
        """Starts services and scheduler; once, however often it is called."""
        if self._is_started:
            return self
        self._is_started = True
        if self._service_settings is not None:
            self.do(self._start_services(self._service_settings))
        if self._wants_scheduler:
            self.start_scheduler()
        return self

    async def _start_services(self, settings: ServiceSettings) -> None:
        transport = self.server.transport(self.faults, "services")
        self._services = ClusterServices(
            transport, self.clock, settings=settings, seed=self.seed, on_problem=self.recorder.note
        )
        self._services.start()
        await self._services.wait_synced()

    def close(self) -> None:
        """Ends everything; the log and what was recorded stay readable."""
        self.loop.lift_limits()
        self.faults.clear()
        try:
            self.stop_scheduler()
            if self._services is not None:
                self.do(self._services.close())
        finally:
            virtualtime.close(self.loop)

    def start_scheduler(self) -> None:
        self.do(self._start_scheduler())

    async def _start_scheduler(self) -> None:
        assert self._running is None, "a scheduler is running already"
        self._scheduler = Scheduler(
            self.server.transport(self.faults, "scheduler"),
            self._settings,
            self._registry,
            clock=self.clock,
            seed=self.seed,
            observers=(self.recorder,),
            open_poster=self._open_poster,
            tuning=self._tuning,
        )
        self._stop = asyncio.Event()
        self._running = self.loop.create_task(self._scheduler.run(self._stop), name="scheduler")

    def stop_scheduler(self) -> None:
        """A clean shutdown, as on SIGTERM."""
        if self._running is None or self._stop is None:
            return
        self._stop.set()
        running, self._running = self._running, None
        self.do(_ended(running))

    def kill_scheduler(self) -> None:
        """As kill -9: requests under way are lost unless a fault holds them with `lands_anyway`."""
        if self._running is None or self._scheduler is None:
            return
        running, self._running = self._running, None
        self.do(_killed(running))

    def restart_scheduler(self, *, graceful: bool = False) -> None:
        """A new scheduler that knows only what the API server shows."""
        if graceful:
            self.stop_scheduler()
        else:
            self.kill_scheduler()
        self.start_scheduler()

    # -- time

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.loop.time()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end; time passes as far as it waits."""
        return self.loop.run_until_complete(work)

    def run_for(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))
        self._raise_problems()

    def run_until(self, predicate: Callable[[], object], timeout: float = 60.0) -> float:
        """Lets time pass until the predicate holds; it is asked at every instant at which nothing more
        is to be done; a LookupError (no such object or field) counts as no. Answers the virtual seconds
        that passed. Raises NotReachedError."""
        start = self.loop.time()
        timer = self.loop.call_later(timeout, lambda: None)
        question = _Question(predicate)
        self.loop.stop_when = lambda: self.loop.time() >= start + timeout or question.is_settled()
        try:
            self.loop.run_forever()
        finally:
            timer.cancel()
            self.loop.stop_when = None
        self._raise_problems()
        if question.error is not None:
            raise question.error
        if not question.is_settled():
            raise NotReachedError(f"not reached within {timeout:g} virtual seconds\n{self.describe()}")
        return self.loop.time() - start

    def run_until_bound(self, *names: str, namespace: str = "default", timeout: float = 60.0) -> float:
        return self.run_until(lambda: all(self.pod_state(n, namespace).node for n in names), timeout)

    def run_until_running(self, *names: str, namespace: str = "default", timeout: float = 60.0) -> float:
        return self.run_until(
            lambda: all(self.pod_state(n, namespace).phase == "Running" for n in names), timeout
        )

    def settle(self, seconds: float = 1.0) -> None:
        """Time for everything under way to arrive, such as late watch events."""
        self.run_for(seconds)

    # -- looking

    @property
    def scheduler(self) -> Scheduler:
        assert self._scheduler is not None, "there is no scheduler"
        return self._scheduler

    @property
    def engine(self) -> Any:
        return self.scheduler.engine

    def pod_state(self, name: str, namespace: str = "default") -> PodState:
        """How the server sees the pod; a pod that does not exist has `exists=False`."""
        return state_of(self.find("pods", name, namespace))

    def pod_states(self, namespace: str = "") -> dict[str, PodState]:
        """By name where `namespace` is given, else by namespace/name."""
        found = self.objects("pods", namespace)
        return {_name(pod, namespace): state_of(pod) for pod in found}

    def requests(self, **selection: Any) -> list[Record]:
        """Of the request log: `method`, `verb`, `path` (regular expression), `client`, `status`, `since`."""
        return self.faults.log.select(**selection)

    def bindings(self, name: str, namespace: str = "default") -> list[Record]:
        return self.requests(method="POST", path=f"/namespaces/{namespace}/pods/{name}/binding$")

    def attempts(self, name: str, namespace: str = "default") -> list[tuple[float, Attempt]]:
        """(virtual time, attempt) of every attempt at the pod, over restarts."""
        return self.recorder.attempts_of(f"{namespace}/{name}")

    def story(self, name: str, namespace: str = "default") -> tuple[StoryEntry, ...]:
        uid = self.get("pods", name, namespace)["metadata"]["uid"]
        return tuple(self.engine.story(uid))

    def log_text(self) -> str:
        """Requests of the scheduler's world, one line each: equal for two runs with one seed."""
        return self.faults.log.text()

    def describe(self) -> str:
        """All pods and the last requests, for the text of a failure."""
        states = [f"  {key}: {state}" for key, state in self.pod_states().items()][:30]
        log = [f"  {record.line()}" for record in self.faults.log.records[-30:]]
        notes = [f"  {note}" for note in self.recorder.notes[-10:]]
        return "\n".join([f"t={self.now:g}", "pods:", *states, "requests:", *log, "notes:", *notes])

    # -- invariants

    def check_invariants(self) -> None:
        """Raises AssertionError naming what does not hold."""
        self._raise_problems()
        invariants.check_server(self.server, self.faults.log, may_overcommit=self.may_overcommit)
        if self._scheduler is not None and self._running is not None:
            self._scheduler.engine.check_invariants()
            self._scheduler.calls.check_invariants()

    def check_converged(self) -> None:
        """The scheduler believes exactly what the server shows; ask it when nothing is under way."""
        self.check_invariants()
        invariants.check_beliefs(self.server, self.scheduler)

    def _on_loop_problem(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        del loop
        error = context.get("exception")
        self._problems.append(f"{context.get('message')}: {error!r}")

    def _raise_problems(self) -> None:
        running = self._running
        if running is not None and running.done():
            self._running = None
            running.result()
            raise AssertionError("the scheduler ended by itself")
        if self._problems:
            problems, self._problems = self._problems, []
            raise AssertionError("background errors:\n" + "\n".join(problems))


class _Question:
    """A predicate asked from inside the loop: what it raises is kept for the test."""

    def __init__(self, predicate: Callable[[], object]) -> None:
        self._predicate = predicate
        self.error: Exception | None = None

    def is_settled(self) -> bool:
        try:
            return bool(self._predicate())
        except LookupError:
            return False
        except Exception as error:  # the test's own bug, raised again outside of the loop
            self.error = error
            return True


def _name(pod: Tree, namespace: str) -> str:
    meta = pod["metadata"]
    return str(meta["name"]) if namespace else f"{meta['namespace']}/{meta['name']}"


async def _ended(task: asyncio.Task[None]) -> None:
    await task


async def _killed(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _configured(
    settings: Settings | Mapping[str, Any] | None, registry: Registry | None
) -> tuple[Settings, Registry]:
    known = registry or default_registry()
    if isinstance(settings, Settings):
        return settings, known
    if settings is None:
        return default_settings(known), known
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return load_settings({**header, **settings}, known), known
