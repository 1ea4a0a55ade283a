"""Core: what passes between engine and call queue, in which order (A6 to A8; field cases A7, F7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from callkit import EPOCH, bind, body_of, ok, patch, pod, status, unschedulable
from pilotage.api.pods import Pod
from pilotage.calls.defaults import default_call_types
from pilotage.calls.lanes import Allowance
from pilotage.calls.queue import CallQueue
from pilotage.calls.reports import Dispatch
from pilotage.framework.calls import Call, CallResult
from pilotage.runtime.core import CallEnded, Core, EndlessTurnError
from pilotage.scheduling.messages import (
    CallFinished,
    Cancel,
    Deleted,
    Effect,
    Event,
    Log,
    Submit,
    Tick,
    Upserted,
)


@dataclass
class FakeEngine:
    """Records events; answers them as told."""

    events: list[Event] = field(default_factory=list)
    answer: Callable[[Event], Sequence[Effect]] = lambda event: ()
    planned: list[Effect] = field(default_factory=list)
    wakeup: float | None = None

    def handle(self, event: Event, now: float) -> Sequence[Effect]:
        self.events.append(event)
        return self.answer(event)

    def schedule(self, now: float, limit: int) -> Sequence[Effect]:
        planned, self.planned = self.planned, []
        return planned

    def next_wakeup(self) -> float | None:
        return self.wakeup

    def finished(self) -> dict[int, CallResult]:
        return {e.ticket: e.outcome.result for e in self.events if isinstance(e, CallFinished)}

    def pods(self) -> list[Pod]:
        return [e.object for e in self.events if isinstance(e, Upserted) and isinstance(e.object, Pod)]


@dataclass
class Setting:
    engine: FakeEngine = field(default_factory=FakeEngine)
    now: float = EPOCH

    def __post_init__(self) -> None:
        self.core = Core(self.engine, CallQueue(default_call_types("host")))
        self.tickets = 0

    def submit(self, call: Call, awaited: bool = True) -> list[Effect]:
        self.tickets += 1
        self.engine.planned.append(Submit(1, self.tickets, call, awaited))
        return self.core.schedule(self.now, 1)

    def seen(self, found: Pod) -> None:
        self.core.handle(Upserted("pods", found), self.now)

    def one(self) -> Dispatch:
        taken, _ = self.core.take_calls(self.now, Allowance(10))
        (dispatch,) = taken
        return dispatch


@pytest.fixture
def at() -> Setting:
    return Setting()


def test_outcome_of_an_awaited_call_returns_to_the_engine(at: Setting) -> None:
    at.submit(bind())
    effects = at.core.finish_call(at.one().id, ok(), EPOCH)
    assert at.engine.finished() == {1: CallResult.DONE}
    assert [type(e) for e in effects] == [CallEnded]


def test_call_that_ends_at_once_is_told_in_the_same_turn(at: Setting) -> None:
    at.seen(pod(conditions=[unschedulable()]))
    at.submit(patch())
    assert at.engine.finished() == {1: CallResult.SKIPPED}


def test_nobody_waits_and_failure_is_logged(at: Setting) -> None:
    at.submit(bind(), awaited=False)
    effects = at.core.finish_call(at.one().id, status(403, "Forbidden", "no rights"), EPOCH)
    assert at.engine.finished() == {}
    (text,) = [e.text for e in effects if isinstance(e, Log)]
    assert text == "pod_binding for pods ns/p failed: no rights (HTTP 403)"


def test_effects_that_a_finished_call_causes_are_carried_out_too(at: Setting) -> None:
    again = Submit(2, 99, patch("after"), awaited=True)
    at.engine.answer = lambda e: (again,) if isinstance(e, CallFinished) and e.ticket == 1 else ()
    at.seen(pod())
    at.submit(bind())
    at.core.finish_call(at.one().id, status(500), EPOCH)
    assert at.one().call_type == "pod_status_patch"


def test_a7_patch_is_computed_on_what_the_informer_brought_last(at: Setting) -> None:
    at.seen(pod(version=10))
    at.seen(pod(version=11, nominated="n1"))
    at.submit(patch())
    tree = body_of(at.one())
    assert tree["metadata"]["resourceVersion"] == "11"
    assert "nominatedNodeName" not in tree["status"]


def test_informer_objects_show_the_pending_change(at: Setting) -> None:
    at.seen(pod(version=1))
    at.submit(patch(node="n1"))
    at.seen(pod(version=2, labels={"a": "b"}))
    assert at.engine.pods()[-1].status.nominated_node_name == "n1"
    assert at.engine.pods()[-1].metadata.labels == {"a": "b"}


def test_failed_change_is_taken_back(at: Setting) -> None:
    at.seen(pod(version=1))
    at.submit(patch(node="n1"))
    at.seen(pod(version=2))
    at.core.finish_call(at.one().id, status(403, "Forbidden"), EPOCH)
    assert at.engine.pods()[-1].status.nominated_node_name == ""
    assert at.engine.finished() == {1: CallResult.FAILED}


def test_returned_object_is_seen_at_once_and_older_ones_are_ignored(at: Setting) -> None:
    at.seen(pod(version=1))
    at.submit(patch("why"))
    written = pod(version=5, conditions=[unschedulable("why")])
    at.core.finish_call(at.one().id, ok(written), EPOCH)
    assert at.engine.pods()[-1].metadata.resource_version == "5"
    count = len(at.engine.events)
    at.seen(pod(version=4))
    assert len(at.engine.events) == count
    at.seen(pod(version=6))
    assert at.engine.pods()[-1].metadata.resource_version == "6"


def test_deleted_pod_ends_its_calls_and_never_comes_back(at: Setting) -> None:
    at.seen(pod())
    at.submit(patch())
    dispatch = at.one()
    at.submit(patch("two"))
    at.core.handle(Deleted("pods", pod()), EPOCH)
    assert at.engine.finished() == {2: CallResult.CANCELLED}
    at.core.finish_call(dispatch.id, ok(pod(version=9)), EPOCH)
    assert at.engine.finished() == {2: CallResult.CANCELLED, 1: CallResult.DONE}
    assert [p.metadata.resource_version for p in at.engine.pods()] == ["1"]
    assert at.core.calls.is_idle


def test_f7_bound_event_before_the_answer_settles_an_unanswered_bind_once(at: Setting) -> None:
    from callkit import LOST

    at.seen(pod(version=1))
    at.submit(bind())
    at.core.finish_call(at.one().id, LOST, EPOCH)
    at.seen(pod(version=2, node="n1"))
    assert at.engine.finished() == {1: CallResult.DONE}
    assert at.core.calls.is_idle


def test_cancel_effect(at: Setting) -> None:
    at.seen(pod())
    at.submit(patch())
    at.engine.planned = [Cancel(3, "uid-p", "preempted")]
    at.core.schedule(EPOCH, 1)
    assert at.engine.finished() == {1: CallResult.CANCELLED}


def test_next_wakeup_is_the_earlier_one_and_tick_reaches_the_engine(at: Setting) -> None:
    assert at.core.next_wakeup() is None
    at.engine.wakeup = EPOCH + 30
    at.submit(bind())
    at.core.finish_call(at.one().id, status(429, retry_after="2"), EPOCH)
    assert at.core.next_wakeup() == EPOCH + 2
    at.core.handle(Tick(), EPOCH + 2)
    assert at.engine.events[-1] == Tick()
    assert at.core.has_ready_calls()
    assert at.core.next_wakeup() == EPOCH + 30


def test_drain_and_shutdown_tell_everybody(at: Setting) -> None:
    at.seen(pod())
    at.submit(patch())
    at.submit(bind("b"))
    at.core.drain_calls("closing", EPOCH)
    assert at.engine.finished() == {1: CallResult.CANCELLED}
    at.core.shutdown_calls("closing", EPOCH)
    assert at.engine.finished()[2] is CallResult.CANCELLED


def test_endless_turn_is_an_error_and_not_a_hang(at: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilotage.runtime.core.MAX_TURNS", 50)
    at.seen(pod(conditions=[unschedulable()]))
    at.engine.answer = lambda e: (Submit(1, 7, patch(), True),) if isinstance(e, CallFinished) else ()
    with pytest.raises(EndlessTurnError):
        at.submit(patch())
