"""In a whole run the pure parts touch no clock, chance or loop, and only the dispatcher writes (A1).

Leases, and the events that tell of them, are written past it: a replica that may not lead must know at
once, and a queue that holds the renewal back would cost the leadership. What the code says of both laws
is read in unit/test_purity.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import builtins
import io
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pilotage
from behaviour.test_leader_election import Pair, in_pair
from pilotage.api.wire import Request, Response
from pilotage.calls.queue import CallQueue
from pilotage.framework.plugin import PermitResult
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, Status, wait
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.scheduling.engine import Engine
from pilotage.testing.builders import claim, priority_class, storage_class, uses
from pilotage.testing.faultkinds import Fault, Send
from pilotage.testing.harness import Harness

SOURCE = Path(pilotage.__file__).parent
DISPATCHER = "runtime/dispatcher.py"
HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PLUGINS = {"multiPoint": {"enabled": [{"name": "Slow"}]}}
PROFILES = [{"schedulerName": "default-scheduler", "plugins": PLUGINS}]
both = pytest.mark.parametrize("gates", [{}, {"SchedulerAsyncAPICalls": False}], ids=["async", "sequential"])


class Slow:
    """Pods named permit* wait at Permit, all take a moment in PreBind."""

    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        is_held = pod.pod.metadata.name.startswith("permit")
        return PermitResult(wait(), 5.0) if is_held else PermitResult(SUCCESS)

    async def pre_bind(self, cycle: object, pod: Any, node: str) -> Status:
        await asyncio.sleep(0.5)
        return SUCCESS


def story(h: Harness) -> None:
    """Binds, conditions, a preemption, volumes, Permit, a bind that fails, a node that goes, a restart."""
    h.create(priority_class(100), storage_class("disks"), claim("data", "disks"))
    h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
    h.create(h.pod("low", cpu=3, grace=1), h.pod("also", cpu=3, grace=1))
    h.create(h.pod("db", cpu=1, volumes=uses("data")), h.pod("permit", cpu=1), h.pod("huge", cpu=64))
    h.run_until_running("low", "also", "db")
    h.create(h.pod("high", cpu=3, priority=100))
    h.run_until_running("high", timeout=60)
    h.faults.answer(403, path="/binding$", times=1)
    h.create(h.node("n3", cpu=8), h.pod("later", cpu=5))
    h.run_until_running("later", timeout=60)
    h.delete("nodes", "n2")
    h.restart_scheduler()
    h.run_for(30)


def registry() -> Registry:
    made = default_registry()
    made.register("Slow", lambda args, handle: Slow())
    return made


def harness(gates: dict[str, bool]) -> Harness:
    known = registry()
    settings = load_settings({**HEADER, "profiles": PROFILES}, known, gates)
    return Harness(seed=1, registry=known, settings=settings)


# -- writes


class Senders(Fault):
    """Notes which modules of the runtime stand behind each write, and what is written."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()

    async def request(self, request: Request, send: Send) -> Response:
        if request.method not in ("GET", "HEAD"):
            kind = next(part for part in request.path.split("/")[::-1] if part in KINDS)
            self.seen[sender(), kind] += 1
        return await send()


KINDS = {"pods", "events", "persistentvolumes", "persistentvolumeclaims", "leases", "resourceclaims"}


def sender() -> str:
    """The first module of the runtime that called, but for what only passes on."""
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE / "runtime") and path.name not in ("leading.py", "metrics_rest.py"):
            return path.relative_to(SOURCE).as_posix()
    return "unknown"


@both
def test_in_a_whole_run_the_dispatcher_alone_writes(gates: dict[str, bool]) -> None:
    senders = Senders()
    with harness(gates) as h:
        h.faults.add(senders, client="scheduler")
        story(h)
    assert {module for module, _ in senders.seen} == {DISPATCHER}
    assert {kind for _, kind in senders.seen} == {"pods", "events", "persistentvolumeclaims"}


def test_leases_and_what_tells_of_them_are_written_past_it() -> None:
    senders = Senders()

    async def use(pair: Pair) -> None:
        for replica in (pair.a, pair.b):
            replica.faults.add(senders)
        await pair.schedule("p1")
        await pair.a.end()
        await pair.b.end()

    in_pair(use)
    past = {(module, kind) for module, kind in senders.seen if module != DISPATCHER}
    assert past == {("runtime/leader_election.py", "leases"), ("runtime/leader_election.py", "events")}
    assert senders.seen[DISPATCHER, "pods"] >= 1


# -- purity


def forbidden(name: str, seen: list[str]) -> Callable[..., Any]:
    """A failure of its own would be taken for a plugin's: the call is noted as well."""

    def call(*args: Any, **more: Any) -> Any:
        seen.append(name)
        raise AssertionError(f"the engine called {name}({args}, {more})")

    return call


POISON = [
    (builtins, "open"),
    (io, "open"),
    (builtins, "print"),
    *((socket, name) for name in ("socket", "create_connection", "getaddrinfo")),
    *((time, name) for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")),
    *((random, name) for name in ("random", "randint", "randrange", "choice", "shuffle", "uniform")),
    *((asyncio, name) for name in ("create_task", "ensure_future", "sleep", "run", "get_running_loop")),
]


@contextmanager
def poisoned(seen: list[str]) -> Iterator[None]:
    """Nothing of the world outside answers, and no loop is running."""
    kept = [(owner, name, getattr(owner, name)) for owner, name in POISON]
    loop = asyncio.events._get_running_loop()
    for owner, name, _ in kept:
        setattr(owner, name, forbidden(f"{owner.__name__}.{name}", seen))
    asyncio.events._set_running_loop(None)
    try:
        yield
    finally:
        asyncio.events._set_running_loop(loop)
        for owner, name, value in kept:
            setattr(owner, name, value)


GUARDED: dict[type, tuple[str, ...]] = {
    Engine: ("handle", "schedule", "next_wakeup"),
    CallQueue: ("offer", "cancel", "take", "finish", "sync", "expire", "drain"),
}


def guard(monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], list[str]]:
    """Which methods of engine and call queue are called, and which forbidden things they do."""
    calls: Counter[str] = Counter()
    seen: list[str] = []

    def guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: object, *args: Any, **more: Any) -> Any:
            calls[name] += 1
            with poisoned(seen):
                return real(self, *args, **more)

        return call

    for owner, names in GUARDED.items():
        for name in names:
            monkeypatch.setattr(owner, name, guarded(name, getattr(owner, name)))
    return calls, seen


@both
def test_engine_and_call_queue_work_with_the_outside_world_poisoned(
    gates: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness({}).start().close()  # what is imported late is imported by now
    calls, seen = guard(monkeypatch)
    with harness(gates) as h:
        story(h)
    assert seen == []
    assert calls["handle"] > 50
    assert calls["schedule"] > 10
    assert calls["offer"] > 10


ACTS: tuple[Callable[[], object], ...] = (
    lambda: time.monotonic(),
    lambda: random.random(),
    lambda: Path("x").read_text(),
    lambda: asyncio.get_running_loop(),
    lambda: asyncio.events.get_running_loop(),
    lambda: socket.create_connection(("localhost", 1)),
)


@pytest.mark.parametrize("act", ACTS)
def test_the_poison_works(act: Callable[[], object]) -> None:
    async def main() -> None:
        with (
            poisoned([]),
            pytest.raises((AssertionError, RuntimeError), match=r"the engine called|no running"),
        ):
            act()

    asyncio.run(main())
