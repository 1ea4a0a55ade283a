"""Field cases A7, A8 and G5 in the call queue alone: newest pods, nominations, events."""

from __future__ import annotations

import pytest

from callkit import (
    Rig,
    bind,
    body_of,
    event,
    ok,
    patch,
    pod,
    pod_key,
    unschedulable,
)
from pilotage.api.meta import Condition
from pilotage.calls.defaults import default_call_types
from pilotage.calls.lanes import LaneLimits
from pilotage.calls.queue import CallQueue
from pilotage.calls.types import Lane
from pilotage.framework.calls import CallResult


@pytest.fixture
def rig() -> Rig:
    return Rig()


# A7: the patch is computed on the newest pod


def test_a7_patch_is_computed_on_the_newest_pod(rig: Rig) -> None:
    old = unschedulable("old text", last_transition_time="2023-01-01T00:00:00Z")
    newest = pod(version=11, nominated="n1", conditions=[old])
    rig.offer(patch("new text"), newest)
    tree = body_of(rig.one())
    assert tree["metadata"]["resourceVersion"] == "11"
    assert "nominatedNodeName" not in tree["status"]
    (condition,) = tree["status"]["conditions"]
    assert (condition["message"], condition["lastTransitionTime"]) == ("new text", "2023-01-01T00:00:00Z")


def test_a7_time_of_transition_moves_when_the_status_flips(rig: Rig) -> None:
    before = Condition(type="PodScheduled", status="True", last_transition_time="2023-01-01T00:00:00Z")
    rig.offer(patch(), pod(conditions=[before]))
    (condition,) = body_of(rig.one())["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2023-11-14T22:13:20Z"


def test_a7_nothing_waits_for_a_deleted_pod(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod())
    rig.cancel(pod_key().uid, "deleted")
    assert rig.result(ticket) is CallResult.CANCELLED
    assert rig.queue.is_idle


# A8 (evictions come later): nominations overtake failure patches


def limited() -> Rig:
    limits = {Lane.STATUS: LaneLimits(4), Lane.NOMINATION: LaneLimits(2)}
    return Rig(CallQueue(default_call_types("host"), limits))


def test_a8_nomination_leaves_at_once_past_50_held_patches() -> None:
    rig = limited()
    for number in range(50):
        rig.offer(patch(name=f"p{number}"), pod(f"p{number}"))
    held = rig.take()
    assert [d.key.name for d in held] == ["p0", "p1", "p2", "p3"]
    rig.offer(patch(name="h", node="n1"), pod("h"))
    (nomination,) = rig.take()
    assert (nomination.key.name, nomination.lane) == ("h", Lane.NOMINATION)
    rig.answer(nomination, ok())
    drained = [d.key.name for d in held]
    while held:
        rig.pass_time(10)
        for dispatch in held:
            rig.answer(dispatch, ok())
        held = rig.take()
        assert len(held) <= 4
        drained += [d.key.name for d in held]
    assert drained == [f"p{number}" for number in range(50)]


def test_a8_every_waiter_learns_of_the_end() -> None:
    rig = limited()
    tickets = [rig.offer(patch(name=f"p{n}"), pod(f"p{n}")) for n in range(50)]
    rig.take()
    rig.note(rig.queue.drain("closing", rig.now))
    assert [rig.result(t) for t in tickets[4:]] == [CallResult.CANCELLED] * 46
    rig.note(rig.queue.shutdown("closing", rig.now))
    assert {rig.result(t) for t in tickets} == {CallResult.CANCELLED}


# G5: events are bounded and folded


def test_g5_events_are_bounded_in_number_and_age() -> None:
    limits = {Lane.EVENT: LaneLimits(2, cap=100, max_age=60)}
    rig = Rig(CallQueue(default_call_types("host"), limits), check_every=100)
    for number in range(3000):
        rig.offer(event(f"p{number}"))
        rig.pass_time(0.01)
    found = rig.queue.statistics(rig.now)
    assert found.pending["event"] == 100
    assert found.ended["event", CallResult.DROPPED] == 2900
    rig.pass_time(61)
    assert rig.take() == []
    assert rig.queue.is_idle
    assert rig.queue.statistics(rig.now).ended["event", CallResult.DROPPED] == 3000


def test_g5_equal_events_become_one_with_a_count(rig: Rig) -> None:
    for _ in range(5):
        rig.offer(event())
        rig.pass_time(1)
    rig.offer(event(note="another text"))
    first, other = rig.take()
    assert body_of(first)["series"] == {"count": 5, "lastObservedTime": "2023-11-14T22:13:24.000000Z"}
    assert "series" not in body_of(other)


def test_g5_binds_do_not_wait_behind_events() -> None:
    rig = Rig(check_every=100)
    for number in range(500):
        rig.offer(event(f"p{number}"))
    rig.offer(bind())
    assert rig.take(room=1)[0].call_type == "pod_binding"
