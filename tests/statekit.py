"""Builders for tests on state, plugins and decisions: manifests in few words, a profile in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec
import numpy as np

from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.calls import Call
from pilotage.framework.profile import Profile
from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo

GI = 1024**3
MI = 1024**2
_versions = count(1)


class FakeHandle:
    """A handle that shows a cluster and remembers calls."""

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster = cluster
        self.gates: Mapping[str, bool] = {}
        self.random = np.random.default_rng(0)
        self.calls: list[Call] = []

    def now(self) -> float:
        return 0.0

    def submit(self, call: Call) -> None:
        self.calls.append(call)

    def activate(self, pods: Sequence[str]) -> None:
        raise AssertionError("nobody activates pods here")


def node(
    name: str,
    allocatable: Mapping[str, object] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    images: Mapping[str, int] | None = None,
    unschedulable: bool = False,
    uid: str = "",
    version: str = "",
) -> Node:
    """A node of 4 CPU, 8Gi and 110 pods unless told otherwise."""
    tree = {
        "metadata": {
            "name": name,
            "uid": uid or f"node-{name}",
            "resourceVersion": version or str(next(_versions)),
            "labels": dict(labels or {}),
        },
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}
            if allocatable is None
            else allocatable,
            "images": [{"names": [n], "sizeBytes": size} for n, size in (images or {}).items()],
        },
    }
    return msgspec.convert(tree, Node)


def pod(
    name: str,
    requests: Mapping[str, object] | None = None,
    *,
    on: str = "",
    containers: Sequence[Mapping[str, Any]] | None = None,
    uid: str = "",
    version: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    terminating: bool = False,
    **spec: Any,
) -> PodInfo:
    """A pod of one container; `spec` takes the API's field names."""
    one = {"name": "main", "image": "app", "resources": {"requests": dict(requests or {})}}
    tree = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"pod-{name}",
            "resourceVersion": version or str(next(_versions)),
            "labels": dict(labels or {}),
            "deletionTimestamp": "2026-01-01T00:00:00Z" if terminating else None,
        },
        "spec": {"nodeName": on, "containers": [one] if containers is None else list(containers), **spec},
        "status": dict(status or {}),
    }
    return PodInfo(msgspec.convert(tree, Pod))


def cluster(*objects: Node | PodInfo) -> ClusterState:
    state = ClusterState()
    for thing in objects:
        if isinstance(thing, Node):
            state.upsert_node(thing)
        else:
            state.upsert_pod(thing)
    state.check_invariants()
    return state


def profile(
    state: ClusterState,
    plugins: Sequence[PluginRef] = DEFAULT_MULTIPOINT,
    *,
    registry: Registry | None = None,
    args: Mapping[str, Any] | None = None,
    percentage: int | None = None,
) -> Profile:
    points = dict.fromkeys(EXTENSION_POINTS, tuple(plugins))
    settings = ProfileSettings("default-scheduler", points, dict(args or {}), percentage)
    return Profile(settings, registry or default_registry(), FakeHandle(state))


def decide_with(state: ClusterState, info: PodInfo, **kwargs: Any) -> Decision:
    """Decides with the default profile; `kwargs` as for `profile`."""
    return decide_now(profile(state, **kwargs), state, info, np.random.default_rng(0))


def feasible(state: ClusterState, decision: Decision) -> set[str]:
    return {state.nodes.name(int(row)) for row in decision.rows}


def scores_of(state: ClusterState, decision: Decision, plugin: str) -> dict[str, int]:
    """Weighted score by node name."""
    assert decision.scores is not None
    of = decision.scores.by_plugin[plugin]
    return {state.nodes.name(int(row)): int(score) for row, score in zip(decision.rows, of, strict=True)}
