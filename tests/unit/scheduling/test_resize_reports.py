"""What users and metrics are told of deferred resizes (R13)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.enginekit import World, notes, only
from tests.resizekit import DEFERRED, DISABLED, INFEASIBLE, evict_submits, runs, terminates

from pilotage.scheduling.messages import PreemptionTried, ResizeEnded, ResizeTried


@pytest.fixture
def world() -> World:
    world = World()
    world.node("n1", "10")
    return world


def full(world: World) -> None:
    runs(world, "v1", "3")
    runs(world, "v2", "3")
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)


def test_the_whole_story_in_events_and_figures(world: World) -> None:
    full(world)
    world.schedule()
    world.finish(evict_submits(world.effects)[0])
    world.schedule()
    terminates(world, "v1")
    world.now += 5
    world.delete("v1")
    world.wait(3)
    world.schedule()
    runs(world, "r", "6", allocated="6", priority=1000)
    told = [(kind, reason) for kind, reason, _ in notes(world.effects)]
    assert told == [
        ("Normal", "ResizePreempting"),
        ("Normal", "Preempted"),
        ("Normal", "ResizeWaiting"),
        ("Normal", "ResizeFits"),
    ]
    assert [tried.outcome for tried in only(world.effects, ResizeTried)] == ["preempts", "waits", "fits"]
    assert [tried.victims for tried in only(world.effects, ResizeTried)] == [1, 0, 0]
    assert [tried.victims for tried in only(world.effects, PreemptionTried)] == [1, 0]
    (ended,) = only(world.effects, ResizeEnded)
    assert (ended.resolution, ended.seconds) == ("resized", 8.0)


def test_texts_have_numbers_and_names(world: World) -> None:
    full(world)
    world.schedule()
    ((_, _, text),) = notes(world.effects)
    assert text == "node n1: Insufficient cpu; preempts ns/v1"


def test_nothing_new_is_said_once(world: World) -> None:
    runs(world, "v1", "6", priority=1000)
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    for cpu in ("10", "11", "9", "10"):
        world.node("n1", "5")
        world.node("n1", "10" if cpu == "11" else cpu)
        world.wait(20)
        world.schedule()
    assert len(only(world.effects, ResizeTried)) > 2
    texts = notes(world.effects)
    assert [reason for _, reason, _ in texts] == ["FailedResizePreemption"]
    assert texts[0][2] == (
        "node n1: Insufficient cpu; preemption: No preemption victims found for incoming pod"
    )


@pytest.mark.parametrize(
    ("cpu", "allocated", "conditions", "resolution"),
    [
        ("6", "6", (), "resized"),
        ("4", "4", (), "reverted"),
        ("6", "4", (INFEASIBLE,), "infeasible"),
        ("6", "4", (DEFERRED, DISABLED), "disabled"),
    ],
)
def test_how_it_ended(
    world: World, cpu: str, allocated: str, conditions: tuple[Any, ...], resolution: str
) -> None:
    runs(world, "r", "6", DEFERRED, allocated="4")
    runs(world, "r", cpu, *conditions, allocated=allocated)
    assert [ended.resolution for ended in only(world.effects, ResizeEnded)] == [resolution]


@pytest.mark.parametrize("end", ["deleted", "terminating"])
def test_the_pod_ended(world: World, end: str) -> None:
    runs(world, "r", "6", DEFERRED, allocated="4")
    if end == "deleted":
        world.delete("r")
    else:
        terminates(world, "r")
    assert [ended.resolution for ended in only(world.effects, ResizeEnded)] == ["ended"]
    assert world.engine.statistics().deferred_resizes == 0
