"""The end of a scheduler with calls under way: binds are sent, the rest cancelled, all answered (A8)."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from pilotage.framework.calls import CallResult
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.runtime.scheduler import DRAIN_SECONDS
from pilotage.testing.harness import Harness

MODES = pytest.mark.parametrize("is_async", [True, False], ids=["asynchronous", "awaited"])
DRAIN = DRAIN_SECONDS
HOPELESS, GOOD = 60, 12


def scheduler(is_async: bool, qps: float = 50, burst: int = 100) -> Harness:
    registry = default_registry()
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": qps, "burst": burst},
    }
    settings = load_settings(config, registry, {"SchedulerAsyncAPICalls": is_async})
    return Harness(seed=3, settings=settings, registry=registry)


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}-{n}" for n in range(number)]


def create(h: Harness, *, hopeless: int = HOPELESS) -> None:
    """A node; pods that fit, and after them pods that never will."""
    h.create(h.node("n1", cpu=64))
    h.run_for(1)
    h.create(*(h.pod(name, cpu="100m") for name in names("good", GOOD)))
    h.create(*(h.pod(name, cpu=1000) for name in names("bad", hopeless)))


def stop(h: Harness) -> float:
    """Stops the scheduler; how long that took, after a look at what must hold in any case."""
    begin = h.now
    h.stop_scheduler()
    took = h.now - begin
    calls = h.scheduler.calls
    calls.check_invariants()
    assert calls.is_idle
    statistics = calls.statistics()
    ended: Counter[str] = Counter()
    for (name, _), number in statistics.ended.items():
        ended[name] += number
    # More ended than were taken: what is wished after the stop is refused at once.
    assert all(ended[name] >= number for name, number in statistics.offered.items())
    tasks = [task.get_name() for task in asyncio.all_tasks(h.loop) if "_carry_out" in repr(task)]
    assert tasks == []
    return took


def ends(h: Harness, call_type: str) -> dict[CallResult, int]:
    found = h.scheduler.calls.statistics().ended
    return {result: number for (name, result), number in found.items() if name == call_type}


def bound(h: Harness) -> int:
    return sum(len(h.bindings(name)) > 0 and h.pod_state(name).node != "" for name in names("good", GOOD))


@MODES
def test_binds_that_wait_are_sent_and_held_patches_are_cancelled(is_async: bool) -> None:
    with scheduler(is_async) as h:
        h.faults.latency(before=1.0, path="/binding$")
        patches = h.faults.hold(verb="patch", path="/status$", client="scheduler")
        create(h)
        h.run_for(0.3)
        held = len(patches.waiting)
        assert held == (8 if is_async else 1)
        assert bound(h) == 0
        took = stop(h)
        assert took <= 5.0
        assert bound(h) == GOOD
        assert ends(h, "pod_binding") == {CallResult.DONE: GOOD}
        cancelled = ends(h, "pod_status_patch")
        assert set(cancelled) == {CallResult.CANCELLED}
        assert cancelled[CallResult.CANCELLED] >= (46 if is_async else 1)
        assert len(h.requests(client="scheduler", verb="patch", path="/status$")) == held


@MODES
def test_a_server_that_answers_nothing(is_async: bool) -> None:
    with scheduler(is_async) as h:
        h.faults.hold(verb="patch", path="/status$", client="scheduler")
        h.faults.hold(path="/binding$", client="scheduler")
        h.faults.hold(verb="create", path="/events$", client="scheduler")
        create(h)
        h.run_for(2)
        took = stop(h)
        assert DRAIN - 0.1 <= took <= DRAIN + 0.1
        assert ends(h, "pod_binding") == {CallResult.CANCELLED: GOOD}
        assert set(ends(h, "pod_status_patch")) == {CallResult.CANCELLED}


@MODES
def test_under_the_limiter(is_async: bool) -> None:
    """5 requests a second: binds go on at that rate until the end, and nothing else is sent."""
    with scheduler(is_async, qps=5, burst=5) as h:
        create(h)
        h.run_for(0.4)
        before = bound(h)
        assert 0 < before < GOOD
        begin = h.now
        took = stop(h)
        assert took <= 5.0
        assert bound(h) == GOOD
        sent = [one for one in h.requests(client="scheduler") if one.time > begin and one.verb != "watch"]
        assert {one.path.rpartition("/")[2] for one in sent} == {"binding"}
        assert len(sent) == GOOD - before
        assert ends(h, "pod_binding") == {CallResult.DONE: GOOD}


def test_a_bind_behind_a_slow_patch_of_its_own_pod_is_sent() -> None:
    with scheduler(True) as h:
        h.faults.latency(before=2.0, verb="patch", path="/status$", client="scheduler")
        h.create(h.node("n1", cpu=1), h.pod("late", cpu=4))
        h.run_for(0.5)
        h.create(h.node("n2", cpu=8))
        h.run_for(1.2)
        assert h.scheduler.calls.statistics().pending == {"pod_binding": 1}
        assert stop(h) <= 5.0
        assert h.pod_state("late").node == "n2"


@MODES
def test_nothing_under_way_ends_at_once(is_async: bool) -> None:
    with scheduler(is_async) as h:
        create(h, hopeless=2)
        h.run_until_running(*names("good", GOOD))
        h.settle()
        assert stop(h) == 0.0


@MODES
def test_the_next_one_takes_up_what_was_cancelled(is_async: bool) -> None:
    with scheduler(is_async) as h:
        patches = h.faults.hold(verb="patch", path="/status$", client="scheduler")
        binds = h.faults.hold(path="/binding$", client="scheduler")
        create(h)
        h.run_for(1)
        stop(h)
        patches.release()
        binds.release()
        h.start_scheduler()
        h.run_until_running(*names("good", GOOD))
        h.run_until(lambda: all(h.pod_state(name).scheduled == "False" for name in names("bad", HOPELESS)))
