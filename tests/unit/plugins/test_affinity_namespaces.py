"""Which pods InterPodAffinity wakes when a namespace gets other labels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enginekit import World, binds
from pilotage.api.others import Namespace
from pilotage.scheduling.messages import Upserted

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
TEAM_R = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["r"]}]}
NOT_TEAM_R = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["r"]}]}


def term(selector: dict[str, Any] | None) -> dict[str, Any]:
    about = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
    return about if selector is None else {**about, "namespaceSelector": selector}


def terms(side: str, selector: dict[str, Any] | None) -> dict[str, Any]:
    return {"spec": {"affinity": {side: {REQUIRED: [term(selector)]}}}}


def relabel(world: World, team: str) -> None:
    world.version += 1
    metadata = {"name": "ns", "uid": "ns", "resourceVersion": str(world.version), "labels": {"team": team}}
    world.send(Upserted("namespaces", msgspec.convert({"metadata": metadata}, Namespace)))


def with_one_node(team: str) -> World:
    world = World()
    relabel(world, team)
    world.node("n1", "4", {"metadata": {"labels": {HOSTNAME: "n1"}}})
    return world


X = {"metadata": {"labels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("side", "selector", "before", "now"),
    [
        ("podAffinity", TEAM_R, "g", "r"),
        ("podAffinity", NOT_TEAM_R, "r", "g"),
        ("podAntiAffinity", TEAM_R, "r", "g"),
        ("podAntiAffinity", NOT_TEAM_R, "g", "r"),
    ],
)
def test_its_own_terms_see_the_namespace_differently(
    side: str, selector: dict[str, Any], before: str, now: str
) -> None:
    world = with_one_node(before)
    world.pod("x", None, X, {"spec": {"nodeName": "n1"}})
    world.pod("a", None, terms(side, selector))
    assert binds(world.schedule()) == []
    world.now += 60
    relabel(world, now)
    assert world.position("a") == "active"
    assert binds(world.schedule()) == [("a", "n1")]


def test_a_term_of_another_pod_does_not_see_it_any_more() -> None:
    world = with_one_node("r")
    world.pod("guard", None, terms("podAntiAffinity", TEAM_R), {"spec": {"nodeName": "n1"}})
    world.pod("a", None, X)
    world.schedule()
    assert world.position("a") == "unschedulable"
    world.now += 60
    relabel(world, "g")
    assert binds(world.schedule()) == [("a", "n1")]


@pytest.mark.parametrize("selector", [None, TEAM_R])
def test_labels_that_no_selector_reads_wake_nobody(selector: dict[str, Any] | None) -> None:
    world = with_one_node("g")
    world.pod("guard", None, terms("podAntiAffinity", None), {"spec": {"nodeName": "n1"}})
    world.pod("x", None, X, {"spec": {"nodeName": "n1"}})
    world.pod("a", None, X)
    world.pod("b", None, terms("podAffinity", selector), {"spec": {"nodeSelector": {HOSTNAME: "n2"}}})
    world.schedule()
    world.now += 60
    relabel(world, "other")
    assert (world.position("a"), world.position("b")) == ("unschedulable", "unschedulable")
