"""PreBind that waits for objects: looked at when they change, ended once, taken back when dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from enginekit import DONE, REFUSED, World, binds, notes, only
from pilotage.framework.calls import CallResult, ObjectKey, Outcome
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import AwaitObjects, Plugin
from pilotage.framework.status import SUCCESS, Status, error, unschedulable
from pilotage.framework.volume_calls import SelectNode
from pilotage.scheduling.messages import CallFinished, Cancel, Effect, Submit, Upserted
from volumekit import pvc, view_of

CLAIM = ObjectKey("persistentvolumeclaims", "default", "c", "uid-c")
CALL = SelectNode(CLAIM, "n1")


class Waiting(Plugin):
    """Waits for the claim default/c; what it sees is told by the test."""

    def __init__(self, *calls: SelectNode) -> None:
        super().__init__()
        self.calls = calls
        self.answer: Any = None
        self.looks: list[bool] = []
        self.undone = 0

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),)

    def reserve(self, *_: Any) -> Status:
        return SUCCESS

    def unreserve(self, *_: Any) -> None:
        self.undone += 1

    def pre_bind(self, *_: Any) -> AwaitObjects:
        return AwaitObjects(self.calls, self._watched, self._look, 30.0, lambda: error("it took too long"))

    def _watched(self) -> list[tuple[str, str]]:
        return [("persistentvolumeclaims", "default/c")]

    def _look(self, is_written: bool) -> Status | None:
        self.looks.append(is_written)
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Status | None = self.answer
        return answer


def world(*calls: SelectNode, answer: Any = None) -> tuple[World, Waiting]:
    plugin = Waiting(*calls)
    plugin.answer = answer
    found = World(plugin)
    found.node("n1")
    found.pod("a")
    found.schedule()
    return found, plugin


def change(found: World, name: str = "c") -> list[Effect]:
    return found.send(Upserted("persistentvolumeclaims", view_of(pvc(name))))


def submitted(found: World) -> Submit:
    (one,) = [s for s in only(found.effects, Submit) if isinstance(s.call, SelectNode)]
    assert one.awaited
    return one


def test_a_change_of_the_object_ends_the_wait() -> None:
    found, plugin = world()
    assert plugin.looks == [True], "nothing is to be written"
    assert binds(change(found, "other")) == []
    assert plugin.looks == [True]
    assert binds(change(found)) == []
    plugin.answer = SUCCESS
    assert binds(change(found)) == [("a", "n1")]
    assert plugin.looks == [True] * 3
    change(found)
    assert len(plugin.looks) == 3
    found.engine.check_invariants()


def test_an_answer_at_once_is_no_wait() -> None:
    found, _ = world(answer=SUCCESS)
    assert binds(found.effects) == [("a", "n1")]
    found.engine.check_invariants()


def test_calls_come_first() -> None:
    found, plugin = world(CALL)
    assert plugin.looks == [False]
    plugin.answer = SUCCESS
    assert binds(found.finish(submitted(found))) == [("a", "n1")]
    assert plugin.looks == [False, True]


def test_what_a_call_ended_by_is_told() -> None:
    found, plugin = world(CALL)
    found.send(CallFinished(submitted(found).ticket, Outcome(CallResult.OVERWRITTEN)))
    assert plugin.looks == [False, False], "somebody else's call took over: nobody knows if it was written"
    change(found)
    assert plugin.looks == [False] * 3


def test_a_call_that_fails_ends_the_attempt() -> None:
    found, plugin = world(CALL)
    effects = found.finish(submitted(found), REFUSED)
    ((_, _, note),) = notes(effects)
    assert note == 'running PreBind plugin "Waiting": writing persistentvolumeclaim "c" failed: refused'
    assert plugin.undone == 1
    assert found.position("a") == "error_backoff"
    found.engine.check_invariants()


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (error("bad"), 'running PreBind plugin "Waiting": bad'),
        (unschedulable("later"), "0/1 nodes are available: 1 later."),
        (ValueError("boom"), 'running PreBind plugin "Waiting": ValueError: boom'),
        (7, 'running PreBind plugin "Waiting": it answered 7, not a Status'),
    ],
)
def test_other_ends(answer: Any, note: str) -> None:
    found, plugin = world()
    plugin.answer = answer
    ((_, _, text),) = notes(change(found))
    assert text == note
    assert plugin.undone == 1
    found.engine.check_invariants()


def test_the_deadline() -> None:
    found, plugin = world()
    assert found.engine.next_wakeup() is not None
    found.wait(29.9)
    assert plugin.undone == 0
    ((_, _, note),) = notes(found.wait(0.2))
    assert note == 'running PreBind plugin "Waiting": it took too long'
    assert plugin.undone == 1
    change(found)
    assert plugin.looks == [True]


def leave_by_delete(found: World) -> list[Effect]:
    return found.delete("a")


def leave_by_hand(found: World) -> list[Effect]:
    return found.bind("a", "n1")


@pytest.mark.parametrize("leave", [leave_by_delete, leave_by_hand])
def test_a_pod_that_leaves_takes_its_calls_along(leave: Callable[[World], list[Effect]]) -> None:
    found, plugin = world(CALL)
    effects = leave(found)
    assert "uid-c" in [cancel.uid for cancel in only(effects, Cancel)]
    assert plugin.undone == 1
    found.send(CallFinished(submitted(found).ticket, DONE))
    change(found)
    assert plugin.looks == [False]
    assert found.engine.next_wakeup() is None or found.engine.next_wakeup() > found.now  # type: ignore[operator]
    found.engine.check_invariants()


def test_a_watched_list_that_raises_keeps_the_last_one() -> None:
    found, plugin = world()

    def raising() -> list[tuple[str, str]]:
        raise ValueError("no list")

    plugin._watched = raising  # type: ignore[method-assign]
    found.pod("b")
    found.schedule()
    assert found.position("b") == "absent"
    found.engine.check_invariants()
    plugin.answer = SUCCESS
    assert binds(change(found)) == [("a", "n1")]
