"""Which events wake a pod that a simple plugin rejected."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.framework.events import WILDCARD, Action, EventRegistration, Hint, Resource
from pilotage.framework.plugin import Plugin
from pilotage.plugins.node_affinity import NodeAffinity
from pilotage.plugins.node_ports import NodePorts
from pilotage.plugins.node_resources_fit import NodeResourcesFit
from pilotage.plugins.node_unschedulable import NodeUnschedulable
from pilotage.plugins.not_built_yet import NotBuiltYet
from pilotage.plugins.scheduling_gates import SchedulingGates
from pilotage.plugins.taint_toleration import TaintToleration
from pilotage.state.podinfo import PodInfo
from statekit import cluster, node, pod, profile


def wakes(plugin: Plugin, waiting: PodInfo, resource: Resource, action: Action, old: Any, new: Any) -> bool:
    """Whether any registration for the event answers Queue."""
    matching = [
        registration
        for registration in plugin.events_to_register()
        if registration.event.resource is resource and registration.event.action & action
    ]
    return any(r.hint is None or r.hint(waiting, old, new) is Hint.QUEUE for r in matching)


NODE, POD = Resource.NODE, Resource.POD
ALLOCATABLE = Action.UPDATE_NODE_ALLOCATABLE


def capacity(cpu: str, pods: int = 5, **more: object) -> Any:
    return node("n1", {"cpu": cpu, "memory": "1Gi", "pods": pods, **more})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, capacity("2"), True),
        (None, capacity("1"), False),  # does not fit an empty such node
        (None, capacity("2", pods=0), False),
        (capacity("1"), capacity("2"), True),
        (capacity("2"), capacity("2", **{"example.com/gpu": 1}), False),  # nothing asked for grew
        (capacity("3"), capacity("2"), False),
        (capacity("2", pods=1), capacity("2", pods=2), True),
        (node("n1", {}), capacity("2"), True),
        (node("n1", {"cpu": "?"}), capacity("2"), True),
        (capacity("1"), node("n1", {"cpu": "?"}), False),
    ],
)
def test_fit_wakes_when_a_node_has_more_of_what_is_asked(old: Any, new: Any, expected: bool) -> None:
    action = Action.ADD if old is None else ALLOCATABLE
    assert wakes(NodeResourcesFit(), pod("w", {"cpu": "1500m"}), NODE, action, old, new) == expected


def test_fit_wakes_when_a_bound_pod_leaves() -> None:
    fit, waiting = NodeResourcesFit(), pod("w", {"cpu": 2})
    assert wakes(fit, waiting, POD, Action.DELETE, pod("a", {"cpu": 1}, on="n1"), None)
    assert not wakes(fit, waiting, POD, Action.DELETE, pod("a", {"cpu": 1}), None)
    nominated = pod("a", {"cpu": 1}, status={"nominatedNodeName": "n1"})
    assert wakes(fit, waiting, POD, Action.DELETE, nominated, None)


def shrunk(cpu: str, actual: str, on: str = "n1") -> PodInfo:
    status = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": actual}}}]}
    return pod("a", {"cpu": cpu}, on=on, status=status)


def test_c1_c5_fit_wakes_when_what_a_bound_pod_occupies_drops() -> None:
    fit, waiting, down = NodeResourcesFit(), pod("w", {"cpu": 2}), Action.UPDATE_POD_SCALE_DOWN
    assert not wakes(fit, waiting, POD, down, shrunk("3", "3"), shrunk("1", "3"))
    assert wakes(fit, waiting, POD, down, shrunk("1", "3"), shrunk("1", "1"))
    assert not wakes(fit, waiting, POD, down, shrunk("3", "3", on=""), shrunk("1", "1", on=""))
    other = pod("w", {"memory": "1Gi"})
    assert not wakes(fit, other, POD, down, shrunk("1", "3"), shrunk("1", "1"))


def test_fit_wakes_when_the_pod_itself_asks_for_less() -> None:
    before, after = pod("w", {"cpu": 2}), pod("w", {"cpu": 1})
    down = Action.UPDATE_POD_SCALE_DOWN
    assert wakes(NodeResourcesFit(), before, POD, down, before, after)


def test_affinity_wakes_when_a_node_matches_that_did_not() -> None:
    waiting = pod("w", nodeSelector={"disk": "ssd"})
    plain, labelled = node("n1"), node("n1", labels={"disk": "ssd"})
    label = Action.UPDATE_NODE_LABEL
    assert wakes(NodeAffinity(), waiting, NODE, Action.ADD, None, labelled)
    assert not wakes(NodeAffinity(), waiting, NODE, Action.ADD, None, plain)
    assert wakes(NodeAffinity(), waiting, NODE, label, plain, labelled)
    assert not wakes(NodeAffinity(), waiting, NODE, label, labelled, labelled)


def test_taints_wake_when_they_became_tolerable() -> None:
    waiting, taint = pod("w"), Action.UPDATE_NODE_TAINT
    clean, tainted = node("n1"), node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert wakes(TaintToleration(), waiting, NODE, taint, tainted, clean)
    assert not wakes(TaintToleration(), waiting, NODE, taint, clean, clean)
    assert not wakes(TaintToleration(), waiting, NODE, Action.ADD, None, tainted)
    own = pod("w", tolerations=[{"key": "k", "operator": "Exists"}])
    assert wakes(TaintToleration(), waiting, POD, Action.UPDATE_POD_TOLERATION, waiting, own)
    stranger = pod("x", tolerations=[{"key": "k", "operator": "Exists"}])
    assert not wakes(TaintToleration(), waiting, POD, Action.UPDATE_POD_TOLERATION, stranger, stranger)


def test_d7_a_cordon_that_the_pod_now_tolerates() -> None:
    waiting = pod("w")
    cordoned, open_node = node("n1", unschedulable=True), node("n1")
    plugin = NodeUnschedulable()
    assert wakes(plugin, waiting, NODE, Action.UPDATE_NODE_TAINT, cordoned, open_node)
    assert not wakes(plugin, waiting, NODE, Action.ADD, None, cordoned)
    tolerant = pod("w", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert wakes(plugin, waiting, POD, Action.UPDATE_POD_TOLERATION, waiting, tolerant)
    other = pod("w", tolerations=[{"key": "k", "operator": "Exists"}])
    assert not wakes(plugin, waiting, POD, Action.UPDATE_POD_TOLERATION, waiting, other)


def test_ports_wake_when_a_wanted_one_is_freed() -> None:
    def holding(name: str, port: int, on: str = "") -> PodInfo:
        return pod(name, on=on, containers=[{"name": "c", "ports": [{"hostPort": port}]}])

    waiting = holding("w", 80)
    assert wakes(NodePorts(), waiting, POD, Action.DELETE, holding("a", 80, "n1"), None)
    assert not wakes(NodePorts(), waiting, POD, Action.DELETE, holding("a", 81, "n1"), None)
    assert not wakes(NodePorts(), waiting, POD, Action.DELETE, holding("a", 80), None)


def test_d8_a_forgotten_pod_counts_as_one_that_was_bound() -> None:
    holder = pod("a", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    state = cluster(node("n1"), holder)
    state.assume(holder, "n1")
    (change,) = state.forget(holder.uid)
    waiting = pod("w", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    assert wakes(NodePorts(), waiting, POD, Action.DELETE, change.old, None)
    assert wakes(NodeResourcesFit(), waiting, POD, Action.DELETE, change.old, None)


def test_gates_wake_their_own_pod_only() -> None:
    gone = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    waiting = pod("w", schedulingGates=[{"name": "g"}])
    assert wakes(SchedulingGates(), waiting, POD, gone, waiting, pod("w"))
    assert not wakes(SchedulingGates(), waiting, POD, gone, pod("x"), pod("x"))


def test_what_is_not_built_is_woken_by_nothing() -> None:
    waiting = pod("w")
    assert not wakes(NotBuiltYet(), waiting, POD, Action.DELETE, pod("a", on="n1"), None)
    assert NotBuiltYet().events_to_register()


def test_registrations_of_a_profile() -> None:
    registrations = profile(cluster()).registrations()
    # DefaultBinder, PrioritySort and score plugins reject nobody.
    assert {"DefaultBinder", "PrioritySort", "ImageLocality"}.isdisjoint(registrations)
    affinity = [str(r.event) for r in registrations["NodeAffinity"]]
    assert any("TAINT" in text for text in affinity)  # told of taints too: a node may have been hidden
    assert all(r.event != WILDCARD for of in registrations.values() for r in of)
    assert all(isinstance(r, EventRegistration) for of in registrations.values() for r in of)
