"""The engine and pods that come, change, go, are of others or cannot be read; who is woken by them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from enginekit import DONE, World, bind_submit, binds, notes, only, patches
from pilotage.scheduling.messages import Log, Queued, Undecodable


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.engine.check_invariants()


# -- pods of others, gone, replaced --------------------------------------------------------------


def test_pods_of_an_unknown_scheduler_are_only_counted(world: World) -> None:
    world.node("n1")
    world.pod("other", None, {"spec": {"schedulerName": "mine"}})
    assert world.schedule() == []
    assert world.engine.statistics().foreign_pods == 1
    world.bind("other", "n1")
    assert world.engine.statistics().foreign_pods == 0
    assert world.engine.cluster.node_of("uid-other") == "n1"


def test_a_waiting_pod_bound_by_hand_leaves_the_queue(world: World) -> None:
    world.node("n1")
    world.pod("a")
    world.bind("a", "n1")
    assert world.lengths() == (0, 0, 0, 0)
    assert world.schedule() == []


def test_a_finished_pod_is_a_deleted_one(world: World) -> None:
    world.node("n1", pods="1")
    world.pod("a", None, {"spec": {"nodeName": "n1"}})
    world.pod("b")
    world.schedule()
    world.now += 60
    world.pod("a", None, {"status": {"phase": "Succeeded"}})
    assert binds(world.schedule()) == [("b", "n1")]


def test_d1_a_pod_being_deleted_is_skipped_and_leaves_nothing_in_flight(world: World) -> None:
    world.node("n1")
    world.pod("a", None, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    effects = world.schedule()
    assert notes(effects) == [("Warning", "FailedScheduling", "skip schedule deleting pod: ns/a")]
    for number in range(200):
        world.node("n1", str(1 + number % 3))
    assert world.engine.statistics().in_flight == 0
    assert world.engine.statistics().in_flight_events == {}


def test_a_replaced_pod_is_another_pod(world: World) -> None:
    world.node("n1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.pod("a", None, {"metadata": {"uid": "second"}})
    assert not world.engine.cluster.is_assumed("uid-a")
    assert world.engine.position("second").value == "active"
    assert world.finish(submit, DONE) == []
    assert binds(world.schedule()) == [("a", "n1")]


def test_repeated_facts_change_nothing(world: World) -> None:
    world.node("n1")
    world.pod("big", "5")
    world.schedule()
    assert world.show_again("big") == []


def test_stories_are_dropped_with_their_pod(world: World) -> None:
    world.pod("a")
    assert world.story("a")
    world.delete("a")
    assert world.story("a") == ""


# -- wake-ups through the engine -----------------------------------------------------------------


def test_d7_tolerating_a_cordoned_node_wakes_the_pod(world: World) -> None:
    world.node("n1", "4", {"spec": {"unschedulable": True}})
    world.pod("a")
    world.schedule()
    world.now += 60
    world.pod("a", None, {"metadata": {"annotations": {"x": "y"}}})
    assert world.position("a") == "unschedulable"
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    effects = world.pod("a", None, {"spec": {"tolerations": [toleration]}})
    assert [(q.queue, q.event) for q in only(effects, Queued)] == [
        ("active", "UnschedulablePodUpdatePodToleration")
    ]
    assert binds(world.schedule()) == [("a", "n1")]


def test_g4_lengths_follow_a_gated_pod_through_its_life(world: World) -> None:
    world.node("n1")
    world.pod("a", "1000", {"spec": {"schedulingGates": [{"name": "g"}]}})
    assert world.lengths() == (0, 0, 0, 1)
    assert world.schedule() == []
    world.pod("a", None, {"spec": {"schedulingGates": []}})
    assert world.lengths() == (1, 0, 0, 0)
    world.schedule()
    assert world.lengths() == (0, 0, 1, 0)
    world.delete("a")
    assert world.lengths() == (0, 0, 0, 0)


def test_f1_f2_a_node_that_comes_back_still_carries_its_pods(world: World) -> None:
    world.node("n1")
    world.pod("a", "3", {"spec": {"nodeName": "n1"}})
    world.delete_node("n1")
    world.pod("b", "2")
    world.schedule()
    assert world.position("b") == "unschedulable"
    world.now += 60
    world.node("n1", "4", {"metadata": {"uid": "again"}})
    world.schedule()
    assert world.position("b") == "unschedulable"
    world.now += 60
    world.delete("a")
    assert binds(world.schedule()) == [("b", "n1")]


def test_nomination_given_up_wakes_pods_of_no_higher_priority(world: World) -> None:
    world.node("n1", pods="1")
    world.pod("full", None, {"spec": {"nodeName": "n1"}})
    never = {"spec": {"preemptionPolicy": "Never"}}
    world.pod("nominated", None, {"spec": {"priority": 5}, "status": {"nominatedNodeName": "n1"}}, never)
    world.pod("lower")
    world.pod("higher", None, {"spec": {"priority": 9}}, never)
    world.schedule()
    assert world.lengths() == (0, 0, 3, 0)
    world.now += 60
    world.delete("nominated")
    assert (world.position("lower"), world.position("higher")) == ("active", "unschedulable")


# -- what cannot be read -------------------------------------------------------------------------


def test_an_unreadable_pod_stays_pending_with_its_reason_until_it_is_fixed(world: World) -> None:
    world.node("n1")
    bad = Undecodable("pods", "ns", "a", "uid-a", "spec.priority: expected int, got 'x'")
    effects = world.send(bad)
    (patch,) = patches(effects)
    assert patch.key.uid == "uid-a"
    assert "spec.priority: expected int, got 'x'" in (patch.conditions[0].message or "")
    assert notes(effects)[0][1] == "FailedScheduling"
    assert only(effects, Log)[0].level == "error"
    assert patches(world.send(bad)) == []
    world.pod("a")
    assert binds(world.schedule()) == [("a", "n1")]


def test_an_unreadable_change_takes_a_pod_out_of_the_queue(world: World) -> None:
    world.node("n1")
    world.pod("a")
    world.send(Undecodable("pods", "ns", "a", "uid-a", "broken"))
    world.engine.check_invariants()
    assert world.schedule() == []
    world.pod("a")
    assert binds(world.schedule()) == [("a", "n1")]
    world.send(Undecodable("pods", "ns", "b", "uid-b", "broken"))
    world.pod("b", None, {"status": {"phase": "Failed"}})
    world.engine.check_invariants()


def test_unreadable_pods_of_others_and_bound_ones_are_left_alone(world: World) -> None:
    assert patches(world.send(Undecodable("pods", "ns", "a", "u", "e", scheduler_name="other"))) == []
    assert patches(world.send(Undecodable("pods", "ns", "a", "u", "e", node_name="n1"))) == []
    assert patches(world.send(Undecodable("services", "ns", "a", "u", "e"))) == []


def test_an_unreadable_node_gets_no_pods_until_it_is_fixed(world: World) -> None:
    world.send(Undecodable("nodes", "", "n1", "node-n1", "status.allocatable: expected object"))
    world.pod("a")
    world.schedule()
    assert world.position("a") == "unschedulable"
    world.now += 60
    world.node("n1")
    assert binds(world.schedule()) == [("a", "n1")]


def test_a_nonsense_quantity_is_named_and_healed(world: World) -> None:
    world.node("n1")
    world.pod("a", "lots")
    (patch,) = patches(world.schedule())
    assert "lots" in (patch.conditions[0].message or "")
    world.now += 60
    world.pod("a", "1")
    world.now += 60
    world.wait(400)
    assert binds(world.schedule()) == [("a", "n1")]


def test_a_nonsense_selector_fails_its_pod_alone(world: World) -> None:
    world.node("n1")
    terms = [{"matchExpressions": [{"key": "a", "operator": "Perhaps"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world.pod("odd", None, {"spec": {"affinity": {"nodeAffinity": required}}})
    selector = {"matchExpressions": [{"key": "a", "operator": "Perhaps"}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    pod_terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    world.pod("odder", None, {"spec": {"affinity": {"podAntiAffinity": pod_terms}}})
    world.pod("fine")
    effects = world.schedule()
    assert ("fine", "n1") in binds(effects)
    assert {name for name, _ in binds(effects)} == {"fine"}
