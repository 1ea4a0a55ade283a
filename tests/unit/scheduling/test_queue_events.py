"""The scheduling queue: which events wake a pod, its own updates among them (spec/queue.md; D7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotage.framework.events import Action, Hint, Resource
from pilotage.scheduling.cluster_events import node_added, occurrence, pod_deleted
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.transitions import Position
from queuekit import (
    NODE_LABEL,
    NODE_TAINT,
    TOLERATION,
    build,
    drain,
    lengths,
    make_pod,
    on,
    park,
    popped,
)


@pytest.fixture
def queue() -> Iterator[SchedulingQueue]:
    queue = build()
    yield queue
    queue.check_invariants()


# -- events and hints ----------------------------------------------------------------------------


def test_only_events_registered_by_a_rejector_wake_a_pod(queue: SchedulingQueue) -> None:
    park(queue, "a")
    queue.notify(NODE_LABEL, None, None, 0.5)
    assert queue.position("a") is Position.UNSCHEDULABLE
    queue.notify(pod_deleted(), None, None, 0.5)
    assert queue.position("a") is Position.BACKOFF


def test_event_after_the_backoff_leads_to_the_active_queue(queue: SchedulingQueue) -> None:
    park(queue, "a")
    queue.notify(pod_deleted(), None, None, 60.0)
    assert queue.position("a") is Position.ACTIVE
    assert queue.drain_moves()[-1].event == "AssignedPodDelete"


def test_hint_that_skips_leaves_the_pod_where_it_is(queue: SchedulingQueue) -> None:
    park(queue, "a", unschedulable={"Taints"})
    queue.notify(NODE_TAINT, None, None, 1.0)
    assert queue.position("a") is Position.UNSCHEDULABLE


def test_hint_that_raises_counts_as_queue() -> None:
    def broken(*_: object) -> Hint:
        raise ValueError("broken hint")

    queue = build(registrations={"Broken": (on(Resource.NODE, Action.ADD, broken),)})
    park(queue, "a", unschedulable={"Broken"})
    queue.notify(node_added(), None, None, 60.0)
    assert queue.position("a") is Position.ACTIVE


def test_node_add_implies_node_taint_unless_registered(queue: SchedulingQueue) -> None:
    park(queue, "a")
    queue.notify(NODE_TAINT, None, None, 60.0)
    assert queue.position("a") is Position.ACTIVE


def test_plugin_without_registrations_and_unknown_rejector_are_woken_by_every_event() -> None:
    queue = build(registrations={"Silent": ()})
    park(queue, "a", unschedulable={"Silent"})
    park(queue, "b", unschedulable={"Extender"})
    queue.notify(occurrence(Resource.PVC, Action.UPDATE_OTHER), None, None, 60.0)
    assert lengths(queue) == (2, 0, 0, 0)


def test_pending_plugin_sends_the_pod_to_the_active_queue_at_once(queue: SchedulingQueue) -> None:
    park(queue, "a", pending={"Fit"}, unschedulable={"Labels"})
    queue.notify(NODE_LABEL, None, None, 0.1)
    assert queue.position("a") is Position.BACKOFF
    queue.delete("a")
    park(queue, "b", pending={"Fit"}, unschedulable={"Labels"})
    queue.notify(node_added(), None, None, 0.1)
    assert queue.position("b") is Position.ACTIVE


def test_events_since_the_pop_are_judged_when_the_attempt_fails(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    queue.add(make_pod("b"), 0.0)
    first = popped(queue, 0.0)
    queue.notify(pod_deleted(), None, None, 0.0)
    second = popped(queue, 0.0)
    queue.requeue(first, 0.0, unschedulable={"Fit"})
    queue.requeue(second, 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.BACKOFF
    assert queue.position("b") is Position.UNSCHEDULABLE  # the event came before its pop


def test_events_nobody_registered_are_not_kept(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    popped(queue, 0.0)
    queue.notify(occurrence(Resource.CSI_NODE, Action.ADD), None, None, 0.0)
    assert queue.statistics().in_flight_events == {"PodPopped": 1}


def test_binding_failure_after_done_backs_off(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    queue.done("a")
    queue.requeue(record, 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.ERROR_BACKOFF
    assert not queue.has_work


def test_a_rejected_binding_does_not_wake_its_own_pod(queue: SchedulingQueue) -> None:
    park(queue, "a")
    park(queue, "b")
    queue.notify(pod_deleted(), None, None, 60.0, only=lambda pod: pod.name != "a")
    assert (queue.position("a"), queue.position("b")) == (Position.UNSCHEDULABLE, Position.ACTIVE)


def test_activate_moves_parked_pods_and_marks_those_in_flight(queue: SchedulingQueue) -> None:
    park(queue, "a")
    queue.add(make_pod("b"), 0.0)
    record = popped(queue, 0.0)
    queue.activate(["a", "b", "unknown"], 0.0)
    assert queue.position("a") is Position.ACTIVE
    queue.requeue(record, 0.0, unschedulable={"Fit"})
    assert queue.position("b") is Position.BACKOFF


def test_long_flight_gives_up_its_log_and_counts_as_hit() -> None:
    queue = build()
    queue._in_flight._limit = 10
    queue.add(make_pod("slow"), 0.0)
    queue.add(make_pod("next"), 0.0)
    slow, follower = popped(queue, 0.0), popped(queue, 0.0)
    for _ in range(11):
        queue.notify(node_added(), None, None, 0.0)
    queue.check_invariants()
    queue.requeue(slow, 0.0, unschedulable={"Labels"})
    assert queue.position("slow") is Position.ERROR_BACKOFF
    queue.requeue(follower, 0.0, unschedulable={"Labels"})
    assert queue.position("next") is Position.UNSCHEDULABLE
    assert queue.statistics().in_flight_events == {}


# -- own updates ---------------------------------------------------------------------------------


def test_d7_own_toleration_requeues_but_an_annotation_does_not(queue: SchedulingQueue) -> None:
    park(queue, "a", unschedulable={"Taints"})
    queue.update(make_pod("a", version=2, metadata={"annotations": {"x": "y"}}), 60.0)
    assert queue.position("a") is Position.UNSCHEDULABLE
    queue.update(make_pod("a", version=3, spec=TOLERATION), 60.0)
    assert queue.position("a") is Position.ACTIVE
    assert queue.drain_moves()[-1].event == "UnschedulablePodUpdatePodToleration"


def test_own_update_in_flight_is_an_event_for_that_pod_alone(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    queue.add(make_pod("b"), 0.0)
    first, second = popped(queue, 0.0), popped(queue, 0.0)
    queue.update(make_pod("a", version=2, spec=TOLERATION), 0.0)
    queue.requeue(first, 0.0, unschedulable={"Taints"})
    queue.requeue(second, 0.0, unschedulable={"Taints"})
    assert (queue.position("a"), queue.position("b")) == (Position.BACKOFF, Position.UNSCHEDULABLE)


def test_update_in_the_active_queue_replaces_object_and_order(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    queue.add(make_pod("b"), 1.0)
    queue.update(make_pod("b", priority=9), 2.0)
    assert drain(queue, 2.0) == ["b", "a"]


def test_update_of_an_unknown_pod_adds_it(queue: SchedulingQueue) -> None:
    queue.update(make_pod("a"), 0.0)
    assert queue.position("a") is Position.ACTIVE
