"""Tables, texts, heap and stories: the small parts of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec
import pytest

from enginekit import World, bind_submit, only
from pilotage.api.pods import Pod
from pilotage.framework.status import Status
from pilotage.scheduling import texts
from pilotage.scheduling.messages import Attempt, Event
from pilotage.scheduling.queue_heap import RecordHeap
from pilotage.scheduling.queue_record import BackoffSettings, Record, backoff_seconds
from pilotage.scheduling.stories import Stories
from pilotage.scheduling.transitions import (
    POSITIONS,
    STAGES,
    IllegalMoveError,
    Move,
    Position,
    Stage,
    Step,
    next_position,
    next_stage,
)
from pilotage.state.podinfo import PodInfo


def reachable(start: Enum, table: Mapping[tuple[Enum, Enum], Enum]) -> set[Enum]:
    found, new = {start}, {start}
    while new:
        new = {after for (before, _), after in table.items() if before in new} - found
        found |= new
    return found


def test_every_position_and_stage_is_reachable_and_can_be_left() -> None:
    assert reachable(Position.ABSENT, POSITIONS) == set(Position)
    assert all(Position.ABSENT in reachable(position, POSITIONS) for position in Position)
    assert reachable(Stage.ASSUMED, STAGES) == set(Stage)
    assert {stage for stage in Stage if not any(s is stage for s, _ in STAGES)} == {Stage.ENDED, Stage.FAILED}


def test_only_a_popped_pod_can_be_parked_and_only_error_free_backoff_is_popped() -> None:
    assert {before for before, move in POSITIONS if move is Move.PARK} == {Position.IN_FLIGHT}
    assert {before for before, move in POSITIONS if move is Move.POP} == {Position.ACTIVE, Position.BACKOFF}


def test_moves_that_the_tables_do_not_hold_raise() -> None:
    with pytest.raises(IllegalMoveError, match="active: no move park"):
        next_position(Position.ACTIVE, Move.PARK)
    with pytest.raises(IllegalMoveError, match="ended: no step bind"):
        next_stage(Stage.ENDED, Step.BIND)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (1.5, "1.5s"),
        (20, "20s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (900, "15m0s"),
        (3661, "1h1m1s"),
    ],
)
def test_durations_read_as_kubernetes_writes_them(seconds: float, text: str) -> None:
    assert texts.duration(seconds) == text


def test_notes_are_cut_between_characters() -> None:
    assert texts.note("x" * 1024) == "x" * 1024
    assert texts.note("x" * 1025) == "x" * 1020 + " ..."
    cut = texts.note("x" + "é" * 1000)
    assert cut.endswith("é ...")
    assert len(cut.encode()) <= 1024


def test_one_node_messages_count_each_reason() -> None:
    assert texts.one_node_message(("b", "a")) == "0/1 nodes are available: 1 a, 1 b."
    assert texts.one_node_message(()) == "0/1 nodes are available:"


@pytest.mark.parametrize(
    ("errors", "rejections", "seconds"),
    [(0, 0, 0.0), (0, 1, 1.0), (0, 3, 4.0), (0, 5, 10.0), (2, 9, 2.0), (500, 0, 10.0)],
)
def test_backoff_counts_errors_before_rejections(errors: int, rejections: int, seconds: float) -> None:
    record = record_of("a")
    record.consecutive_errors, record.unschedulable_count = errors, rejections
    assert backoff_seconds(record, BackoffSettings()) == seconds


def record_of(name: str, priority: int = 0) -> Record:
    tree = {"metadata": {"name": name, "uid": name}, "spec": {"priority": priority}}
    return Record(PodInfo(msgspec.convert(tree, Pod)))


def test_heap_survives_removal_and_a_new_key() -> None:
    heap = RecordHeap(lambda record: -record.pod.priority)
    records = [record_of(str(number), number) for number in range(300)]
    for record in records:
        heap.push(record)
    for record in records[100:]:
        heap.remove(record.pod.uid)
    records[0].pod = record_of("0", 1000).pod
    heap.push(records[0])
    heap.push(records[0])
    assert len(heap) == 100
    assert "5" in heap
    found = []
    while (record := heap.pop()) is not None:
        found.append(record.pod.priority)
    assert found == [1000, *range(99, 0, -1)]
    assert heap.peek() is None


def test_stories_keep_the_newest_entries() -> None:
    stories = Stories(entries_per_pod=2)
    for number in range(3):
        stories.tell("u", 1.5, number, f"line {number}")
    assert [str(entry) for entry in stories.of("u")] == ["1.500 #1 line 1", "1.500 #2 line 2"]
    assert len(stories) == 1
    stories.forget("u")
    assert stories.of("u") == ()


def test_an_unknown_event_is_a_bug_of_the_caller() -> None:
    with pytest.raises(TypeError, match="unknown event"):
        World().send(Event())


def test_time_never_runs_backwards() -> None:
    world = World()
    world.pod("a")
    world.schedule()
    world.now -= 500
    world.node("n1")
    assert world.position("a") == "backoff"
    assert world.engine.next_wakeup() == 1002.0


def test_two_runs_of_the_same_facts_give_the_same_effects() -> None:
    def life() -> list[str]:
        world = World(seed=7)
        for name in ("n1", "n2", "n3"):
            world.node(name)
        for number in range(12):
            world.pod(f"p{number}", "1", {"metadata": {"labels": {"app": str(number % 3)}}})
        world.schedule()
        world.delete_node("n2")
        world.wait(20)
        world.schedule()
        return [str(effect) for effect in world.effects]

    assert life() == life()


def test_an_assumption_that_fails_is_an_error_of_the_attempt() -> None:
    world = World()
    world.node("n1")
    world.pod("a")
    cluster = world.engine.cluster
    cluster.assume = _refuse  # type: ignore[method-assign]  # no way in from outside
    (attempt,) = only(world.engine.schedule(world.now, 1), Attempt)
    assert (attempt.result, attempt.message) == ("error", "assuming the pod failed: counted twice")


def _refuse(*_: object) -> None:
    raise ValueError("counted twice")


def test_a_fault_while_deciding_is_an_error_of_the_attempt() -> None:
    class Odd:
        name, label, timeout, is_ignorable = "odd", "odd", 1.0, False

        def request(self, *_: object) -> Status:
            raise ZeroDivisionError("odd")

        def screen(self, response: object, node_names: Sequence[str]) -> None:
            raise NotImplementedError

    world = World(askers={"default-scheduler": [Odd()]})
    world.node("n1")
    world.pod("a")
    (attempt,) = only(world.schedule(), Attempt)
    assert attempt.result == "error"
    assert "odd" in attempt.message
    assert world.position("a") == "error_backoff"


def test_pop_early_can_be_switched_off() -> None:
    world = World(gates={"SchedulerPopFromBackoffQ": False})
    world.node("n1")
    world.pod("a", "5")
    world.schedule()
    world.node("n1", "6")
    assert world.position("a") == "backoff"
    assert not world.engine.has_work
    assert world.schedule() == []
    world.wait(3)
    assert bind_submit(world.schedule())
