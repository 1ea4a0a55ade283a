"""Field case G5 on the whole system: the Events API is blocked and nothing but events suffers.

The folding of equal events and the bound of their lane alone are in unit/calls/test_events; further forms
in test_call_storms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pilotage.calls.lanes import DEFAULT_LIMITS, LaneLimits
from pilotage.calls.types import Lane
from pilotage.framework.calls import CallResult
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings, load_settings
from pilotage.testing.harness import Harness

EVENTS = "/events"
BIND = "/binding$"
BLOCKED = 60.0
CAP = DEFAULT_LIMITS[Lane.EVENT].cap or 0
AT_ONCE = DEFAULT_LIMITS[Lane.EVENT].in_flight
TEN_A_SECOND = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 10, "burst": 10},
}
both = pytest.mark.parametrize("gates", [{}, {"SchedulerAsyncAPICalls": False}], ids=["async", "sequential"])


def pending(h: Harness) -> int:
    return h.scheduler.calls.statistics().pending.get("event", 0)


def dropped(h: Harness) -> int:
    return h.scheduler.calls.statistics().ended.get(("event", CallResult.DROPPED), 0)


def told_of(h: Harness) -> set[str]:
    """Pods with an event of their failure on the server."""
    events = h.objects("events", "default")
    return {event["involvedObject"]["name"] for event in events if event["reason"] == "FailedScheduling"}


def delay_of(h: Harness, name: str) -> float:
    """Seconds from the creation of a pod that fits to its bind."""
    created = h.now
    h.create(h.pod(name, cpu="10m"))
    h.run_until_bound(name, timeout=30)
    return h.now - created


@pytest.mark.slow
def test_g5_a_minute_without_events_at_a_hundred_failures_a_second() -> None:
    with Harness(seed=1, history=200_000) as h:
        h.create(*(h.node(f"n{i:02}", cpu=4) for i in range(100)))
        h.run_for(5)
        tasks = len(asyncio.all_tasks(h.loop))
        hold = h.faults.hold(path=EVENTS, client="scheduler")
        most, delays, begin = 0, [], h.now
        for second in range(30):
            h.create(*(h.pod(f"big{second:02}-{i:02}", cpu=8) for i in range(100)))
            if second % 10 == 9:
                delays.append(delay_of(h, f"good{second}"))
            h.run_for(max(0.0, begin + second + 1 - h.now))
            most = max(most, len(asyncio.all_tasks(h.loop)))
        assert len({attempt.key for _, attempt in h.recorder.attempts}) >= 3000
        assert len(hold.waiting) <= AT_ONCE
        assert 2900 <= pending(h) <= CAP
        h.run_for(begin + BLOCKED - h.now)
        delays.append(delay_of(h, "good-last"))
        assert max(delays) <= 0.1
        others = sum(lane.in_flight for name, lane in DEFAULT_LIMITS.items() if name is not Lane.EVENT)
        assert most <= tasks + AT_ONCE + others + 8, "tasks are bounded by the lanes, not by the pods"
        hold.release()
        h.run_for(150)
        told = told_of(h)
        assert len([name for name in told if name.startswith("big")]) == 3000
        assert (dropped(h), pending(h)) == (0, 0)


@both
def test_g5_what_is_too_much_is_dropped_and_counted(gates: Mapping[str, bool]) -> None:
    h = Harness(seed=2, settings=default_settings(gates=gates))
    lanes = {**DEFAULT_LIMITS, Lane.EVENT: LaneLimits(AT_ONCE, cap=50, max_age=300.0)}
    h._tuning = replace(h._tuning, lanes=lanes)
    with h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=EVENTS, client="scheduler")
        h.create(*(h.pod(f"big{i:03}", cpu=8) for i in range(200)))
        h.run_for(30)
        assert len({attempt.key for _, attempt in h.recorder.attempts}) == 200
        assert pending(h) <= 50 + AT_ONCE  # what was out comes back to be tried again
        assert dropped(h) >= 200 - 50 - AT_ONCE
        states = h.pod_states("default").values()
        assert {state.reason for state in states} == {"Unschedulable"}, "conditions are not events"
        hold.release()
        h.run_for(30)
        told = told_of(h)
        assert 0 < len(told) <= 50 + AT_ONCE


@both
def test_g5_equal_events_are_one_object_with_a_count(gates: Mapping[str, bool]) -> None:
    """Tried again every five minutes with the same end, the first time while events are blocked."""
    with Harness(seed=3, settings=default_settings(gates=gates)) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=EVENTS, client="scheduler")
        h.create(h.pod("big", cpu=8))
        h.run_for(BLOCKED)
        hold.release()
        h.run_for(1000)
        assert len(h.attempts("big")) == 4
        (event,) = h.events("big", reason="FailedScheduling")
        assert event["series"]["count"] >= 2
        assert pending(h) == 0


@both
def test_g5_binds_come_as_soon_with_events_as_without(gates: Mapping[str, bool]) -> None:
    """At ten requests a second. Events may leave half of the burst unfilled, and take nothing else."""
    moments = []
    for is_blocked in (False, True):
        settings = load_settings(TEN_A_SECOND, default_registry(), gates)
        with Harness(seed=4, settings=settings) as h:
            if is_blocked:
                h.faults.hold(path=EVENTS, client="scheduler")
            h.create(*(h.node(f"n{i}", cpu=64) for i in range(4)))
            h.run_for(2)
            h.create(*(h.pod(f"p{i:02}", cpu=1) for i in range(40)))
            h.run_for(5)
            h.create(*(h.pod(f"q{i:02}", cpu=1) for i in range(40)))
            h.run_for(30)
            moments.append({record.path: record.time for record in h.requests(path=BIND, status=201)})
    with_events, without = moments
    assert len(without) == 80
    worst = max(with_events[path] - time for path, time in without.items())
    assert worst <= 0.5 + 0.01
