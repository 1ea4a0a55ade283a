"""Nodes as rows."""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.tables.layout import AGE, NAME, Layout, join, text, wide
from pilotage.localcluster.rest.timestamps import age_text
from pilotage.localcluster.rest.trees import child, children
from pilotage.localcluster.rest.trees import text as text_of
from pilotage.localcluster.store import Tree

_COLUMNS = (
    NAME,
    text("Status", "Whether the node is ready, and whether it takes new pods."),
    text("Roles", "The roles that the node's labels name."),
    AGE,
    text("Version", "The kubelet's version."),
    wide("Internal-IP", "The node's address inside the cluster."),
    wide("External-IP", "The node's address outside."),
    wide("OS-Image", "The node's operating system."),
    wide("Kernel-Version", "The node's kernel."),
    wide("Container-Runtime", "What runs the containers."),
)
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"
_UNKNOWN = "<unknown>"


def _cells(tree: Tree, now: float) -> list[Any]:
    meta, status = tree["metadata"], child(tree, "status") or {}
    info = child(status, "nodeInfo") or {}
    return [
        meta["name"],
        status_text(tree),
        _roles(meta.get("labels") or {}),
        age_text(meta.get("creationTimestamp"), now),
        text_of(info, "kubeletVersion"),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        text_of(info, "osImage") or _UNKNOWN,
        text_of(info, "kernelVersion") or _UNKNOWN,
        text_of(info, "containerRuntimeVersion") or _UNKNOWN,
    ]


def status_text(tree: Tree) -> str:
    conditions = children(child(tree, "status"), "conditions")
    ready = next((condition for condition in conditions if condition.get("type") == "Ready"), None)
    is_cordoned = (child(tree, "spec") or {}).get("unschedulable") is True
    return f"{_readiness(ready)},SchedulingDisabled" if is_cordoned else _readiness(ready)


def _readiness(ready: Tree | None) -> str:
    if ready is None:
        return "Unknown"
    return "Ready" if ready.get("status") == "True" else "NotReady"


def _roles(labels: dict[str, str]) -> str:
    names = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get(_ROLE):
        names.add(labels[_ROLE])
    return join(sorted(name for name in names if name))


def _address(status: Tree, kind: str) -> str:
    found = (text_of(a, "address") for a in children(status, "addresses") if a.get("type") == kind)
    return next(found, "<none>")


LAYOUT = Layout(_COLUMNS, _cells)
