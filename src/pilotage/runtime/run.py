"""One scheduler as a whole process: loop, signals, health server, exit code.

SIGTERM and SIGINT (Ctrl-C) stop it cleanly; a second one ends it at once. Exit codes: 0 stopped as
asked, 1 it failed, 130 ended by the second signal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import pilotage
from pilotage.client.credentials import Credentials, StaticCredentials, load
from pilotage.client.http import HttpTransport
from pilotage.client.relocated import RelocatedCredentials
from pilotage.client.transport import Transport
from pilotage.framework.profile import ProfileError
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.runtime.call_types_loading import added_types
from pilotage.runtime.clock import Clock, RealClock
from pilotage.runtime.config_validate import LeaderElection
from pilotage.runtime.debug_calls import calls_page
from pilotage.runtime.debug_pods import pod_page
from pilotage.runtime.health import Checks, HealthServer, HealthServerError
from pilotage.runtime.leader_election import Elector, LeadershipLostError
from pilotage.runtime.leading import FencedTransport, lead
from pilotage.runtime.metrics import Metrics, exposition
from pilotage.runtime.pilotage_config import CallTuning
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.scheduler import Scheduler
from pilotage.runtime.secure_pages import secure_server

logger = logging.getLogger(__name__)

OK, FAILED, INTERRUPTED = 0, 1, 130
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`health_port`: None serves no pages, 0 picks a free port. `identity`: "" is this machine's name."""

    seed: int = 0
    identity: str = ""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    secure_host: str = "0.0.0.0"  # as kube-scheduler: probes come from outside the process's network
    secure_port: int | None = None  # None: no HTTPS
    freeze_gc: bool = True
    election: LeaderElection | None = None  # None: decides at once, whoever else there is
    delay_cache: bool = False  # follows the cluster only as leader
    tuning: CallTuning | None = None


def run_scheduler(
    settings: Settings,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    server: str = "",
    transport: Transport | None = None,
    registry: Registry | None = None,
    options: RunOptions | None = None,
    on_ready: Callable[[Scheduler], None] | None = None,
) -> int:
    """Runs until a signal; returns the exit code.

    Without a `transport` one is made from the kubeconfig (CredentialsError, at once, when it is malformed);
    `server` is an address to use instead of the one in there.
    """
    door = transport or HttpTransport(_credentials(kubeconfig, context, server), user_agent=_user_agent())
    options = options or RunOptions()
    registry = registry or build_registry()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_until_signal(door, settings, registry, options, on_ready))
    except KeyboardInterrupt:
        return INTERRUPTED


async def serve(
    transport: Transport,
    settings: Settings,
    registry: Registry,
    stop: asyncio.Event,
    options: RunOptions | None = None,
    on_ready: Callable[[Scheduler], None] | None = None,
) -> None:
    """The same inside a loop that somebody else runs. The transport stays open: it is the caller's."""
    options = options or RunOptions()
    metrics = Metrics(version=pilotage.__version__, gates=settings.gates)
    door = metrics.rest.transport(transport, lambda: getattr(transport, "host", ""))
    clock = RealClock()
    elector = _elector(door, options, clock)
    scheduler = Scheduler(
        door if elector is None else FencedTransport(door, lambda: elector.is_leading),
        settings,
        metrics.timed(registry),
        clock=clock,
        seed=options.seed,
        identity=options.identity or socket.gethostname(),
        freeze_gc=options.freeze_gc,
        tuning=options.tuning or CallTuning(types=added_types()),
    )
    metrics.attach(scheduler)
    if elector is not None:
        metrics.process.leading = lambda: {elector.config.resource_name: elector.is_leading}
    pages = _pages(scheduler, metrics, options, elector)
    announcing = asyncio.get_running_loop().create_task(_announce(scheduler, on_ready))
    try:
        for page, what in pages:
            page.start()
            logger.info("%s:%d", what, page.port)
        await _run(scheduler, stop, elector, waits=options.delay_cache)
    finally:
        announcing.cancel()
        await asyncio.gather(announcing, return_exceptions=True)
        for page, _ in pages:
            await page.close()


def _elector(transport: Transport, options: RunOptions, clock: Clock) -> Elector | None:
    if options.election is None:
        return None
    return Elector(transport, options.election, f"{socket.gethostname()}_{uuid4()}", clock)


async def _run(scheduler: Scheduler, stop: asyncio.Event, elector: Elector | None, *, waits: bool) -> None:
    if elector is None:
        await scheduler.run(stop)
        return
    active = asyncio.Event()
    await lead(elector, stop, active, lambda end: scheduler.run(end, active), waits=waits)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _until_signal(
    transport: Transport,
    settings: Settings,
    registry: Registry,
    options: RunOptions,
    on_ready: Callable[[Scheduler], None] | None,
) -> int:
    stop = asyncio.Event()
    try:
        with _signals(stop):
            await serve(transport, settings, registry, stop, options, on_ready)
    except asyncio.CancelledError:
        return INTERRUPTED
    except (HealthServerError, ProfileError, LeadershipLostError) as problem:
        logger.error("%s", problem)
        return FAILED
    except Exception:  # the last stop before the process ends: whatever it was, it must be seen
        logger.exception("the scheduler failed")
        return FAILED
    finally:
        await transport.close()
    logger.info("stopped")
    return OK


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """The first signal sets `stop`, the second one cancels the running task."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def received(name: str) -> None:
        if stop.is_set():
            task.cancel()
        else:
            logger.info("%s: stopping", name)
            stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, received, number.name)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _announce(scheduler: Scheduler, on_ready: Callable[[Scheduler], None] | None) -> None:
    await scheduler.ready.wait()
    if on_ready is not None:
        on_ready(scheduler)


def _pages(
    scheduler: Scheduler, metrics: Metrics, options: RunOptions, elector: Elector | None
) -> list[tuple[HealthServer, str]]:
    """The servers that are wanted, each with what the log says of it. Raises HealthServerError."""
    if options.health_port is None and options.secure_port is None:
        return []
    checks = _checks(scheduler, metrics, elector)
    pages: list[tuple[HealthServer, str]] = []
    if options.health_port is not None:
        server = HealthServer(checks, options.health_host, options.health_port)
        pages.append((server, f"health and metrics on http://{options.health_host}"))
    if options.secure_port is not None:
        server = secure_server(checks, options.secure_host, options.secure_port)
        pages.append((server, f"health on https://{options.secure_host}"))
    return pages


def _checks(scheduler: Scheduler, metrics: Metrics, elector: Elector | None) -> Checks:
    registry = metrics.registry()
    return Checks(
        live={"ping": lambda: None, **({"leaderElection": elector.health} if elector is not None else {})},
        ready={
            "sched-handler-sync": lambda: None if scheduler.is_synced else "informers are not synced",
            "shutdown": lambda: "the scheduler is stopping" if scheduler.is_stopping else None,
        },
        metrics=lambda: exposition(registry),
        on_check=metrics.process.checked,
        calls=lambda: calls_page(scheduler.calls.pending(scheduler.clock.time()), scheduler.call_limits()),
        pod=lambda namespace, name: pod_page(
            scheduler.engine, scheduler.calls.pending(scheduler.clock.time()), namespace, name
        ),
    )


def _credentials(kubeconfig: str | None, context: str | None, server: str) -> Credentials:
    if server and kubeconfig is None:
        return StaticCredentials(server.rstrip("/"))
    found = load(kubeconfig, context)
    return RelocatedCredentials(found, server.rstrip("/")) if server else found


def _user_agent() -> str:
    return f"pilotage/{pilotage.__version__}"
