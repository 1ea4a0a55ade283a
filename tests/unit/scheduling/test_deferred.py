"""Deferred resizes: who stands in the queue, what the cycle finds, whom it evicts (R1-R11, C8)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.enginekit import World, binds, only, patches
from tests.resizekit import (
    DEFERRED,
    DISABLED,
    INFEASIBLE,
    evict_submits,
    evictions,
    has,
    runs,
    terminates,
    told,
)

from pilotage.framework.calls import PatchPodStatus
from pilotage.framework.events import HintFn
from pilotage.scheduling.messages import Submit
from pilotage.scheduling.queue_hints import HintResult, Occurrence, ask_hint
from pilotage.scheduling.queue_record import Record

GATE = "InPlacePodVerticalScalingSchedulerPreemption"


@pytest.fixture
def world() -> World:
    world = World()
    world.node("n1", "10")
    return world


def full(world: World, **high: Any) -> None:
    """n1 with 10 CPU: R has 4 and wants 6, V1 and V2 have 3 each."""
    runs(world, "v1", "3")
    runs(world, "v2", "3")
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000, **high)


# R1


def test_a_deferred_resize_enters_the_queue_and_leaves_it_with_the_condition(world: World) -> None:
    runs(world, "r", "6", DEFERRED, allocated="4")
    assert world.position("r") == "active"
    runs(world, "r", "6", allocated="6")
    assert world.position("r") == "absent"
    world.engine.check_invariants()


@pytest.mark.parametrize("condition", [INFEASIBLE, {**DEFERRED, "status": "False"}])
def test_another_condition_takes_it_out(world: World, condition: dict[str, Any]) -> None:
    runs(world, "r", "6", DEFERRED, allocated="4")
    runs(world, "r", "6", condition, allocated="4")
    assert world.position("r") == "absent"


def test_a_pod_of_another_scheduler_does_not_enter(world: World) -> None:
    runs(world, "r", "6", DEFERRED, allocated="4", schedulerName="other")
    assert world.position("r") == "absent"


def test_a_pod_that_ends_leaves(world: World) -> None:
    for name in ("deleted", "terminating", "failed"):
        runs(world, name, "6", DEFERRED, allocated="1")
    world.delete("deleted")
    terminates(world, "terminating")
    world.pod("failed", "6", {"spec": world.trees["ns/failed"]["spec"]}, {"status": {"phase": "Failed"}})
    assert world.lengths() == (0, 0, 0, 0)
    world.engine.check_invariants()


def test_the_queue_orders_resizes_and_new_pods_by_priority(world: World) -> None:
    world.pod("new", "1", {"spec": {"priority": 500}})
    runs(world, "low", "2", DEFERRED, allocated="1", priority=10)
    runs(world, "high", "2", DEFERRED, allocated="1", priority=1000)
    world.schedule(limit=1)
    assert (world.position("high"), world.position("new"), world.position("low")) == (
        "unschedulable",
        "active",
        "active",
    )
    world.schedule(limit=1)
    assert [pod for pod, _ in binds(world.effects)] == ["new"]
    assert world.position("low") == "active"


def test_with_the_gate_off_nothing_of_this_happens() -> None:
    world = World(gates={GATE: False})
    world.node("n1", "10")
    full(world)
    assert world.position("r") == "absent"
    assert not evictions(world.schedule())


# R4, R9


def test_a_resize_that_fits_is_parked_without_victims(world: World) -> None:
    runs(world, "v1", "3")
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    effects = world.schedule()
    assert world.position("r") == "unschedulable"
    assert "pod resize fits, waiting for Kubelet actuation" in told(world, "r")
    assert not evictions(effects)


def test_nothing_is_written_on_the_pod_and_nothing_is_bound(world: World) -> None:
    full(world)
    effects = world.schedule()
    assert evictions(effects)
    kinds = [type(submit.call) for submit in only(world.effects, Submit)]
    assert PatchPodStatus not in kinds
    assert not binds(world.effects)
    assert not patches(world.effects)
    assert not world.engine.cluster.nominations.node_of("uid-r")


# R5


def test_as_many_victims_as_needed_go(world: World) -> None:
    full(world)
    assert evictions(world.schedule()) == ["v1"]


def test_several_victims(world: World) -> None:
    for name in ("v1", "v2", "v3"):
        runs(world, name, "2")
    runs(world, "r", "8", DEFERRED, allocated="4", priority=1000)
    assert len(evictions(world.schedule())) == 2


def test_pods_of_other_nodes_and_of_no_lower_priority_are_not_victims(world: World) -> None:
    world.node("n2", "10")
    runs(world, "elsewhere", "10", node="n2")
    runs(world, "equal", "6", priority=1000)
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    assert not evictions(world.schedule())
    assert "No preemption victims found" in told(world, "r")


def test_preemption_policy_never(world: World) -> None:
    full(world, preemptionPolicy="Never")
    assert not evictions(world.schedule())
    assert "preemptionPolicy=Never" in told(world, "r")


def test_more_than_the_node_offers_has_no_victims(world: World) -> None:
    runs(world, "v1", "3")
    runs(world, "r", "11", DEFERRED, allocated="4", priority=1000)
    assert not evictions(world.schedule())
    assert "Insufficient cpu" in told(world, "r")


# R2, R3


def test_other_filters_are_not_asked(world: World) -> None:
    taint = {"spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}}
    world.node("n1", "10", taint)
    full(world, nodeSelector={"no": "node"})
    assert evictions(world.schedule()) == ["v1"]


def test_the_pod_is_counted_once_also_at_the_pod_limit() -> None:
    world = World()
    world.node("n1", "10", pods="2")
    runs(world, "v1", "4")
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    assert not evictions(world.schedule())
    assert "pod resize fits" in told(world, "r")


# R7


def test_four_pods_one_victim() -> None:
    """Node 2X; the high pod wants X from X/2, three low ones want 2X and have X/2."""
    world = World()
    world.node("n1", "8")
    for name in ("low1", "low2", "low3"):
        runs(world, name, "8", DEFERRED, allocated="2", priority=1)
    runs(world, "high", "4", DEFERRED, allocated="2", priority=1000)
    effects = world.schedule(limit=1)
    assert len(evictions(effects)) == 1
    # nobody of lower priority finds victims of its own
    assert not evictions(world.schedule())


def test_for_new_pods_the_wished_amount_counts(world: World) -> None:
    """R6: A has 4 and wants 9 of 10 CPU."""
    runs(world, "a", "9", DEFERRED, allocated="4")
    world.pod("new", "2")
    assert not binds(world.schedule())


# R11


def test_one_victim_while_it_terminates(world: World) -> None:
    full(world)
    (submit,) = evict_submits(world.schedule())
    world.finish(submit)
    assert not evictions(world.schedule())
    assert world.position("r") == "unschedulable"
    terminates(world, "v1")
    for cpu in ("11", "10", "11", "10"):
        world.node("n1", cpu)
        world.wait(20)
        assert not evictions(world.schedule())
    assert "terminating pods make room: ns/v1" in world.story("r")


def test_one_victim_across_a_restart() -> None:
    world = World()
    world.node("n1", "10")
    full(world)
    terminates(world, "v1")
    assert not evictions(world.schedule())


def test_a_resize_is_found_when_its_node_comes_later() -> None:
    world = World()
    full(world)
    assert not evictions(world.schedule())
    world.node("n1", "10")
    world.wait(3)
    assert evictions(world.schedule()) == ["v1"]


# R10


def test_the_nodes_policy_keeps_the_scheduler_out(world: World) -> None:
    policy = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["example.com/vpa"]}}}
    world.node("n1", "10", policy)
    full(world)
    assert not evictions(world.schedule())
    assert "node had resize preemption disabled" in told(world, "r")
    world.node("n1", "10", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": []}}})
    world.wait(3)
    assert evictions(world.schedule()) == ["v1"]


def test_the_pods_condition_takes_it_out_and_back(world: World) -> None:
    full(world)
    runs(world, "r", "6", DEFERRED, DISABLED, allocated="4", priority=1000)
    assert world.position("r") == "absent"
    assert not evictions(world.schedule())
    runs(world, "r", "6", DEFERRED, {**DISABLED, "status": "False"}, allocated="4", priority=1000)
    assert evictions(world.schedule()) == ["v1"]


# R8


def parked(world: World) -> None:
    """R waits: V1 is as important as it is, and N1 is full."""
    runs(world, "v1", "6", priority=1000)
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    world.schedule()
    world.wait(2)
    assert world.position("r") == "unschedulable"


@pytest.mark.parametrize(
    ("event", "wakes"),
    [
        ("delete", True),
        ("downsize", True),
        ("shrinks actually", True),
        ("upsize", True),
        ("label", False),
        ("node grows", True),
        ("node shrinks", False),
        ("taint", False),
        ("other node grows", False),
        ("other node comes", False),
        ("delete elsewhere", False),
        ("own size", True),
        ("own label", False),
        ("policy set", False),
    ],
)
def test_what_wakes_a_parked_resize(world: World, event: str, wakes: bool) -> None:
    world.node("n2", "10")
    runs(world, "elsewhere", "1", node="n2")
    parked(world)
    policy = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["x"]}}}
    own = {"spec": world.trees["ns/r"]["spec"]}
    do = {
        "delete": lambda: world.delete("v1"),
        "downsize": lambda: runs(world, "v1", "5", priority=1000),
        "shrinks actually": lambda: runs(world, "v1", "6", allocated="5", priority=1000),
        "upsize": lambda: runs(world, "v1", "7", allocated="6", priority=1000),
        "label": lambda: world.pod("v1", "6", own, {"metadata": {"labels": {"a": "b"}}}, has("6")),
        "node grows": lambda: world.node("n1", "11"),
        "node shrinks": lambda: world.node("n1", "9"),
        "taint": lambda: world.node("n1", "10", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        "other node grows": lambda: world.node("n2", "20"),
        "other node comes": lambda: world.node("n3", "20"),
        "delete elsewhere": lambda: world.delete("elsewhere"),
        "own size": lambda: runs(world, "r", "5", DEFERRED, allocated="4", priority=1000),
        "own label": lambda: world.pod("r", "6", own, {"metadata": {"labels": {"a": "b"}}}),
        "policy set": lambda: world.node("n1", "10", policy),
    }
    do[event]()
    expected = ("active", "backoff") if wakes else ("unschedulable",)
    assert world.position("r") in expected


def test_a_resize_that_fits_is_woken_by_an_upsize(world: World) -> None:
    """R4 and the race of A, B and C: the kubelet gives the room to somebody else first."""
    runs(world, "b", "1", priority=1000)
    runs(world, "c", "2", priority=1)
    runs(world, "a", "6", DEFERRED, allocated="4", priority=1000)
    assert not evictions(world.schedule())
    world.wait(2)
    runs(world, "b", "3", priority=1000)
    world.wait(2)
    assert evictions(world.schedule()) == ["c"]


def test_a_changed_request_is_looked_at_again(world: World) -> None:
    full(world)
    world.wait(0)
    runs(world, "r", "4500m", DEFERRED, allocated="4", priority=1000)
    runs(world, "v2", "2")
    assert not evictions(world.schedule())
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)
    world.wait(2)
    assert evictions(world.schedule()) == ["v1"]


def test_an_event_asks_only_about_pods_of_its_node() -> None:
    """Forty deferred resizes on ten nodes: who is asked is a matter of the node, not of the cluster."""
    world = World()
    for number in range(10):
        world.node(f"n{number}", "10")
        runs(world, f"full{number}", "6", priority=1000, node=f"n{number}")
        for turn in range(4):
            runs(world, f"r{number}-{turn}", "6", DEFERRED, allocated="1", node=f"n{number}")
    world.schedule()
    asked: list[str] = []

    def ask(plugin: str, hint: HintFn | None, record: Record, occurrence: Occurrence) -> HintResult:
        asked.append(record.pod.name)
        return ask_hint(plugin, hint, record, occurrence)

    world.engine.ask_hints_through(ask)
    world.node("n3", "9")
    assert set(asked) == {f"r3-{turn}" for turn in range(4)}
    asked.clear()
    world.delete("full5")
    assert set(asked) == {f"r5-{turn}" for turn in range(4)}
    asked.clear()
    world.node("another", "10")
    assert not asked
