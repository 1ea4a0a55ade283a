"""The scheduling queue: order, backoff, flush, events in flight (spec/queue.md; D1, D2, D4, D10, G4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pilotage.framework.plugin import QueuedPod
from pilotage.scheduling.cluster_events import node_added
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.queue_record import BackoffSettings, QueueProfile
from pilotage.scheduling.transitions import IllegalMoveError, Position
from queuekit import (
    GATED,
    TOLERATION,
    Gate,
    SchedulingGates,
    build,
    by_priority,
    drain,
    lengths,
    make_pod,
    park,
    popped,
    popped_after,
)


@pytest.fixture
def queue() -> Iterator[SchedulingQueue]:
    queue = build()
    yield queue
    queue.check_invariants()


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
