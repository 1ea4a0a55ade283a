"""The call queue: relevance, merging, order, one in flight per object (A2 to A5, A8)."""

from __future__ import annotations

import pytest

from callkit import EPOCH, Rig, bind, body_of, event, ok, patch, pod, status, unschedulable
from pilotage.api.meta import Condition
from pilotage.calls.queue import UnknownDispatchError
from pilotage.framework.calls import Call, CallResult, ObjectKey

PLUGIN = Condition(type="example.com/Checked", status="True", reason="Ok", message="fine")


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_call_is_sent_and_done(rig: Rig) -> None:
    ticket = rig.offer(bind())
    dispatch = rig.one()
    assert (dispatch.request.method, dispatch.request.path) == (
        "POST",
        "/api/v1/namespaces/ns/pods/p/binding",
    )
    assert body_of(dispatch)["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert body_of(dispatch)["metadata"]["uid"] == "uid-p"
    rig.answer(dispatch, ok(code=201))
    assert rig.result(ticket) is CallResult.DONE
    assert rig.queue.is_idle


def test_newer_wish_of_a_type_overwrites_the_pending_one_and_keeps_its_place(rig: Rig) -> None:
    first = rig.offer(patch("one", "a"), pod("a"))
    rig.offer(patch("other", "b"), pod("b"))
    second = rig.offer(patch("two", "a"))
    assert rig.result(first) is CallResult.OVERWRITTEN
    sent = rig.take()
    assert [d.key.name for d in sent] == ["a", "b"]
    assert body_of(sent[0])["status"]["conditions"][0]["message"] == "two"
    rig.answer(sent[0], ok(pod("a", 2)))
    assert rig.result(second) is CallResult.DONE


def test_merge_keeps_what_the_newer_wish_says_nothing_about(rig: Rig) -> None:
    rig.offer(patch("one", node="n1", conditions=[unschedulable("one"), PLUGIN]), pod())
    rig.offer(patch("two"))
    tree = body_of(rig.one())["status"]
    assert tree["nominatedNodeName"] == "n1"
    assert {c["type"]: c["message"] for c in tree["conditions"]} == {
        "PodScheduled": "two",
        "example.com/Checked": "fine",
    }


def test_newest_nomination_wins_also_when_it_clears(rig: Rig) -> None:
    rig.offer(patch(node="n1", conditions=[]), pod(nominated="n0"))
    rig.offer(patch(node="", conditions=[]))
    assert body_of(rig.one())["status"] == {"nominatedNodeName": None}


def test_bind_overwrites_a_pending_patch(rig: Rig) -> None:
    patched = rig.offer(patch(), pod())
    bound = rig.offer(bind())
    assert rig.result(patched) is CallResult.OVERWRITTEN
    dispatch = rig.one()
    assert dispatch.call_type == "pod_binding"
    rig.answer(dispatch, ok())
    assert rig.result(bound) is CallResult.DONE
    assert rig.queue.is_idle


def test_patch_is_skipped_while_a_bind_is_on_its_way(rig: Rig) -> None:
    rig.offer(bind(), pod())
    pending = rig.offer(patch())
    dispatch = rig.one()
    in_flight = rig.offer(patch("two"))
    rig.answer(dispatch, ok())
    assert rig.result(pending) is rig.result(in_flight) is CallResult.SKIPPED
    assert rig.queue.is_idle


@pytest.mark.parametrize("bind_first", [True, False])
def test_a_plugins_condition_survives_a_bind_and_is_sent_after_it(rig: Rig, bind_first: bool) -> None:
    both = patch(node="n1", conditions=[unschedulable(), PLUGIN])
    calls: list[Call] = [bind(), both] if bind_first else [both, bind()]
    tickets = [rig.offer(call, pod()) for call in calls]
    rig.answer(rig.one(), ok())
    rig.sync(pod(version=2, node="n1"))
    dispatch = rig.one()
    assert dispatch.call_type == "pod_status_patch"
    tree = body_of(dispatch)
    assert [c["type"] for c in tree["status"]["conditions"]] == ["example.com/Checked"]
    assert "nominatedNodeName" not in tree["status"]
    assert tree["metadata"]["resourceVersion"] == "2"
    rig.answer(dispatch, ok(pod(version=3, node="n1", conditions=[PLUGIN])))
    assert {rig.result(t) for t in tickets} == {CallResult.DONE}


def test_no_op_is_never_sent(rig: Rig) -> None:
    ticket = rig.offer(patch("same", node="n1"), pod(nominated="n1", conditions=[unschedulable("same")]))
    assert rig.result(ticket) is CallResult.SKIPPED
    assert rig.take() == []
    assert rig.queue.is_idle


def test_reverting_update_removes_the_pending_one(rig: Rig) -> None:
    before = pod(conditions=[unschedulable("old")])
    first = rig.offer(patch("new"), before)
    second = rig.offer(patch("old"), before)
    assert rig.result(first) is CallResult.OVERWRITTEN
    assert rig.result(second) is CallResult.SKIPPED
    assert rig.queue.is_idle


def test_one_in_flight_per_object_and_the_next_is_judged_again(rig: Rig) -> None:
    first = rig.offer(patch("one"), pod())
    dispatch = rig.one()
    same = rig.offer(patch("one"))
    assert rig.take() == []
    assert rig.result(same) is None
    rig.answer(dispatch, ok(pod(version=2, conditions=[unschedulable("one")])))
    assert rig.result(first) is CallResult.DONE
    assert rig.result(same) is CallResult.SKIPPED
    assert rig.queue.is_idle


def test_a_change_back_while_in_flight_is_sent_after_it(rig: Rig) -> None:
    old = pod(conditions=[unschedulable("old")])
    rig.offer(patch("new"), old)
    dispatch = rig.one()
    back = rig.offer(patch("old"), old)
    rig.answer(dispatch, ok(pod(version=2, conditions=[unschedulable("new")])))
    second = rig.one()
    assert body_of(second)["status"]["conditions"][0]["message"] == "old"
    assert body_of(second)["metadata"]["resourceVersion"] == "2"
    rig.answer(second, ok(pod(version=3, conditions=[unschedulable("old")])))
    assert rig.result(back) is CallResult.DONE


def test_objects_are_independent(rig: Rig) -> None:
    for name in "abc":
        rig.offer(patch(name=name), pod(name))
    assert [d.key.name for d in rig.take()] == ["a", "b", "c"]


def test_informer_object_comes_back_with_the_pending_change(rig: Rig) -> None:
    rig.offer(patch("wait", node="n1"), pod())
    seen = rig.sync(pod(version=2, labels={"a": "b"}))
    assert seen.status.nominated_node_name == "n1"  # type: ignore[attr-defined]  # a Pod went in
    assert seen.metadata.labels == {"a": "b"}
    assert body_of(rig.one())["metadata"]["resourceVersion"] == "2"


def test_informer_shows_the_wished_change(rig: Rig) -> None:
    ticket = rig.offer(patch("wait"), pod())
    rig.sync(pod(version=2, conditions=[unschedulable("wait")]))
    assert rig.result(ticket) is CallResult.SKIPPED
    assert rig.queue.is_idle


def test_older_informer_object_does_not_become_the_base(rig: Rig) -> None:
    rig.offer(patch("wait"), pod(version=10))
    rig.sync(pod(version=9))
    assert body_of(rig.one())["metadata"]["resourceVersion"] == "10"


def test_a_pod_bound_by_hand_ends_the_pending_bind(rig: Rig) -> None:
    other, same = rig.offer(bind("a", "n1")), rig.offer(bind("b", "n1"))
    rig.sync(pod("a", 2, node="n9"))
    rig.sync(pod("b", 2, node="n1"))
    assert rig.outcomes[other].result is CallResult.FAILED
    assert rig.outcomes[other].status == 409
    assert rig.result(same) is CallResult.DONE
    assert rig.take() == []


def test_cancel_drops_what_waits_and_lets_the_answer_end_what_is_out(rig: Rig) -> None:
    waiting = rig.offer(patch(name="a"), pod("a"))
    out = rig.offer(patch(name="b"), pod("b"))
    behind = 0
    for dispatch in rig.take():
        if dispatch.key.name == "a":
            rig.answer(dispatch, status(503, "ServiceUnavailable"))
        else:
            behind = rig.offer(patch("newer", "b"))
            rig.cancel("uid-b")
            rig.answer(dispatch, status(500, "InternalError"))
    rig.cancel("uid-a")
    assert {rig.result(t) for t in (waiting, out, behind)} == {CallResult.CANCELLED}
    assert rig.queue.is_idle


def test_unknown_call_type_and_nonsense_are_refused_and_harm_nothing(rig: Rig) -> None:
    class Odd(Call):
        @property
        def call_type(self) -> str:
            return "odd"

    ticket = rig.offer(Odd(ObjectKey("pods", "ns", "p", "u")))
    assert rig.outcomes[ticket].error == "unknown call type 'odd'"
    (none,) = rig.queue.offer(None, EPOCH, 77)  # type: ignore[arg-type]  # what a broken plugin may do
    assert none.outcome.result is CallResult.FAILED
    assert none.ticket == 77


def test_finish_of_an_unknown_dispatch_is_refused(rig: Rig) -> None:
    rig.offer(bind())
    dispatch = rig.one()
    rig.answer(dispatch, ok())
    with pytest.raises(UnknownDispatchError, match=str(dispatch.id)):
        rig.queue.finish(dispatch.id, ok(), rig.now)


def test_statistics_and_list_of_pending_calls(rig: Rig) -> None:
    rig.offer(bind("a"))
    rig.offer(patch(name="b"), pod("b"))
    rig.offer(patch("two", "b"))
    rig.take(room=1)
    rig.pass_time(3)
    found = rig.queue.statistics(rig.now)
    assert found.pending == {"pod_status_patch": 1}
    assert found.in_flight == {"pod_binding": 1}
    assert found.requests == {"pod_binding": 1}
    assert found.ended["pod_status_patch", CallResult.OVERWRITTEN] == 1
    (waiting,) = [c for c in rig.queue.pending(rig.now) if not c.in_flight]
    assert (waiting.key.name, waiting.age) == ("b", 3.0)


def test_drain_keeps_a_bind_that_waits_behind_its_pods_own_patch(rig: Rig) -> None:
    rig.offer(patch())
    out = rig.one()
    ticket = rig.offer(bind())
    rig.note(rig.queue.drain("closing", rig.now))
    assert rig.result(ticket) is None
    rig.answer(out, ok(pod(version=2)))
    rig.answer(rig.one(), ok(code=201))
    assert rig.result(ticket) is CallResult.DONE
    assert rig.queue.is_idle


def test_drain_sends_binds_only_and_refuses_new_calls(rig: Rig) -> None:
    bound = rig.offer(bind("a"))
    patched, recorded = rig.offer(patch(name="b"), pod("b")), rig.offer(event("c"))
    rig.note(rig.queue.drain("closing", rig.now))
    assert rig.result(patched) is rig.result(recorded) is CallResult.CANCELLED
    late = rig.offer(bind("d"))
    assert rig.outcomes[late].error == "closing"
    rig.answer(rig.one(), ok())
    assert rig.result(bound) is CallResult.DONE


def test_shutdown_ends_everything(rig: Rig) -> None:
    tickets = [rig.offer(bind("a")), rig.offer(patch(name="b"), pod("b"))]
    rig.take()
    tickets.append(rig.offer(patch("two", "b")))
    rig.note(rig.queue.shutdown("closing", rig.now))
    assert {rig.result(t) for t in tickets} == {CallResult.CANCELLED}
    assert rig.queue.is_idle
