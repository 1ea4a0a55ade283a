"""A few objects explained: no files, no network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.explain.analysis import explain
from pilotage.frontends.explain.model import Explanation, Rejection
from pilotage.frontends.explain.state import pod_state
from pilotage.frontends.snapshot.loading import load, unbound
from pilotage.frontends.snapshot.objects import snapshot_of_trees
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings
from pilotage.state.podinfo import PodInfo

Tree = dict[str, Any]
NOW = 1_800_000_000.0


def explained(
    trees: Sequence[Tree],
    name: str,
    *,
    namespace: str = "default",
    closely: Collection[str] = (),
    settings: Settings | None = None,
    registry: Registry | None = None,
) -> Explanation:
    """The explanation of one of the pods among the objects."""
    registry = registry or default_registry()
    snapshot = snapshot_of_trees(trees, "test")
    pod = snapshot.pod(namespace, name)
    assert pod is not None
    engine = load(snapshot, settings or default_settings(registry), registry, NOW, {pod.metadata.uid})
    info = PodInfo(unbound(pod) if pod.spec.node_name else pod)
    state = pod_state(pod, snapshot.events_about(namespace, name))
    return explain(engine, info, state, snapshot.notes, closely)


def on(tree: Tree, node: str) -> Tree:
    """The pod as it looks on a node."""
    tree["spec"]["nodeName"] = node
    tree["status"] = {"phase": "Running"}
    return tree


def rejection(found: Explanation, node: str) -> Rejection:
    return next(one for one in found.rejections if one.node == node)


def details(found: Explanation) -> dict[str, str]:
    """Node -> the numbers behind its rejection."""
    return {one.node: one.detail.text for one in found.rejections}


def changes(found: Explanation) -> dict[tuple[str, ...], tuple[str, ...]]:
    """What would have to change -> the nodes that would do then."""
    return {one.changes: one.nodes for one in found.what_ifs}
