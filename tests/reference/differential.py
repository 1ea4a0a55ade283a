"""One differential case: a random cluster told to engine and reference, pods decided by both.

A case is a seed and sizes. Between decisions nodes, pods, labels and services change; the node that the
engine chose takes the pod on both sides. No differences: both agree in everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.api.lean import Sharing
from pilotage.framework.profile import Profile
from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.framework.status import Code
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from reference.plain_scheduler import PlainDecision, decide_plainly
from reference.plain_world import PlainWorld, Rejection, Tree, name_of
from reference.wide_source import MOMENT, NAMESPACES, OWNERS, WideSource
from statekit import FakeHandle

RESOURCES = {
    "Service": "services",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}
LARGE_ONE_IN = 50


@dataclass(frozen=True)
class Sizes:
    nodes: int
    pods: int
    decisions: int = 4

    @staticmethod
    def of(seed: int) -> Sizes:
        """Mostly up to 20 nodes, up to 200 once in fifty."""
        random = Random(f"sizes {seed}")
        if random.randrange(LARGE_ONE_IN) == 0:
            return Sizes(random.randint(21, 200), random.randint(0, 200), 2)
        nodes = random.randint(0, 20)
        return Sizes(nodes, random.randint(0, 2 * nodes))


def _points(registry: Registry) -> dict[str, tuple[PluginRef, ...]]:
    return {
        point: tuple(
            PluginRef(ref.name, ref.weight)
            for ref in DEFAULT_MULTIPOINT
            if point in registry.points(ref.name)
        )
        for point in EXTENSION_POINTS
    }


REGISTRY = default_registry()
POINTS = _points(REGISTRY)


def view(resource: str, tree: Tree) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, tree)


@dataclass
class Case:
    seed: int
    sizes: Sizes
    world: PlainWorld = field(default_factory=PlainWorld)
    cluster: ClusterState = field(default_factory=ClusterState)
    differences: list[str] = field(default_factory=list)
    unscheduled: int = 0

    def __post_init__(self) -> None:
        self.source = WideSource(self.seed, self.sizes.nodes)
        self.sharing = Sharing()  # as informers do
        self.richness = self.source.one_of(0.0, 0.2, 0.6)

    def run(self) -> list[str]:
        self._build()
        settings = ProfileSettings("default-scheduler", POINTS, self.world.args)
        self.profile = Profile(settings, REGISTRY, FakeHandle(self.cluster))
        for step in range(self.sizes.decisions):
            self._decide(step)
            self._disturb()
        try:
            self.cluster.check_invariants()
        except AssertionError as exc:
            self.differences.append(f"seed {self.seed}: invariants: {exc}")
        return self.differences

    # Telling both

    def _build(self) -> None:
        for name in NAMESPACES:
            self._tell_namespace(name)
        for _ in range(self.sizes.nodes):
            self._tell_node(self.source.node())
        self.world.args = self.source.args()
        for namespace in NAMESPACES:
            for name in ("s1", "s2"):
                if self.source.chance(0.35):
                    self._tell_other(self.world.services, "Service", self.source.service(namespace, name))
            for api, kind in OWNERS[:3]:
                if self.source.chance(0.5):
                    tree = self.source.controller(namespace, api, kind, "rs")
                    self._tell_other(self.world.controllers, kind, tree)
        n_pods = self.sizes.pods * (2 if self.source.is_dense else 1)
        for _ in range(n_pods if self.world.nodes else 0):
            node = name_of(self.source.random.choice(self.world.nodes))
            self._tell_bound(self.source.pod(node=node, richness=self.richness))
        if self.world.nodes and self.source.chance(0.15):
            self._nominate()

    def _tell_namespace(self, name: str) -> None:
        labels = {"kubernetes.io/metadata.name": name, **self.source.namespace_labels()}
        self.world.namespaces[name] = labels
        tree = {"metadata": {"name": name, "labels": labels}}
        self.cluster.upsert_object("namespaces", view("namespaces", tree))

    def _tell_node(self, node: Tree) -> None:
        self.world.tell_node(node)
        self.cluster.upsert_node(self.sharing.slim(view("nodes", node)))

    def _tell_other(self, known: list[Tree], kind: str, tree: Tree) -> None:
        known.append(tree)
        self.cluster.upsert_object(RESOURCES[kind], view(RESOURCES[kind], tree))

    def _tell_bound(self, pod: Tree) -> None:
        self.world.pods = [known for known in self.world.pods if name_of(known) != name_of(pod)] + [pod]
        self.cluster.upsert_pod(PodInfo(self.sharing.slim(view("pods", pod))))

    def _nominate(self) -> None:
        for _ in range(self.source.one_of(1, 2, 3)):
            pod, node = self.source.pod(richness=self.richness), self.source.one_of(*self.world.nodes)
            self.world.nominated.append((pod, name_of(node)))
            self.cluster.upsert_pod(PodInfo(view("pods", pod)))
            self.cluster.nominations.add(PodInfo(view("pods", pod)), name_of(node))

    # Between decisions

    def _disturb(self) -> None:
        source = self.source
        if not self.world.nodes:
            return
        node = source.one_of(*self.world.nodes)
        match source.random.randrange(12):
            case 0 | 1:
                self._tell_node(source.node_named(name_of(node)))
            case 2:
                self.world.drop_node(node)
                self.cluster.delete_node(name_of(node))
            case 3:
                self._tell_node(source.node())
            case 4 | 5:
                self._disturb_pod()
            case 6:
                self._tell_namespace(source.one_of(*NAMESPACES))
            case 7:
                self._drop_service()

    def _disturb_pod(self) -> None:
        if not self.world.pods:
            return
        pod = self.source.one_of(*self.world.pods)
        pod = {**pod, "metadata": dict(pod["metadata"])}
        if self.source.chance(0.3):
            self.world.pods = [known for known in self.world.pods if name_of(known) != name_of(pod)]
            self.cluster.delete_pod(pod["metadata"]["uid"])
            return
        if self.source.chance(0.5):
            pod["metadata"]["labels"] = self.source.pod_labels()
        else:
            pod["metadata"]["deletionTimestamp"] = MOMENT
        self._tell_bound(pod)

    def _drop_service(self) -> None:
        if self.world.services:
            service = self.world.services.pop()
            self.cluster.delete_object("services", view("services", service))

    # Deciding

    def _decide(self, step: int) -> None:
        pod = self.source.pod(richness=0.5)
        info = PodInfo(view("pods", pod))
        self.cluster.upsert_pod(info)
        decision = decide_now(self.profile, self.cluster, info, np.random.default_rng(self.seed))
        plain = decide_plainly(self.world, pod)
        found = compare(self.cluster, decision, plain)
        self.differences += [f"seed {self.seed} {self.sizes} step {step}: {text}" for text in found]
        self.unscheduled += not plain.feasible
        if not decision.node:
            self.cluster.delete_pod(info.uid)
            return
        bound = {**pod, "spec": {**pod["spec"], "nodeName": decision.node}}
        self.cluster.assume(info, decision.node)
        if step % 2:
            self._tell_bound(bound)
        else:
            self.world.pods = [*self.world.pods, bound]


def run_case(seed: int, sizes: Sizes | None = None) -> list[str]:
    """What engine and reference disagree about; an exception of either is a difference too."""
    case = Case(seed, sizes or Sizes.of(seed))
    try:
        return case.run()
    except Exception as exc:  # any failure of either side is a finding
        return [*case.differences, f"seed {seed} {case.sizes}: {type(exc).__name__}: {exc}"]


# Comparing


def compare(cluster: ClusterState, decision: Decision, plain: PlainDecision) -> list[str]:
    nodes = cluster.nodes
    actual = {nodes.name(int(row)) for row in decision.rows} if decision.node else set()
    if actual != set(plain.feasible):
        return [f"feasible: engine {sorted(actual)}, reference {sorted(plain.feasible)}"]
    if not plain.feasible:
        found = [] if decision.message == plain.message else [f"{decision.message!r} != {plain.message!r}"]
        return found + _compare_reasons(cluster, decision, plain)
    if len(plain.feasible) == 1:
        return []
    found = _compare_scores(cluster, decision, plain)
    if not found and decision.node not in plain.best():
        found.append(f"chosen {decision.node}, best {plain.best()}")
    return found


def _compare_reasons(cluster: ClusterState, decision: Decision, plain: PlainDecision) -> list[str]:
    found = []
    for name, rejection in plain.rejections.items():
        row = cluster.nodes.row(name)
        assert row is not None
        assert decision.failures is not None
        status = decision.failures.status(row)
        reasons = tuple(sorted(status.reasons))
        actual = Rejection(status.plugin, status.code is Code.UNSCHEDULABLE, reasons)
        expected = Rejection(rejection.plugin, rejection.is_resolvable, tuple(sorted(rejection.reasons)))
        if actual != expected:
            found.append(f"{name}: engine {actual}, reference {expected}")
    return found


def _compare_scores(cluster: ClusterState, decision: Decision, plain: PlainDecision) -> list[str]:
    assert decision.scores is not None
    names = [cluster.nodes.name(int(row)) for row in decision.rows]
    found = []
    for plugin in plain.scores.keys() | decision.scores.by_plugin.keys():
        values = decision.scores.by_plugin.get(plugin)
        actual = dict(zip(names, map(int, values), strict=True)) if values is not None else {}
        expected = plain.scores.get(plugin, {})
        for name in names:
            if actual.get(name, 0) != expected.get(name, 0):
                found.append(f"{plugin} on {name}: {actual.get(name, 0)} != {expected.get(name, 0)}")
    return found
