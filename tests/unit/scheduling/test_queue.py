"""The scheduling queue: order, backoff, hints, gates, events in flight (spec/queue.md; D1-D11, G4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from pilotage.api.pods import Pod
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import QueuedPod
from pilotage.framework.status import SUCCESS, Status, unschedulable
from pilotage.scheduling.cluster_events import node_added, occurrence, pod_deleted
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.queue_record import BackoffSettings, QueueProfile, Record
from pilotage.scheduling.transitions import IllegalMoveError, Position
from pilotage.state.podinfo import PodInfo

NODE_TAINT = occurrence(Resource.NODE, Action.UPDATE_NODE_TAINT)
NODE_LABEL = occurrence(Resource.NODE, Action.UPDATE_NODE_LABEL)


def make_pod(name: str, *, priority: int = 0, version: int = 1, **parts: Any) -> PodInfo:
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    metadata |= parts.pop("metadata", {})
    spec = {"priority": priority, "containers": []} | parts.pop("spec", {})
    return PodInfo(msgspec.convert({"metadata": metadata, "spec": spec} | parts, Pod))


def on(resource: Resource, action: Action, hint: Any = None) -> EventRegistration:
    return EventRegistration(ClusterEvent(resource, action), hint)


def by_priority(queued: QueuedPod) -> tuple[int, float]:
    return (-queued.pod.priority, queued.timestamp)


class SchedulingGates:
    """Held until the gate list is empty."""

    def __init__(self) -> None:
        self.calls = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.calls += 1
        return unschedulable("gated") if pod.pod.spec.scheduling_gates else SUCCESS


class Gate:
    """Held while `closed`."""

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed
        self.calls = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.calls += 1
        return unschedulable(f"{pod.key} held") if self.closed else SUCCESS


GATES_GONE = on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
DEFAULT_REGISTRATIONS: dict[str, tuple[EventRegistration, ...]] = {
    "Fit": (on(Resource.POD, Action.DELETE), on(Resource.NODE, Action.ADD)),
    "Taints": (
        on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, lambda pod, old, new: Hint.SKIP),
        on(Resource.POD, Action.UPDATE_POD_TOLERATION),
    ),
    "Labels": (on(Resource.NODE, Action.UPDATE_NODE_LABEL),),
    "SchedulingGates": (GATES_GONE,),
}


def build(**changes: Any) -> SchedulingQueue:
    registrations = DEFAULT_REGISTRATIONS | changes.pop("registrations", {})
    profile = QueueProfile(by_priority, registrations=registrations, **changes)
    return SchedulingQueue({"default-scheduler": profile}, BackoffSettings())


@pytest.fixture
def queue() -> Iterator[SchedulingQueue]:
    queue = build()
    yield queue
    queue.check_invariants()


def popped(queue: SchedulingQueue, now: float) -> Record:
    record = queue.pop(now)
    assert record is not None
    return record


def drain(queue: SchedulingQueue, now: float) -> list[str]:
    names = []
    while (record := queue.pop(now)) is not None:
        names.append(record.pod.name)
    return names


def lengths(queue: SchedulingQueue) -> tuple[int, int, int, int]:
    found = queue.statistics()
    return (found.active, found.backoff, found.unschedulable, found.gated)


# -- order and backoff ---------------------------------------------------------------------------


def test_pops_by_priority_then_by_time_then_by_arrival(queue: SchedulingQueue) -> None:
    queue.add(make_pod("late"), 2.0)
    queue.add(make_pod("early"), 1.0)
    queue.add(make_pod("twin"), 1.0)
    queue.add(make_pod("high", priority=5), 3.0)
    assert drain(queue, 4.0) == ["high", "early", "twin", "late"]


def test_backoff_doubles_to_its_maximum_and_ends_on_a_whole_second(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.25)
    now = 0.25
    waits = []
    for _ in range(6):
        record = popped(queue, now)
        queue.requeue(record, now)  # an error
        wakeup = queue.next_wakeup()
        assert wakeup is not None
        queue.flush(wakeup - 0.01)
        assert queue.position("a") is Position.ERROR_BACKOFF
        queue.flush(wakeup)
        assert queue.position("a") is Position.ACTIVE
        waits.append(wakeup - now)
        now = wakeup
    assert waits == [1.75, 3.0, 5.0, 9.0, 11.0, 11.0]


def test_errors_in_a_row_take_precedence_and_a_rejection_resets_them(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    queue.requeue(record, 0.0)
    queue.requeue(popped_after(queue, "a", 2.0), 2.0)
    assert record.consecutive_errors == 2
    queue.requeue(popped_after(queue, "a", 10.0), 10.0, unschedulable={"Fit"})
    assert (record.consecutive_errors, record.unschedulable_count) == (0, 1)


def popped_after(queue: SchedulingQueue, uid: str, now: float) -> Record:
    queue.flush(now)
    queue.activate([uid], now)
    return popped(queue, now)


def test_maximum_of_zero_switches_backoff_off() -> None:
    queue = SchedulingQueue({"default-scheduler": QueueProfile(by_priority)}, BackoffSettings(1.0, 0.0))
    queue.add(make_pod("a"), 0.0)
    queue.requeue(popped(queue, 0.0), 0.0)
    assert queue.position("a") is Position.ACTIVE


def test_rejected_pod_in_backoff_is_popped_when_nothing_else_waits(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    queue.notify(node_added(), None, None, 0.0)
    queue.requeue(record, 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.BACKOFF
    queue.add(make_pod("b"), 0.0)
    assert drain(queue, 0.0) == ["b", "a"]


def test_a_pod_has_one_early_try_and_waits_out_its_backoff_then(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    for expected in (Position.BACKOFF, Position.ERROR_BACKOFF):
        record = popped(queue, 0.0)
        queue.notify(node_added(), None, None, 0.0)
        queue.requeue(record, 0.0, unschedulable={"Fit"})
        assert queue.position("a") is expected
    assert not queue.has_work
    queue.flush(3.0)
    record = popped(queue, 3.0)
    queue.notify(node_added(), None, None, 3.0)
    queue.requeue(record, 3.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.BACKOFF


def test_an_event_after_a_vain_early_try_does_not_end_the_backoff(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    queue.notify(node_added(), None, None, 0.0)
    queue.requeue(record, 0.0, unschedulable={"Fit"})
    queue.requeue(popped(queue, 0.0), 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.UNSCHEDULABLE
    queue.notify(node_added(), None, None, 0.5)
    assert queue.position("a") is Position.ERROR_BACKOFF


def test_d10_error_backoff_is_never_popped_early(queue: SchedulingQueue) -> None:
    queue.add(make_pod("sick"), 0.0)
    attempts = []
    for second in range(11):
        queue.flush(float(second))
        while (record := queue.pop(float(second))) is not None:
            attempts.append(second)
            queue.requeue(record, float(second))
    assert attempts[0] == 0
    assert len(attempts) <= 4
    assert queue.has_work is False


# -- events and hints ----------------------------------------------------------------------------


def park(queue: SchedulingQueue, name: str, now: float = 0.0, **rejected: Any) -> Record:
    queue.add(make_pod(name), now)
    record = popped(queue, now)
    queue.requeue(record, now, **(rejected or {"unschedulable": {"Fit"}}))
    assert queue.position(name) is Position.UNSCHEDULABLE
    return record


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


TOLERATION = {"tolerations": [{"key": "x", "operator": "Exists"}]}


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


# -- gates ---------------------------------------------------------------------------------------

GATED = {"schedulingGates": [{"name": "x"}]}


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


# -- flush, in flight, statistics ----------------------------------------------------------------


def test_pods_older_than_five_minutes_are_flushed(queue: SchedulingQueue) -> None:
    queue.flush(0.0)
    record = park(queue, "a", 10.0)
    for second in range(0, 301, 30):
        queue.flush(float(second))
    assert queue.position("a") is Position.UNSCHEDULABLE
    queue.flush(330.0)
    assert queue.position("a") is Position.ACTIVE
    assert record.flushed
    assert queue.drain_moves()[-1].event == "UnschedulableTimeout"


def test_d1_done_pods_leave_no_events_behind(queue: SchedulingQueue) -> None:
    queue.add(make_pod("skipped"), 0.0)
    popped(queue, 0.0)
    queue.done("skipped")
    for number in range(10_000):
        queue.notify(node_added(), None, None, 0.0)
        if number % 100 == 0:
            queue.add(make_pod(f"p{number}"), 0.0)
            popped(queue, 0.0)
            queue.notify(node_added(), None, None, 0.0)
            queue.done(f"p{number}")
    found = queue.statistics()
    assert (found.in_flight, dict(found.in_flight_events)) == (0, {})


def test_d1_a_pod_deleted_in_flight_leaves_no_marker(queue: SchedulingQueue) -> None:
    queue.add(make_pod("a"), 0.0)
    popped(queue, 0.0)
    queue.notify(node_added(), None, None, 0.0)
    queue.delete("a")
    assert queue.statistics().in_flight_events == {}


def test_d2_rejectors_are_emptied_at_each_attempt(queue: SchedulingQueue) -> None:
    park(queue, "a")
    queue.notify(node_added(), None, None, 60.0)
    record = popped(queue, 60.0)
    assert not record.rejectors
    queue.requeue(record, 60.0)
    assert queue.position("a") is Position.ERROR_BACKOFF
    queue.flush(62.0)
    assert queue.position("a") is Position.ACTIVE


def test_d4_a_queue_with_a_poppable_pod_says_so(queue: SchedulingQueue) -> None:
    assert not queue.has_work
    queue.add(make_pod("a"), 0.0)
    record = popped(queue, 0.0)
    queue.notify(node_added(), None, None, 0.0)
    queue.requeue(record, 0.0, pending={"Fit"})
    assert queue.has_work
    assert queue.position("a") is Position.ACTIVE


def test_g4_lengths_are_the_real_ones_at_every_step() -> None:
    gates, quota = SchedulingGates(), Gate()
    queue = build(
        pre_enqueue=[("SchedulingGates", gates.pre_enqueue), ("Quota", quota.pre_enqueue)],
        registrations={"Quota": ()},
    )
    queue.add(make_pod("one", spec=GATED), 0.0)
    assert lengths(queue) == (0, 0, 0, 1)
    queue.update(make_pod("one", version=2), 0.0)
    assert lengths(queue) == (1, 0, 0, 0)
    queue.requeue(popped(queue, 0.0), 0.0, unschedulable={"Labels"})
    assert lengths(queue) == (0, 0, 1, 0)
    queue.delete("one")
    queue.add(make_pod("three", spec=GATED), 0.0)
    queue.delete("three")
    assert lengths(queue) == (0, 0, 0, 0)
    park(queue, "four", unschedulable={"Taints"})
    quota.closed = True
    queue.update(make_pod("four", version=2, spec=TOLERATION), 60.0)
    assert lengths(queue) == (0, 0, 0, 1)
    queue.delete("four")
    assert lengths(queue) == (0, 0, 0, 0)


def test_illegal_move_changes_nothing(queue: SchedulingQueue) -> None:
    record = park(queue, "a")
    queue.activate(["a"], 0.0)
    with pytest.raises(IllegalMoveError):
        queue.requeue(record, 0.0, unschedulable={"Fit"})
    assert queue.position("a") is Position.ACTIVE


def test_sort_key_that_raises_puts_the_pod_last() -> None:
    def fussy(queued: QueuedPod) -> int:
        if queued.pod.name == "odd":
            raise KeyError("odd")
        return queued.pod.priority

    factory: Callable[[QueuedPod], int] = fussy
    queue = SchedulingQueue({"default-scheduler": QueueProfile(factory)}, BackoffSettings())
    queue.add(make_pod("odd"), 0.0)
    queue.add(make_pod("fine", priority=3), 0.0)
    assert drain(queue, 0.0) == ["fine", "odd"]
