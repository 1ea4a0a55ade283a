"""Events: the body, names, series over time, and what happens when they fail."""

from __future__ import annotations

import pytest

from callkit import LOST, Rig, body_of, event, ok, pod_key, status
from pilotage.calls.event import MAX_NOTE_BYTES, SERIES_LIFE, cut, micro_time
from pilotage.framework.calls import CallResult, ObjectKey, RecordEvent


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_body(rig: Rig) -> None:
    rig.offer(event())
    dispatch = rig.one()
    assert (dispatch.request.method, dispatch.request.path) == (
        "POST",
        "/apis/events.k8s.io/v1/namespaces/ns/events",
    )
    assert body_of(dispatch) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"p.{1_700_000_000 * 10**9:x}", "namespace": "ns"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "no room",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p", "uid": "uid-p"},
    }


def test_names_are_unique_though_time_stands_still(rig: Rig) -> None:
    for note in "abc":
        rig.offer(event(note=note))
    names = [body_of(dispatch)["metadata"]["name"] for dispatch in rig.take()]
    assert len(set(names)) == 3


def test_long_names_leave_room_for_the_suffix(rig: Rig) -> None:
    rig.offer(event("p" * 253))
    assert len(body_of(rig.one())["metadata"]["name"]) == 253


def test_events_of_one_pod_do_not_wait_for_each_other(rig: Rig) -> None:
    rig.offer(event(note="a"))
    rig.offer(event(note="b"))
    assert len(rig.take()) == 2


def test_object_without_namespace_and_related_object(rig: Rig) -> None:
    node = ObjectKey("nodes", "", "n1", "u1")
    rig.offer(RecordEvent(node, "Normal", "Seen", "Looking", "x", related=pod_key()))
    tree = body_of(rig.one())
    assert tree["metadata"]["namespace"] == "default"
    assert tree["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}
    assert tree["related"]["kind"] == "Pod"


def test_repeat_of_a_sent_event_updates_its_series_at_growing_intervals(rig: Rig) -> None:
    rig.offer(event())
    first = rig.one()
    name = body_of(first)["metadata"]["name"]
    rig.answer(first, ok(code=201))
    updates = []
    for _ in range(120):
        rig.pass_time(5)
        rig.offer(event())
        for dispatch in rig.take():
            assert (dispatch.request.method, dispatch.request.path.rpartition("/")[2]) == ("PATCH", name)
            updates.append((rig.now - 1_700_000_000, body_of(dispatch)["series"]["count"]))
            rig.answer(dispatch, ok())
    assert updates == [(5, 2), (35, 8), (95, 20), (215, 44), (455, 92)]
    assert rig.queue.statistics(rig.now).remembered == 1


def test_repeat_while_in_flight_is_an_update_after_it(rig: Rig) -> None:
    rig.offer(event())
    dispatch = rig.one()
    rig.offer(event())
    rig.offer(event())
    rig.answer(dispatch, ok())
    update = rig.one()
    assert body_of(update)["series"]["count"] == 3


def test_after_a_long_pause_a_repeat_is_a_new_event(rig: Rig) -> None:
    rig.offer(event())
    rig.answer(rig.one(), ok())
    rig.pass_time(361)
    rig.offer(event())
    assert rig.one().request.method == "POST"


def test_a_series_that_ends_is_complete(rig: Rig) -> None:
    rig.offer(event())
    rig.answer(rig.one(), ok())
    for _ in range(5):
        rig.pass_time(1)
        rig.offer(event())
        for dispatch in rig.take():
            rig.answer(dispatch, ok())
    due = rig.queue.next_wakeup()
    assert due == rig.now + SERIES_LIFE
    rig.pass_time(SERIES_LIFE - 1)
    assert rig.take() == []
    rig.pass_time(1)
    last = rig.one()
    series = body_of(last)["series"]
    assert (last.request.method, series["count"]) == ("PATCH", 6)
    assert series["lastObservedTime"] == micro_time(due - SERIES_LIFE)
    rig.answer(last, ok())
    assert rig.queue.next_wakeup() is None
    rig.offer(event())
    assert rig.one().request.method == "POST", "the series is over"


def test_a_repeat_keeps_a_series_open(rig: Rig) -> None:
    rig.offer(event())
    rig.answer(rig.one(), ok())
    rig.offer(event())
    rig.answer(rig.one(), ok())
    for _ in range(2):
        rig.pass_time(10)
        rig.offer(event())
        assert rig.take() == []
    rig.pass_time(300)
    rig.offer(event())
    update = rig.one()
    assert body_of(update)["series"]["count"] == 5
    rig.answer(update, ok())
    assert rig.queue.next_wakeup() is None, "all of it is written"


def test_the_related_object_makes_a_difference(rig: Rig) -> None:
    for name in ("one", "other"):
        rig.offer(RecordEvent(pod_key(), "Normal", "Preempted", "Preempting", "same", related=pod_key(name)))
    assert len(rig.take()) == 2


def test_at_most_twelve_tries(rig: Rig) -> None:
    ticket = rig.offer(event())
    tries = 0
    for _ in range(30):
        for dispatch in rig.take():
            tries += 1
            rig.answer(dispatch, status(500, "InternalError"))
        rig.pass_time(10)
    assert tries == 12
    assert rig.result(ticket) is CallResult.FAILED


def test_the_lane_holds_five_thousand_and_counts_what_it_drops(rig: Rig) -> None:
    rig.check_every = 1000
    for number in range(5100):
        rig.offer(event(note=str(number)))
    ended = rig.queue.statistics(rig.now).ended
    assert ended["event", CallResult.DROPPED] == 100


def test_update_of_an_event_that_is_gone_becomes_a_new_event(rig: Rig) -> None:
    rig.offer(event())
    first = rig.one()
    rig.answer(first, ok())
    rig.offer(event())
    rig.answer(rig.one(), status(404, "NotFound"))
    rig.pass_time(1)
    again = rig.one()
    assert again.request.method == "POST"
    assert body_of(again)["series"]["count"] == 2
    assert body_of(again)["metadata"]["name"] != body_of(first)["metadata"]["name"]


def test_own_event_found_after_a_lost_answer_counts_as_written(rig: Rig) -> None:
    ticket = rig.offer(event())
    rig.answer(rig.one(), LOST)
    rig.pass_time(1)
    rig.answer(rig.one(), status(409, "AlreadyExists"))
    assert rig.result(ticket) is CallResult.DONE


def test_forbidden_event_fails_once(rig: Rig) -> None:
    ticket = rig.offer(event())
    rig.answer(rig.one(), status(403, "Forbidden"))
    assert rig.result(ticket) is CallResult.FAILED
    assert rig.take() == []


@pytest.mark.parametrize("note", ["x" * 3000, "ä" * 1000, "日" * 400])
def test_notes_are_cut_at_1024_bytes_and_never_within_a_character(note: str) -> None:
    short = cut(note)
    assert MAX_NOTE_BYTES - 4 < len(short.encode()) <= MAX_NOTE_BYTES
    assert short.endswith(" ...")
    assert note.startswith(short.removesuffix(" ..."))
    assert cut("short") == "short"
