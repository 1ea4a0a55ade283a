"""The call queue with its dispatcher for any controller: wishes in, few requests out, no scheduler needed.

    async with Calls(transport, [ServiceLoad()]) as calls:
        outcome = await calls.do(call)

Laws, the same as in the scheduler:
- Per object one request at most is in flight and one wish per type waits; newer wishes are merged into it.
- Each wish ends exactly once, with an Outcome: a wish is never an exception. Only misuse raises.
- What informers brought passes `saw`: it comes back with the changes that are still on their way, and what
  a write returned is not undone by an older version.
- All belongs to the event loop in which it was opened, and no thread is started.
"""

from __future__ import annotations

import asyncio
import logging
import time as clock
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pilotage.api.meta import KubeObject
from pilotage.calls.lanes import ALL_LANES, DEFAULT_LIMITS, Allowance, LaneLimits
from pilotage.calls.queue import CallQueue
from pilotage.calls.registry import CallTypes
from pilotage.calls.reports import Dispatch, Finished, PendingCall, Statistics
from pilotage.calls.types import CallType, Lane, Result
from pilotage.client.credentials import load
from pilotage.client.http import HttpTransport
from pilotage.client.transport import Transport
from pilotage.framework.calls import Call, CallResult, Outcome
from pilotage.runtime.dispatcher import Dispatcher
from pilotage.runtime.newest import NewestObjects

log = logging.getLogger("pilotage.calling")
CLOSED = "the calls were closed"


class CallsUsageError(RuntimeError):
    """`Calls` was used before it was open, after it was closed, or from another loop or thread."""


class UnknownCallTypeError(LookupError):
    """No type is registered for a call."""


class Calls:
    """`qps`, `burst`: requests per second and at once, over all lanes. `lanes`: limits that differ.

    `on_ended` is told of each wish that ended, for metrics; it must not wait. `time`: epoch seconds.
    Raises CallTypeError where a type is not whole or two have one name.
    """

    def __init__(
        self,
        transport: Transport,
        types: Iterable[CallType[Any]],
        *,
        qps: float = 50.0,
        burst: int = 100,
        lanes: Mapping[Lane, LaneLimits] = DEFAULT_LIMITS,
        on_ended: Callable[[Finished], None] | None = None,
        time: Callable[[], float] = clock.time,
    ) -> None:
        self.transport = transport
        self._types = CallTypes(*types)
        self._time = time
        self._limits = {**DEFAULT_LIMITS, **lanes}
        self._queue = CallQueue(self._types, self._limits)
        self._source = _Source(self._queue, on_ended)
        self._rates = (qps, burst)
        self._dispatcher: Dispatcher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._owns_transport = False

    @classmethod
    def from_kubeconfig(
        cls,
        types: Iterable[CallType[Any]],
        kubeconfig: str | None = None,
        context: str | None = None,
        **options: Any,
    ) -> Self:
        """As kubectl finds its server, or as a pod's service account; `transport` is closed with the calls.

        Raises CredentialsError. `options`: as of the class.
        """
        calls = cls(HttpTransport(load(kubeconfig, context)), types, **options)
        calls._owns_transport = True
        return calls

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise CallsUsageError("these calls were opened before: make new ones")
        self._loop = asyncio.get_running_loop()
        qps, burst = self._rates
        self._dispatcher = Dispatcher(
            self._source,
            self.transport,
            time=self._time,
            on_effects=lambda effects: None,
            qps=qps,
            burst=burst,
            lanes=self._limits,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def submit(self, call: Call) -> asyncio.Future[Outcome]:
        """A wish. Awaiting the future is optional; cancelling it ends the waiting and not the wish.

        Raises UnknownCallTypeError, CallsUsageError.
        """
        self._check_open("submit")
        name = call.call_type if isinstance(call, Call) else type(call).__name__
        if not isinstance(call, Call) or self._types.find(name) is None:
            known = ", ".join(sorted(one.name for one in self._types)) or "none"
            raise UnknownCallTypeError(f"no call type {name!r} is registered; there are: {known}")
        future = self._source.offer(call, self._time())
        self._wake()
        return future

    async def do(self, call: Call) -> Outcome:
        """A wish, waited for. Raises as `submit`."""
        return await self.submit(call)

    def saw(self, resource: str, found: KubeObject) -> KubeObject:
        """An informer brought `found`: the newest known version comes back, with pending changes applied."""
        self._check_open("saw")
        newest = self._source.saw(resource, found, self._time())
        self._wake()
        return newest

    def gone(self, uid: str) -> None:
        """An informer told that the object is deleted: its calls are cancelled and it is forgotten."""
        self._check_open("gone")
        self._source.newest.gone(uid)
        self.cancel(uid, "the object was deleted")

    def cancel(self, uid: str, why: str = "cancelled") -> None:
        """Drops what waits for an object. A request in flight ends by its answer, without retries."""
        self._check_open("cancel")
        self._source.tell(self._queue.cancel(uid, why, self._time()))
        self._wake()

    async def wait_idle(self) -> None:
        """Until nothing waits and nothing is in flight."""
        self._check_open("wait_idle")
        await self._source.idle.wait()

    async def close(self, deadline: float = 5.0) -> None:
        """Takes no more wishes, sends what waits for `deadline` seconds, and cancels the rest.

        Every future is answered afterwards. A second close does nothing.
        """
        if self._dispatcher is None or self._is_closed:
            self._is_closed = True
            return
        self._check_loop("close")
        self._is_closed = True
        try:
            async with asyncio.timeout(deadline):
                await self._source.idle.wait()
        except TimeoutError:
            log.warning(
                "%d calls had not ended after %g s: they are cancelled", len(self.pending()), deadline
            )
        finally:
            await self._dispatcher.close(deadline if self._queue.is_idle else 0.0)
            if self._owns_transport:
                await self.transport.close()

    def pending(self) -> list[PendingCall]:
        """All calls on their way. Costs what there are."""
        return list(self._queue.pending(self._time()))

    def statistics(self) -> Statistics:
        return self._queue.statistics(self._time())

    def limits(self) -> dict[str, Any]:
        """The limiter as it stands, as JSON values; empty before opening."""
        return self._dispatcher.describe() if self._dispatcher is not None else {}

    def check_invariants(self) -> None:
        """For tests. Raises AssertionError."""
        self._queue.check_invariants()
        assert self._source.idle.is_set() == self._queue.is_idle

    def _wake(self) -> None:
        assert self._dispatcher is not None
        self._dispatcher.wake()

    def _check_open(self, what: str) -> None:
        if self._is_closed:
            raise CallsUsageError(f"{what}: the calls are closed")
        if self._loop is None:
            raise CallsUsageError(f"{what}: the calls are not open yet: use 'async with'")
        self._check_loop(what)

    def _check_loop(self, what: str) -> None:
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._loop:
            raise CallsUsageError(
                f"{what}: the calls belong to another event loop: "
                "from outside use its call_soon_threadsafe or asyncio.run_coroutine_threadsafe"
            )


class _Everything:
    """Kinds whose newest objects are kept: all that were seen."""

    def __contains__(self, resource: object) -> bool:
        return True


class _Source:
    """The queue as the dispatcher's `CallSource`: what ends is told to its future, no effects are left."""

    def __init__(self, queue: CallQueue, on_ended: Callable[[Finished], None] | None) -> None:
        self.newest = NewestObjects(_Everything())
        # Set exactly while no call is on its way.
        self.idle = asyncio.Event()
        self.idle.set()
        self._queue = queue
        self._on_ended = on_ended
        # Ticket -> future, exactly for the wishes that have not ended.
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._last_ticket = 0

    def offer(self, call: Call, now: float) -> asyncio.Future[Outcome]:
        self._last_ticket += 1
        ticket = self._last_ticket
        future = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self.tell(self._queue.offer(call, now, ticket, self.newest.get(call.key.uid)))
        return future

    def saw(self, resource: str, found: KubeObject, now: float) -> KubeObject:
        if not self.newest.seen(resource, found):
            found = self.newest.get(found.metadata.uid) or found
        synced = self._queue.sync(resource, found, now)
        self.tell(synced.finished)
        return synced.object

    def tell(self, ended: Sequence[Finished]) -> None:
        for one in ended:
            if one.object is not None:
                self.newest.written(one.key.resource, one.object)
            self._answer(one)
        if self._queue.is_idle:
            self.idle.set()
        else:
            self.idle.clear()

    def _answer(self, one: Finished) -> None:
        # A call that lingers may come back under its ticket after it was answered.
        future = self._waiting.pop(one.ticket, None) if one.ticket is not None else None
        if future is not None and not future.done():
            future.set_result(one.outcome)
        if one.outcome.result is CallResult.FAILED:
            log.info(
                "%s for %s %s failed: %s", one.call_type, one.key.resource, one.key.name, one.outcome.error
            )
        if self._on_ended is not None:
            try:
                self._on_ended(one)
            except Exception:  # whoever counts calls must not lose one
                log.exception("on_ended failed")

    def take_calls(self, now: float, allowance: Allowance) -> tuple[Sequence[Dispatch], Sequence[Any]]:
        taken = self._queue.take(now, allowance)
        self.tell(self._queue.collect())
        return taken, ()

    def finish_call(self, dispatch: int, result: Result, now: float) -> Sequence[Any]:
        self.tell(self._queue.finish(dispatch, result, now))
        return ()

    def drain_calls(self, why: str, now: float) -> Sequence[Any]:
        self.tell(self._queue.drain(CLOSED, now))
        return ()

    def shutdown_calls(self, why: str, now: float) -> Sequence[Any]:
        self.tell(self._queue.shutdown(CLOSED, now))
        return ()

    def calls_wakeup(self) -> float | None:
        return self._queue.next_wakeup()

    def has_ready_calls(self, lanes: Collection[Lane] = ALL_LANES) -> bool:
        return self._queue.has_ready(lanes)
