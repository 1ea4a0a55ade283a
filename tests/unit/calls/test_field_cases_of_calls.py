"""Field cases A1, A2, A4 and A5 in the call queue alone, under fake time."""

from __future__ import annotations

import pytest

from callkit import (
    EPOCH,
    LOST,
    REFUSED,
    Rig,
    bind,
    body_of,
    ok,
    patch,
    pod,
    status,
    unschedulable,
)
from pilotage.calls.reports import Dispatch
from pilotage.calls.types import Lane, Phase
from pilotage.framework.calls import CallResult
from pilotage.runtime.limiter import TokenBucket


@pytest.fixture
def rig() -> Rig:
    return Rig()


def conflict() -> object:
    return status(409, "Conflict", "the object has been modified")


# A1: a storm of status patches never delays a bind


def run_under_limit(
    rig: Rig, bucket: TokenBucket, seconds: float, share: int
) -> list[tuple[float, Dispatch]]:
    """Sends whatever the bucket allows; answers come at once."""
    sent: list[tuple[float, Dispatch]] = []
    end = rig.now + seconds
    while rig.now < end and not rig.queue.is_idle:
        room = bucket.whole(rig.now) or 0
        taken = rig.take(room, min(share, room))
        bucket.spend(len(taken), rig.now)
        for dispatch in taken:
            sent.append((rig.now, dispatch))
            rig.answer(dispatch, ok(code=201) if dispatch.call_type == "pod_binding" else ok())
        rig.pass_time(bucket.seconds_until((bucket.whole(rig.now) or 0) + 1, rig.now))
    return sent


def test_a1_bind_leaves_at_once_behind_200_status_patches() -> None:
    rig = Rig(check_every=20)
    for number in range(200):
        rig.offer(patch("8 CPU", f"big{number}"), pod(f"big{number}"))
    rig.offer(bind("good"))
    sent = run_under_limit(rig, TokenBucket(5, 5), 60, share=1)
    assert sent[0][1].key.name == "good"
    assert len(sent) == 201
    assert sent[-1][0] - EPOCH <= 60


def test_a1_bind_that_comes_in_the_middle_of_the_storm_leaves_within_2_s() -> None:
    rig = Rig(check_every=20)
    for number in range(200):
        rig.offer(patch("8 CPU", f"big{number}"), pod(f"big{number}"))
    bucket = TokenBucket(5, 5)
    run_under_limit(rig, bucket, 20, share=1)
    ready = rig.now
    rig.offer(bind("good"))
    sent = run_under_limit(rig, bucket, 3, share=1)
    assert next(at for at, dispatch in sent if dispatch.key.name == "good") - ready <= 2


def test_a1_a_stream_of_binds_slows_patches_and_never_stops_them(rig: Rig) -> None:
    rig.offer(patch(name="waiting"), pod("waiting"))
    sent = []
    for number in range(30):
        rig.offer(bind(f"b{number}"))
        rig.offer(bind(f"c{number}"))
        (dispatch,) = rig.take(room=1, spare=1)
        rig.answer(dispatch, ok())
        sent.append(dispatch.call_type)
    assert sent.count("pod_status_patch") == 1


def test_a1_waits_are_visible_per_lane(rig: Rig) -> None:
    for number in range(5):
        rig.offer(patch(name=f"p{number}"), pod(f"p{number}"))
    rig.pass_time(7)
    found = rig.queue.statistics(rig.now)
    assert found.lanes == {Lane.STATUS: 5}
    assert found.oldest == {Lane.STATUS: 7.0}


# A2: patches of one pod never multiply


def test_a2_one_in_flight_and_one_waiting_however_many_attempts_fail(rig: Rig) -> None:
    rig.offer(patch("attempt 0"), pod())
    held = rig.one()
    tickets = []
    for attempt in range(1, 11):
        rig.pass_time(1)
        tickets.append(rig.offer(patch(f"attempt {attempt}"), pod(version=attempt + 1)))
        assert rig.take() == []
        assert rig.queue.statistics(rig.now).pending == {"pod_status_patch": 1}
    rig.answer(held, ok(pod(version=50, conditions=[unschedulable("attempt 0")])))
    last = rig.one()
    assert body_of(last)["status"]["conditions"][0]["message"] == "attempt 10"
    rig.answer(last, ok(pod(version=51, conditions=[unschedulable("attempt 10")])))
    assert rig.result(tickets[-1]) is CallResult.DONE
    assert {rig.result(ticket) for ticket in tickets[:-1]} == {CallResult.OVERWRITTEN}
    assert rig.take() == []


def test_a2_bind_goes_after_the_patch_in_flight_and_drops_the_one_that_waits(rig: Rig) -> None:
    rig.offer(patch("one"), pod())
    held = rig.one()
    waiting = rig.offer(patch("two"))
    bound = rig.offer(bind())
    assert rig.result(waiting) is CallResult.OVERWRITTEN
    assert rig.take() == []
    rig.answer(held, ok(pod(version=2, conditions=[unschedulable("one")])))
    dispatch = rig.one()
    assert dispatch.call_type == "pod_binding"
    rig.answer(dispatch, ok())
    assert rig.result(bound) is CallResult.DONE
    assert rig.queue.is_idle


def test_a2_a_patch_that_keeps_failing_ends_and_tells_so(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod())
    tries = 0
    while rig.result(ticket) is None:
        for dispatch in rig.take():
            tries += 1
            rig.answer(dispatch, status(500, "InternalError", "sick"))
        rig.pass_time((rig.queue.next_wakeup() or rig.now) - rig.now)
    assert (rig.result(ticket), rig.outcomes[ticket].status) == (CallResult.FAILED, 500)
    assert 4 <= tries <= 20
    assert rig.queue.is_idle


# A4: a late patch never lands on a bound pod, and is never lost otherwise


def test_a4_late_patch_refused_by_its_version_is_dropped_when_the_pod_is_bound(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod(version=10))
    late = rig.one()
    assert body_of(late)["metadata"] == {"uid": "uid-p", "resourceVersion": "10"}
    rig.sync(pod(version=12, node="n1"))
    rig.answer(late, conflict())  # type: ignore[arg-type]
    assert rig.result(ticket) is CallResult.SKIPPED
    assert rig.take() == []


def test_a4_without_news_from_informers_the_pod_is_read(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod(version=10))
    rig.answer(rig.one(), conflict())  # type: ignore[arg-type]
    read = rig.one()
    assert (read.phase, read.request.method, read.request.path) == (
        Phase.READ,
        "GET",
        "/api/v1/namespaces/ns/pods/p",
    )
    rig.answer(read, ok(pod(version=12, node="n1")))
    assert rig.result(ticket) is CallResult.SKIPPED


def test_a4_a_label_change_in_between_does_not_lose_the_patch(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod(version=10))
    first = rig.one()
    rig.sync(pod(version=11, labels={"a": "b"}))
    rig.answer(first, conflict())  # type: ignore[arg-type]
    again = rig.one()
    assert (again.request.method, body_of(again)["metadata"]["resourceVersion"]) == ("PATCH", "11")
    rig.answer(again, ok(pod(version=12, conditions=[unschedulable()])))
    assert rig.result(ticket) is CallResult.DONE


def test_a4_a_pending_patch_is_dropped_when_the_pod_is_seen_bound(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod(version=10))
    rig.sync(pod(version=11, node="n1"))
    assert rig.result(ticket) is CallResult.SKIPPED
    assert rig.queue.is_idle


def test_a4_a_patch_of_a_pod_that_is_gone_or_replaced_ends(rig: Rig) -> None:
    gone, replaced = rig.offer(patch(name="a"), pod("a")), rig.offer(patch(name="b"))
    for dispatch in rig.take():
        found = status(404, "NotFound") if dispatch.key.name == "a" else ok(pod("b", uid="another"))
        rig.answer(dispatch, found)
    assert rig.result(gone) is rig.result(replaced) is CallResult.SKIPPED


def test_a4_conflicts_without_end_are_bounded(rig: Rig) -> None:
    ticket = rig.offer(patch(), pod())
    version = 1
    while rig.result(ticket) is None:
        dispatch = rig.one()
        version += 1
        rig.answer(dispatch, ok(pod(version=version)) if dispatch.phase is Phase.READ else conflict())  # type: ignore[arg-type]
        assert version < 50
    assert rig.outcomes[ticket].status == 409


# A5: a bind whose answer is lost


def test_a5_lost_answer_is_verified_by_reading_and_the_bind_stands(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), LOST)
    read = rig.one()
    assert (read.phase, read.request.method) == (Phase.VERIFY, "GET")
    rig.answer(read, ok(pod(version=2, node="n1")))
    assert rig.result(ticket) is CallResult.DONE
    assert rig.queue.is_idle


def test_a5_not_applied_is_sent_again_to_the_same_node(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), LOST)
    rig.answer(rig.one(), ok(pod(version=2)))
    assert rig.take() == []
    rig.pass_time(1)
    again = rig.one()
    assert body_of(again)["target"]["name"] == "n1"
    rig.answer(again, ok())
    assert rig.result(ticket) is CallResult.DONE


def test_a5_conflict_on_the_repeated_bind_is_read_too(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), LOST)
    rig.answer(rig.one(), ok(pod(version=2)))
    rig.pass_time(1)
    rig.answer(rig.one(), conflict())  # type: ignore[arg-type]
    rig.answer(rig.one(), ok(pod(version=3, node="n1")))
    assert rig.result(ticket) is CallResult.DONE


def test_a5_nothing_is_sent_to_the_pod_before_it_was_read(rig: Rig) -> None:
    first = rig.offer(bind(node="n1"))
    rig.answer(rig.one(), LOST)
    second = rig.offer(bind(node="n2"))
    for _ in range(5):
        read = rig.one()
        assert read.phase is Phase.VERIFY
        rig.answer(read, LOST)
        assert rig.take() == []
        rig.pass_time(20)
    rig.answer(rig.one(), ok(pod(version=2, node="n1")))
    assert rig.result(first) is CallResult.DONE
    assert rig.outcomes[second].status == 409
    assert rig.take() == []


def test_a5_informers_may_settle_an_unanswered_bind(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), LOST)
    rig.answer(rig.one(), LOST)
    rig.sync(pod(version=2, node="n1"))
    assert rig.result(ticket) is CallResult.DONE
    assert rig.queue.is_idle


@pytest.mark.parametrize("seen", [status(404, "NotFound"), ok(pod(uid="another"))])
def test_a5_pod_gone_after_an_unanswered_bind(rig: Rig, seen: object) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), LOST)
    rig.answer(rig.one(), seen)  # type: ignore[arg-type]
    assert rig.outcomes[ticket].status == 404


def test_a5_a_request_that_never_left_is_simply_sent_again(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), REFUSED)
    rig.pass_time(1)
    again = rig.one()
    assert again.phase is Phase.SEND
    rig.answer(again, ok())
    assert rig.result(ticket) is CallResult.DONE


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422, 500, 503])
def test_an_answered_error_ends_the_bind(rig: Rig, code: int) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), status(code, "Because", "no"))
    assert rig.outcomes[ticket].result is CallResult.FAILED
    assert (rig.outcomes[ticket].status, rig.outcomes[ticket].reason) == (code, "Because")
    assert rig.queue.is_idle


def test_429_is_tried_again_after_what_the_server_asked_for(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), status(429, "TooManyRequests", retry_after="7"))
    rig.pass_time(6.9)
    assert rig.take() == []
    assert rig.queue.next_wakeup() == EPOCH + 7
    rig.pass_time(0.2)
    rig.answer(rig.one(), ok())
    assert rig.result(ticket) is CallResult.DONE


def test_429_that_asks_for_too_long_ends_the_attempt(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.answer(rig.one(), status(429, "TooManyRequests", retry_after="3600"))
    assert rig.outcomes[ticket].status == 429


def test_waiting_long_for_a_turn_does_not_use_up_the_tries(rig: Rig) -> None:
    ticket = rig.offer(bind())
    rig.pass_time(600)
    rig.answer(rig.one(), status(429, "TooManyRequests", retry_after="1"))
    rig.pass_time(1)
    rig.answer(rig.one(), ok())
    assert rig.result(ticket) is CallResult.DONE


@pytest.mark.parametrize(("refusals", "result"), [(55, CallResult.DONE), (65, CallResult.FAILED)])
def test_429_is_bounded_by_age_and_not_by_tries(rig: Rig, refusals: int, result: CallResult) -> None:
    ticket = rig.offer(bind())
    for _ in range(refusals):
        if ticket in rig.outcomes:
            break
        rig.answer(rig.one(), status(429, "TooManyRequests", retry_after="1"))
        rig.pass_time(1)
    for dispatch in rig.take():
        rig.answer(dispatch, ok())
    assert rig.result(ticket) is result


def test_429_that_asks_for_no_time_is_not_tried_again_at_once(rig: Rig) -> None:
    rig.offer(bind())
    waits = []
    for _ in range(6):
        rig.answer(rig.one(), status(429, "TooManyRequests", retry_after="0"))
        due = rig.queue.next_wakeup()
        assert due is not None
        waits.append(due - rig.now)
        rig.pass_time(waits[-1])
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2], abs=1e-5)
