"""A scenario's cluster and its decision: objects as an API server would have stored them, no network.

Objects arrive kind by kind and in file order within a kind, as they did when the scenario was recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_kind
from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.calls import Call
from pilotage.framework.profile import Profile
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings
from pilotage.frontends.replay.scenarios import Scenario
from pilotage.localcluster.rest.pod_admission import complete_pod
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo

Tree = dict[str, Any]

_ORDER: Final = (
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "Node",
    "CSINode",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "Pod",
)
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_BEGIN: Final = 1_767_225_600  # when objects were created; any moment will do: 2026-01-01
_NOW: Final = 4_102_444_800.0  # when the pod is decided: 2100, after every start time that was recorded


class UnknownKindError(ValueError):
    """An object of a kind that this program does not know."""


class ReplayHandle:
    """What plugins may ask for while a decision is taken: reading. Writes are dropped."""

    def __init__(self, cluster: ClusterState, seed: int = 0) -> None:
        self._cluster = cluster
        self._random = np.random.default_rng(seed)

    @property
    def gates(self) -> Mapping[str, bool]:
        return {}

    @property
    def cluster(self) -> ClusterState:
        return self._cluster

    @property
    def random(self) -> np.random.Generator:
        return self._random

    def now(self) -> float:
        return _NOW

    def submit(self, call: Call) -> None:
        pass

    def activate(self, pods: Sequence[str]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class World:
    """A cluster with one pod to decide."""

    cluster: ClusterState
    profile: Profile
    pod: PodInfo

    @property
    def now(self) -> float:
        """What plugins read off the clock."""
        return _NOW

    def decide(self) -> Decision:
        return decide_now(self.profile, self.cluster, self.pod, np.random.default_rng(0))


def build_world(scenario: Scenario, settings: ProfileSettings, registry: Registry) -> World:
    """Raises DecodeError, RestError or UnknownKindError for objects that an API server would refuse."""
    cluster = ClusterState()
    trees = as_created(scenario)
    classes = [tree for tree in trees if tree.get("kind") == "PriorityClass"]
    views = [_view(tree, number, classes) for number, tree in enumerate(trees, start=1)]
    for view in views[:-1]:
        _store(cluster, view)
    pod = views[-1]
    assert isinstance(pod, Pod)
    info = PodInfo(pod)
    cluster.upsert_pod(info)
    return World(cluster, Profile(settings, registry, ReplayHandle(cluster)), info)


def as_created(scenario: Scenario) -> list[Tree]:
    """All objects in the order of their creation, the pending pod last."""
    trees = [copy.deepcopy(tree) for tree in scenario.objects]
    known = {tree["metadata"]["name"] for tree in trees if tree.get("kind") == "Namespace"}
    used = {tree["metadata"].get("namespace") for tree in (*trees, scenario.pod)} - {None, *known}
    trees += [{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in sorted(used)]
    for tree in trees:
        if tree.get("kind") == "Namespace":
            labels = tree["metadata"].setdefault("labels", {})
            labels[_NAME_LABEL] = tree["metadata"]["name"]
    return [*sorted(trees, key=_rank), copy.deepcopy(scenario.pod)]


def _rank(tree: Tree) -> int:
    kind = tree.get("kind")
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) - 1


def _view(tree: Tree, number: int, classes: Sequence[Tree]) -> KubeObject:
    """The typed view of an object, with what the API server adds."""
    kind = by_kind(tree.get("apiVersion", ""), tree.get("kind", ""))
    if kind is None:
        raise UnknownKindError(f"unknown kind {tree.get('kind')} of {tree.get('apiVersion')}")
    if kind.resource == "pods":
        complete_pod(tree, classes)
    meta = tree["metadata"]
    meta.setdefault("uid", f"uid-{number}")
    meta.setdefault("creationTimestamp", _timestamp(number))
    meta["resourceVersion"] = str(number)
    return convert_object(kind, tree)


def _timestamp(number: int) -> str:
    moment = np.datetime64(_BEGIN + number, "s")
    return f"{moment}Z"


def _store(cluster: ClusterState, view: KubeObject) -> None:
    if isinstance(view, Node):
        cluster.upsert_node(view)
    elif isinstance(view, Pod):
        cluster.upsert_pod(PodInfo(view))
    else:
        kind = by_kind(view.api_version, view.kind)
        assert kind is not None
        cluster.upsert_object(kind.resource, view)


def scores_by_plugin(world: World, decision: Decision) -> dict[str, dict[str, int]]:
    """Plugin -> node -> weighted score; empty when nothing was scored."""
    if decision.scores is None:
        return {}
    by_plugin = decision.scores.by_plugin
    return {plugin: _by_node(world, decision, values) for plugin, values in by_plugin.items()}


def totals(world: World, decision: Decision) -> dict[str, int]:
    if decision.scores is None:
        return {}
    return _by_node(world, decision, decision.scores.totals)


def _by_node(world: World, decision: Decision, values: Iterable[Any]) -> dict[str, int]:
    names = (world.cluster.nodes.name(int(row)) for row in decision.rows)
    return {name: int(value) for name, value in zip(names, values, strict=True)}
