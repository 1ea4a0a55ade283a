"""NodeDeclaredFeatures: what pods need, which nodes have it, what wakes a pod that waits for it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from pilotage.api.nodes import Node
from pilotage.framework.events import Action, Hint, Resource
from pilotage.framework.profile import Profile
from pilotage.framework.settings import EXTENSION_POINTS, ProfileSettings
from pilotage.framework.status import Code
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.plugins.node_declared_features import (
    MISSING,
    Feature,
    NodeDeclaredFeatures,
    needed_features,
)
from pilotage.scheduling.decide import decide_now
from pilotage.state.podinfo import PodInfo
from statekit import FakeHandle, cluster, decide_with, feasible, node, pod

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}]


def declaring(name: str, *features: str) -> Node:
    plain = node(name)
    status = msgspec.structs.replace(plain.status, declared_features=list(features) or None)
    return msgspec.structs.replace(plain, status=status)


def restarting(name: str = "w", rules: Any = RULES) -> PodInfo:
    return pod(name, containers=[{"name": "main", "image": "app", "restartPolicyRules": rules}])


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (pod("p"), set()),
        (restarting(), {RESTART}),
        (restarting(rules=[{"action": "Restart"}]), set()),
        (pod("p", initContainers=[{"name": "i", "restartPolicyRules": RULES}]), {RESTART}),
        (pod("p", hostNetwork=True, hostUsers=False), {USERS}),
        (pod("p", hostNetwork=True, hostUsers=True), set()),
        (pod("p", hostNetwork=True), set()),
        (pod("p", hostUsers=False), set()),
    ],
)
def test_needs_are_read_from_the_spec(info: PodInfo, expected: set[str]) -> None:
    assert needed_features(info.pod.spec) == expected


@pytest.mark.parametrize(("release", "expected"), [((1, 38), set()), ((1, 37), {"X"}), ((1, 36), {"X"})])
def test_a_need_ends_with_its_last_release(release: tuple[int, int], expected: set[str]) -> None:
    feature = Feature("X", lambda _spec: True, last_release=(1, 37))
    assert needed_features(pod("p").pod.spec, (feature,), release) == expected


def test_only_nodes_that_declare_all_are_feasible() -> None:
    state = cluster(declaring("none"), declaring("one", RESTART), declaring("more", "Other", RESTART))
    assert feasible(state, decide_with(state, restarting())) == {"one", "more"}
    assert feasible(state, decide_with(state, pod("p"))) == {"none", "one", "more"}


def test_a_node_that_stops_declaring_is_left_and_a_new_one_under_its_row_starts_afresh() -> None:
    state = cluster(declaring("a", RESTART), declaring("b", RESTART))
    state.upsert_node(declaring("a"))
    assert feasible(state, decide_with(state, restarting())) == {"b"}
    state.delete_node("b")
    state.upsert_node(declaring("c"))
    assert feasible(state, decide_with(state, restarting())) == set()


def test_the_reason_is_counted_and_preemption_does_not_help() -> None:
    state = cluster(declaring("a"), declaring("b", USERS))
    decision = decide_with(state, restarting())
    assert decision.message == f"0/2 nodes are available: 2 {MISSING}."
    assert decision.failures is not None
    assert decision.failures.status(0).code is Code.UNRESOLVABLE
    assert decision.unschedulable_plugins == {"NodeDeclaredFeatures"}


def test_with_the_gate_off_nothing_is_needed() -> None:
    state = cluster(declaring("a"))
    handle = FakeHandle(state)
    handle.gates = {"NodeDeclaredFeatures": False}
    points = dict.fromkeys(EXTENSION_POINTS, DEFAULT_MULTIPOINT)
    profile = Profile(ProfileSettings("default-scheduler", points), default_registry(), handle)
    assert decide_now(profile, state, restarting(), np.random.default_rng(0)).node == "a"


def wakes(resource: Resource, action: Action, waiting: PodInfo, old: Any, new: Any) -> bool:
    return any(
        r.hint is not None and r.hint(waiting, old, new) is Hint.QUEUE
        for r in NodeDeclaredFeatures().events_to_register()
        if r.event.resource is resource and r.event.action & action
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, declaring("n", RESTART), True),
        (None, declaring("n", USERS), False),
        (declaring("n"), declaring("n", RESTART), True),
        (declaring("n", RESTART), declaring("n"), False),
    ],
)
def test_a_node_wakes_when_it_declares_what_is_needed(old: Any, new: Any, expected: bool) -> None:
    action = Action.ADD if old is None else Action.UPDATE_NODE_DECLARED_FEATURE
    assert wakes(Resource.NODE, action, restarting(), old, new) == expected


def test_the_pod_itself_wakes_when_its_needs_change() -> None:
    waiting, eased, other = restarting(), restarting(rules=None), restarting("other", None)
    update = Action.UPDATE_OTHER
    assert wakes(Resource.TARGET_POD, update, waiting, waiting, eased)
    assert not wakes(Resource.TARGET_POD, update, waiting, waiting, restarting())
    assert not wakes(Resource.TARGET_POD, update, waiting, restarting("other"), other)
