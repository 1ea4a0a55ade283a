"""The scheduling queue: gates, and what they cost (spec/queue.md; D5, D11)."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.framework.events import Action, Resource
from pilotage.framework.status import Status
from pilotage.scheduling.cluster_events import node_added, occurrence, pod_deleted
from pilotage.scheduling.transitions import Position
from pilotage.state.podinfo import PodInfo
from queuekit import (
    GATED,
    GATES_GONE,
    Gate,
    SchedulingGates,
    build,
    lengths,
    make_pod,
    on,
    popped,
    popped_after,
)


def test_gated_pod_is_freed_only_when_all_gates_are_gone() -> None:
    gates = SchedulingGates()
    queue = build(pre_enqueue=[("SchedulingGates", gates.pre_enqueue)])
    queue.add(make_pod("a", spec=GATED), 0.0)
    assert lengths(queue) == (0, 0, 0, 1)
    record = queue.get("a")
    assert record is not None
    assert record.initial_attempt is None
    queue.update(make_pod("a", version=2), 5.0)
    assert queue.position("a") is Position.ACTIVE
    assert record.initial_attempt == 5.0


def test_d5_gated_pods_cost_nothing_per_event_but_a_plugin_gate_is_woken() -> None:
    gates, config = SchedulingGates(), Gate(closed=True)
    queue = build(
        pre_enqueue=[("SchedulingGates", gates.pre_enqueue), ("Config", config.pre_enqueue)],
        registrations={"Config": (on(Resource.SERVICE, Action.ADD),)},
    )
    for number in range(5000):
        queue.add(make_pod(f"p{number}", spec=GATED), 0.0)
    queue.add(make_pod("held"), 0.0)
    asked = gates.calls
    for _ in range(1000):
        queue.notify(pod_deleted(), None, None, 1.0)
    assert gates.calls == asked
    config.closed = False
    queue.notify(occurrence(Resource.SERVICE, Action.ADD), None, None, 1.0)
    assert queue.position("held") is Position.ACTIVE
    assert lengths(queue) == (1, 0, 0, 5000)


def test_gating_plugin_is_asked_first() -> None:
    first, second = Gate(), Gate(closed=True)
    queue = build(pre_enqueue=[("First", first.pre_enqueue), ("Second", second.pre_enqueue)])
    queue.add(make_pod("a"), 0.0)
    queue.update(make_pod("a", version=2), 1.0)
    assert (first.calls, second.calls) == (1, 2)


def test_gate_that_raises_gates_the_pod_with_its_error() -> None:
    def broken(_: PodInfo) -> Status:
        raise RuntimeError("no quota service")

    queue = build(pre_enqueue=[("Broken", broken)])
    queue.add(make_pod("a"), 0.0)
    record = queue.get("a")
    assert record is not None
    assert record.gate_status.message == 'running PreEnqueue plugin "Broken": RuntimeError: no quota service'
    assert queue.position("a") is Position.GATED


def test_d11_flush_tries_a_plugin_gate_again() -> None:
    gate = Gate()
    queue = build(pre_enqueue=[("Gate", gate.pre_enqueue)], registrations={"Gate": (GATES_GONE,)})
    queue.flush(0.0)
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    gate.closed = True
    queue.activate(["a"], 0.0)
    queue.requeue(record, 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.GATED
    gate.closed = False
    while queue.position("a") is Position.GATED:
        wakeup = queue.next_wakeup()
        assert wakeup is not None
        assert wakeup <= 330.0
        queue.flush(wakeup)
    assert queue.position("a") is Position.ACTIVE


@pytest.mark.parametrize(
    ("failure", "home"), [({}, Position.ERROR_BACKOFF), ({"unschedulable": {"Fit"}}, Position.BACKOFF)]
)
def test_d11_backoff_is_waited_out_after_the_gate_opens(failure: dict[str, Any], home: Position) -> None:
    gate = Gate()
    queue = build(
        pre_enqueue=[("Gate", gate.pre_enqueue)], registrations={"Gate": (on(Resource.SERVICE, Action.ADD),)}
    )
    queue.add(make_pod("a"), 0.0)
    for _ in range(4):
        queue.requeue(popped_after(queue, "a", 0.0), 0.0, **failure)
    record = popped_after(queue, "a", 0.0)
    gate.closed = True
    queue.notify(node_added(), None, None, 0.0)
    queue.requeue(record, 0.0, **failure)
    assert queue.position("a") is Position.GATED
    gate.closed = False
    queue.notify(occurrence(Resource.SERVICE, Action.ADD), None, None, 1.0)
    assert queue.position("a") is home
    assert queue.next_wakeup() == 11.0
    queue.flush(11.0)
    assert queue.position("a") is Position.ACTIVE


def test_d11_pods_with_scheduling_gates_are_never_flushed() -> None:
    queue = build(pre_enqueue=[("SchedulingGates", SchedulingGates().pre_enqueue)])
    queue.flush(0.0)
    queue.add(make_pod("a", spec=GATED), 0.0)
    for tick in range(30):
        queue.flush(30.0 * tick)
    assert queue.position("a") is Position.GATED
    assert lengths(queue) == (0, 0, 0, 1)
