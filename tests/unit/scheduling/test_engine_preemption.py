"""How the engine carries preemption out: gate, victims in every state, ends of every kind, nominations.

Field cases B1 (one eviction, the preemptor gated) and B5 (victims cancelled in memory) in the engine alone.
"""

from __future__ import annotations

from typing import Any

import pytest

from enginekit import DONE, REFUSED, World, bind_submit, binds, notes, only, patches
from pilotage.framework.calls import BindPod, CallResult, EvictPod, Outcome
from pilotage.framework.failures import NodeFailures
from pilotage.framework.plugin import Plugin, PostFilterResult, Preemption, VictimUnit
from pilotage.framework.status import SUCCESS
from pilotage.scheduling.messages import Effect, PreemptionEnded, PreemptionTried, Submit
from pilotage.scheduling.preemption import PREEMPTION_GATE

LEAVING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def evictions(effects: list[Effect]) -> list[Submit]:
    return [s for s in only(effects, Submit) if isinstance(s.call, EvictPod)]


def bound(world: World, name: str, node: str, cpu: str = "4", priority: int = 0) -> None:
    at = {"spec": {"nodeName": node, "priority": priority}, "status": {"phase": "Running"}}
    world.pod(name, cpu, at)


def urgent(world: World, name: str = "h", cpu: str = "4", priority: int = 100) -> list[Effect]:
    world.pod(name, cpu, {"spec": {"priority": priority}})
    return world.schedule()


@pytest.fixture
def world() -> World:
    world = World()
    world.node("n1", "4")
    return world


def test_the_preemptor_is_gated_until_the_eviction_ends(world: World) -> None:
    bound(world, "v", "n1")
    effects = urgent(world)
    (eviction,) = evictions(effects)
    assert eviction.awaited
    assert eviction.call.key.name == "v"
    assert [(t.profile, t.victims) for t in only(effects, PreemptionTried)] == [("default-scheduler", 1)]
    assert world.position("h") == "unschedulable"
    world.node("n2", "4")
    assert world.position("h") == "gated"
    assert world.lengths() == (0, 0, 0, 1)
    assert "waiting for the preemption for this pod to be finished" in world.story("h")
    assert not world.schedule()
    ends = world.finish(eviction)
    assert [(e.is_ok, e.seconds) for e in only(ends, PreemptionEnded)] == [(True, 0.0)]
    assert ("Normal", "Preempted", "Preempted by pod uid-h on node n1") in notes(ends)
    assert world.position("h") == "active"


def test_the_text_of_the_condition_has_no_suffix_and_names_the_node(world: World) -> None:
    bound(world, "v", "n1")
    (patch,) = patches(urgent(world))
    assert patch.conditions[0].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert (patch.nominated_node, patch.precedes_eviction) == ("n1", True)


def test_a_victim_whose_eviction_was_accepted_is_waited_for_and_not_evicted_again(world: World) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world))
    world.finish(eviction)
    effects = world.schedule()
    assert not evictions(effects)
    assert (
        patches(effects)[0]
        .conditions[0]
        .message.endswith("not eligible due to a terminating pod on the nominated node.")
    )
    world.delete("v")
    assert binds(world.schedule()) == [("h", "n1")]


@pytest.mark.parametrize("outcome", [REFUSED, Outcome(CallResult.CANCELLED, "shutting down")])
def test_a_failed_eviction_lets_the_preemptor_try_again_after_its_backoff(
    world: World, outcome: Outcome
) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world))
    ends = world.finish(eviction, outcome)
    assert [e.is_ok for e in only(ends, PreemptionEnded)] == [False]
    assert not [n for n in notes(ends) if n[1] == "Preempted"]
    assert world.position("h") == "backoff"
    (again,) = evictions(world.schedule())
    world.finish(again, outcome)
    assert world.position("h") == "error_backoff"  # its early try is spent: no hot loop
    assert not world.schedule()
    world.wait(5)
    assert len(evictions(world.schedule())) == 1


def test_two_preemptors_of_one_victim_share_its_eviction(world: World) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world, "h1", "2", 100))
    effects = urgent(world, "h2", "4", 200)
    assert not evictions(effects)
    cleared = [p for p in patches(effects) if p.key.name == "h1"]
    assert [p.nominated_node for p in cleared] == [""]
    world.finish(eviction)
    assert {world.position("h1"), world.position("h2")} == {"active"}
    world.delete("v")
    assert binds(world.schedule()) == [("h2", "n1")]


def test_a_victim_that_goes_by_itself_ends_the_wait(world: World) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world))
    world.delete("v")
    assert world.position("h") == "gated"
    world.finish(eviction, Outcome(CallResult.CANCELLED, "the pod is gone"))
    assert binds(world.schedule()) == [("h", "n1")]


def test_a_preemptor_that_is_deleted_leaves_nothing_behind(world: World) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world))
    world.delete("h")
    assert not only(world.finish(eviction), PreemptionEnded)
    world.delete("v")
    world.engine.check_invariants()
    assert len(world.engine.cluster.nominations) == 0
    assert not world.engine.cluster.evicted


def test_victims_that_leave_already_are_not_evicted(world: World) -> None:
    bound(world, "v", "n1")
    world.pod("v", None, LEAVING)
    effects = urgent(world)
    assert not evictions(effects)
    assert patches(effects)[-1].key.name == "h"
    assert world.position("h") == "unschedulable"
    world.delete("v")
    assert binds(world.schedule()) == [("h", "n1")]


def test_a_bind_that_is_cancelled_in_time_needs_no_eviction(world: World) -> None:
    world.pod("l", "4")
    bind = bind_submit(world.schedule())
    effects = urgent(world)
    assert not evictions(effects)
    ends = world.finish(bind, Outcome(CallResult.CANCELLED, "the pod is preempted"))
    assert ("Normal", "Preempted", "Preempted by pod uid-h on node n1 (in kube-scheduler memory).") in notes(
        ends
    )
    assert world.position("l") == "error_backoff"
    assert "preempted by DefaultPreemption" in world.story("l")
    assert binds(world.schedule()) == [("h", "n1")]


def test_a_bind_that_took_effect_all_the_same_is_followed_by_an_eviction(world: World) -> None:
    world.pod("l", "4")
    bind = bind_submit(world.schedule())
    urgent(world)
    (eviction,) = evictions(world.finish(bind, DONE))
    assert world.position("h") in ("unschedulable", "gated")
    world.bind("l", "n1")
    world.finish(eviction)
    world.delete("l")
    assert binds(world.schedule()) == [("h", "n1")]


def test_nominations_are_seen_by_the_very_next_decision_and_free_room_wakes_others(world: World) -> None:
    bound(world, "v", "n1", "4")
    world.pod("h", "3", {"spec": {"priority": 100}})
    world.pod("same", "2", {"spec": {"priority": 50}})
    effects = world.schedule()
    (eviction,) = evictions(effects)
    world.finish(eviction)
    world.delete("v")
    assert binds(world.schedule()) == [("h", "n1")]
    assert world.position("same") != "active"


def test_a_nomination_goes_with_its_node(world: World) -> None:
    bound(world, "v", "n1")
    urgent(world)
    effects = world.delete_node("n1")
    assert [(p.key.name, p.nominated_node) for p in patches(effects)] == [("h", "")]
    assert len(world.engine.cluster.nominations) == 0


class Groups(Plugin):
    """Somebody else's preemption: whole groups go."""

    def filter(self, cycle: Any, pod: Any, node: Any) -> Any:
        return SUCCESS

    def post_filter(self, cycle: Any, pod: Any, view: Any, failures: NodeFailures) -> PostFilterResult:
        victims = tuple(p for row in range(2) for p in view.pods(row) if p.labels.get("group") == "g")
        if not victims:
            return PostFilterResult(SUCCESS)
        return PostFilterResult(SUCCESS, "n1", Preemption("n1", (VictimUnit(victims),)))


def test_a_plugin_brings_its_own_preemption_with_units_of_several_pods() -> None:
    world = World(Groups)
    for node in ("n1", "n2"):
        world.node(node, "4")
        bound(world, f"v-{node}", node)
        world.pod(f"v-{node}", None, {"metadata": {"labels": {"group": "g"}}})
    first, second = evictions(urgent(world))
    assert {first.call.key.name, second.call.key.name} == {"v-n1", "v-n2"}
    world.finish(first)
    world.node("n3", "4")
    assert world.position("h") == "gated"
    assert world.engine.waits_on("uid-h") == {PREEMPTION_GATE}
    world.finish(second)
    assert world.position("h") == "active"


def test_a_plugin_that_names_pods_that_leave_already_makes_no_hot_loop() -> None:
    world = World(Groups)
    for node in ("n1", "n2"):
        world.node(node, "4")
        bound(world, f"v-{node}", node)
        world.pod(f"v-{node}", None, {"metadata": {"labels": {"group": "g"}}}, LEAVING)
    effects = urgent(world)
    assert len(only(effects, PreemptionTried)) == 1
    assert not evictions(effects)
    assert world.position("h") == "unschedulable"
    world.delete("v-n1")
    assert binds(world.schedule()) == [("h", "n1")]


def test_a_gated_preemptor_is_asked_about_no_event(world: World) -> None:
    bound(world, "v", "n1")
    (eviction,) = evictions(urgent(world))
    world.node("n2", "4")
    before = world.story("h")
    for cpu in range(1, 4):
        world.node("n3", str(cpu))
    assert world.story("h") == before
    world.wait(400)
    assert world.position("h") == "gated"
    world.finish(eviction)
    assert world.position("h") != "gated"


def test_a_bind_superseded_by_an_eviction_of_somebody_else_is_no_success(world: World) -> None:
    world.pod("l", "4")
    bind = bind_submit(world.schedule())
    world.finish(bind, Outcome(CallResult.OVERWRITTEN))
    assert world.position("l") == "error_backoff"
    assert isinstance(bind.call, BindPod)
