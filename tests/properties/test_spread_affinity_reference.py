"""The vector plugins decide like the slow per-node reference, on clusters that changed before."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.framework.profile import Profile
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.framework.status import Code
from pilotage.frontends.replay.world import ReplayHandle
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from reference.plain_spread_affinity import SCORERS, PlainCluster, Tree, name_of, reject
from reference.random_clusters import Source

REGISTRY = default_registry()
POINTS = {
    point: tuple(
        PluginRef(ref.name, ref.weight) for ref in DEFAULT_MULTIPOINT if point in REGISTRY.points(ref.name)
    )
    for point in EXTENSION_POINTS
}
SEEDS_PER_TEST = 25
DECISIONS_PER_CLUSTER = 4


def view(resource: str, tree: Tree) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, copy.deepcopy(tree))


class Subject:
    """The real state and profile, fed the same manifests as the reference."""

    def __init__(self, plain: PlainCluster) -> None:
        self.plain = plain
        self.cluster = ClusterState()
        spread: Tree = {"defaultingType": "System"}
        if plain.default_constraints is not None:
            spread = {"defaultingType": "List", "defaultConstraints": plain.default_constraints}
        affinity = {
            "hardPodAffinityWeight": plain.hard_pod_affinity_weight,
            "ignorePreferredTermsOfExistingPods": plain.ignore_preferred,
        }
        args = {"PodTopologySpread": spread, "InterPodAffinity": affinity}
        settings = ProfileSettings("default-scheduler", POINTS, args)
        self.profile = Profile(settings, REGISTRY, ReplayHandle(self.cluster))

    def tell_all(self, source: Source) -> None:
        """Everything, after detours: other labels first, pods on other nodes, nodes that leave again."""
        for name in self.plain.namespaces:
            self.tell_namespace(name, source.namespace_labels())
        detours = [source.node() for _ in range(3)]
        for node in (*detours, *self.plain.nodes):
            changed = copy.deepcopy(node)
            changed["metadata"]["labels"] = source.node_labels(name_of(node))
            self.cluster.upsert_node(view("nodes", changed))
        strangers = [source.pod(node=name_of(source.one_of(*detours))) for _ in range(3)]
        for pod in (*strangers, *self.plain.pods):
            self.tell_pod(pod)
        for resource, trees in (
            ("services", self.plain.services),
            ("replicasets.apps", self.plain.replica_sets),
        ):
            for tree in trees:
                self.cluster.upsert_object(resource, view(resource, tree))
        for node in self.plain.nodes:
            self.cluster.upsert_node(view("nodes", node))
        for pod in [source.pod(richness=0.9) for _ in range(4)]:
            self.decide(pod, 0)  # what is kept for these must follow the changes below
        for node in detours:
            self.cluster.delete_node(name_of(node))
        for name, labels in self.plain.namespaces.items():
            self.tell_namespace(name, labels)

    def tell_namespace(self, name: str, labels: dict[str, str]) -> None:
        tree = {"metadata": {"name": name, "labels": labels}}
        self.cluster.upsert_object("namespaces", view("namespaces", tree))

    def tell_pod(self, pod: Tree) -> PodInfo:
        info = PodInfo(view("pods", pod))
        self.cluster.upsert_pod(info)
        return info

    def decide(self, pod: Tree, seed: int) -> Decision:
        return decide_now(self.profile, self.cluster, self.tell_pod(pod), np.random.default_rng(seed))


def compare(subject: Subject, pod: Tree, decision: Decision) -> list[Tree]:
    """Feasible nodes, reasons and scores; returns the feasible nodes."""
    plain, nodes = subject.plain, subject.cluster.nodes
    rejections = {name_of(node): reject(plain, pod, node) for node in plain.nodes}
    feasible = [node for node in plain.nodes if rejections[name_of(node)] is None]
    assert {nodes.name(int(row)) for row in decision.rows} == {name_of(node) for node in feasible}
    if not feasible:
        for name, rejection in rejections.items():
            row = nodes.row(name)
            assert row is not None
            assert rejection is not None
            assert decision.failures is not None
            status = decision.failures.status(row)
            code = Code.UNSCHEDULABLE if rejection.is_resolvable else Code.UNRESOLVABLE
            assert (status.plugin, status.code, status.message) == (rejection.plugin, code, rejection.text)
    if len(feasible) > 1:
        compare_scores(subject, pod, decision, feasible)
    return feasible


def compare_scores(subject: Subject, pod: Tree, decision: Decision, feasible: list[Tree]) -> None:
    assert decision.scores is not None
    names = [subject.cluster.nodes.name(int(row)) for row in decision.rows]
    for plugin, scorer in SCORERS.items():
        expected = scorer(subject.plain, pod, feasible)
        values = decision.scores.by_plugin.get(plugin)
        actual = (
            dict.fromkeys(names, 0) if values is None else dict(zip(names, map(int, values), strict=True))
        )
        assert actual == {name: 2 * expected.get(name, 0) for name in names}, plugin


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, SEEDS_PER_TEST))
def test_vector_plugins_equal_the_reference(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        source = Source(seed)
        plain = source.cluster()
        subject = Subject(plain)
        subject.tell_all(source)
        for step in range(DECISIONS_PER_CLUSTER):
            pod = source.pod(richness=0.5)
            decision = subject.decide(pod, seed)
            feasible = compare(subject, pod, decision)
            if not feasible:
                continue
            subject.cluster.assume(subject.tell_pod(pod), decision.node)
            if step % 2:
                pod["spec"]["nodeName"] = decision.node
                subject.tell_pod(pod)
            else:
                pod = copy.deepcopy(pod)
                pod["spec"]["nodeName"] = decision.node
            plain.pods.append(pod)
        subject.cluster.terms.check_invariants()


def test_the_generator_covers_what_it_should() -> None:
    seen: set[str] = set()
    for seed in range(60):
        source = Source(seed)
        plain = source.cluster()
        for pod in [source.pod() for _ in range(6)]:
            seen.update(filter(None, (r and r.text for r in (reject(plain, pod, n) for n in plain.nodes))))
            feasible = [node for node in plain.nodes if reject(plain, pod, node) is None]
            for plugin, scorer in SCORERS.items():
                if len(set(scorer(plain, pod, feasible).values() if len(feasible) > 1 else ())) > 1:
                    seen.add(plugin)
    assert len(seen) == 10, seen
