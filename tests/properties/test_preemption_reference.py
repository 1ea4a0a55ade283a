"""Preemption names the victims that a slow plain reference names, or others that rank equal.

Hypothesis draws sizes and seeds, a seeded generator builds the clusters: priorities, budgets, nominated
pods, spread, affinity, ports and start times, in small vocabularies so that the rules meet each other.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.framework.plugin import Preemption
from pilotage.framework.profile import Profile
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.frontends.replay.world import ReplayHandle
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.aftermath import after_rejection
from pilotage.scheduling.decide import decide_now
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from reference.plain_preemption import Setting, answers, name_of
from reference.plain_spread_affinity import PlainCluster
from reference.random_clusters import NAMESPACES, Source

REGISTRY = default_registry()
POINTS = {
    point: tuple(
        PluginRef(ref.name, ref.weight) for ref in DEFAULT_MULTIPOINT if point in REGISTRY.points(ref.name)
    )
    for point in EXTENSION_POINTS
}
CLUSTERS_PER_EXAMPLE = 10

Tree = dict[str, Any]


def view(resource: str, tree: Tree) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, copy.deepcopy(tree))


class Preemptions(Source):
    """Clusters that are short of room."""

    def setting(self, n_nodes: int, n_pods: int) -> Setting:
        self.is_plain = self.chance(0.4)  # no spread and no affinity: many nodes are tried at once
        nodes = [self.small_node() for _ in range(n_nodes)]
        cluster = PlainCluster(nodes, namespaces={name: self.namespace_labels() for name in NAMESPACES})
        for _ in range(n_pods):
            cluster.pods.append(self.placed(name_of(self.one_of(*nodes))))
        budgets = [self.budget(cluster) for _ in range(self.one_of(0, 0, 1, 2, 3))]
        nominated = [
            (self.waiting(), name_of(self.one_of(*nodes))) for _ in range(self.one_of(0, 0, 0, 1, 2))
        ]
        return Setting(cluster, budgets, nominated)

    def small_node(self) -> Tree:
        tree = self.node()
        amounts = {"cpu": str(self.one_of(2, 4, 4, 6)), "memory": "64Gi", "pods": str(self.one_of(3, 5, 20))}
        tree["status"] = {"allocatable": amounts}
        return tree

    def placed(self, node: str) -> Tree:
        tree = self.pod(node=node, richness=0.0 if self.is_plain else 0.3)
        self._want(tree)
        if self.chance(0.6):
            tree["status"] = {"startTime": f"2026-01-0{self.one_of(1, 2, 3)}T00:00:00Z"}
        return tree

    def waiting(self) -> Tree:
        tree = self.pod(richness=0.0 if self.is_plain else 0.4)
        if self.is_plain:
            tree["spec"].pop("topologySpreadConstraints", None)
        self._want(tree)
        tree["spec"]["priority"] = self.one_of(1, 2, 2, 3)
        return tree

    def _want(self, tree: Tree) -> None:
        spec = tree["spec"]
        spec["priority"] = self.one_of(0, 0, 1, 1, 2, 3)
        (container,) = spec["containers"]
        container["resources"] = {"requests": {"cpu": str(self.one_of(0, 1, 1, 2, 3))}}
        if self.chance(0.15):
            port = self.one_of(80, 81)
            container["ports"] = [{"containerPort": port, "hostPort": port}]

    def budget(self, cluster: PlainCluster) -> Tree:
        selector = self.one_of({"app": "x"}, {"app": "y"}, {"tier": "f"}, {}, None)
        names = [name_of(pod) for pod in cluster.pods]
        disrupted = self.random.sample(names, min(len(names), 3)) if self.chance(0.4) else []
        return {
            "metadata": {"name": f"b{self.number()}", "namespace": self.one_of(*NAMESPACES)},
            "spec": {} if selector is None else {"selector": {"matchLabels": selector}},
            "status": {
                "disruptionsAllowed": self.one_of(0, 1, 2),
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        }


def build(setting: Setting) -> ClusterState:
    cluster = ClusterState()
    for name, labels in setting.cluster.namespaces.items():
        tree = {"metadata": {"name": name, "labels": labels}}
        cluster.upsert_object("namespaces", view("namespaces", tree))
    for node in setting.cluster.nodes:
        cluster.upsert_node(view("nodes", node))
    for budget in setting.budgets:
        resource = "poddisruptionbudgets.policy"
        cluster.upsert_object(resource, view(resource, budget))
    for pod in setting.cluster.pods:
        cluster.upsert_pod(PodInfo(view("pods", pod)))
    for pod, node in setting.nominated:
        info = PodInfo(view("pods", pod))
        cluster.upsert_pod(info)
        cluster.nominations.add(info, node)
    return cluster


def chosen(setting: Setting, pod: Tree, seed: int) -> Preemption | str | None:
    """What the real code says; the node where the pod fits without preemption."""
    cluster = build(setting)
    profile_settings = ProfileSettings("default-scheduler", POINTS)
    profile = Profile(profile_settings, REGISTRY, ReplayHandle(cluster, seed))
    info = PodInfo(view("pods", pod))
    cluster.upsert_pod(info)
    decision = decide_now(profile, cluster, info, np.random.default_rng(seed))
    if decision.is_scheduled:
        return decision.node
    after = after_rejection(profile, cluster.nodes, info, decision)
    cluster.check_invariants()
    assert after.post_filter.is_success == (after.preemption is not None), after.message
    assert after.nominated == (after.preemption.node if after.preemption else "")
    return after.preemption


def check(n_nodes: int, n_pods: int, seed: int, seen: Counter[str]) -> None:
    source = Preemptions(seed)
    setting = source.setting(n_nodes, n_pods)
    pod = source.waiting()
    answer = chosen(setting, pod, seed)
    if isinstance(answer, str):
        seen["fits"] += 1
        return
    right = answers(setting, pod)
    seen[("plain " if source.is_plain else "rich ") + ("preempts" if right else "cannot")] += 1
    if answer is None:
        assert not right, (seed, right)
        return
    names = tuple(victim.name for unit in answer.units for victim in unit.pods)
    assert answer.node in right, (seed, answer, right)
    assert names == right[answer.node].names, (seed, answer.node)
    outranked = {name_of(p) for p, node in setting.nominated if node == answer.node and _below(p, pod)}
    assert {info.name for info in answer.outranked} == outranked


def _below(one: Tree, other: Tree) -> bool:
    return bool(one["spec"]["priority"] < other["spec"]["priority"])


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(n_nodes=st.integers(1, 6), n_pods=st.integers(1, 24), seed=st.integers(0, 2**32))
def test_victims_equal_the_reference(n_nodes: int, n_pods: int, seed: int) -> None:
    for number in range(CLUSTERS_PER_EXAMPLE):
        check(n_nodes, n_pods, seed + number, Counter())


def test_the_generator_covers_both_ways_and_both_answers() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        check(1 + seed % 5, 12, seed, seen)
    assert min(seen[f"{way} {what}"] for way in ("plain", "rich") for what in ("preempts", "cannot")) > 5, (
        seen
    )
    assert seen["fits"] < 100
