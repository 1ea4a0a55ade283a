"""Field selectors: which fields each kind can be selected by, and their values at write time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pilotage.localcluster.store import Tree


def _get(tree: Tree, *path: str) -> Any:
    value: Any = tree
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _pod(tree: Tree) -> dict[str, str]:
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": status.get("podIP") or "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def _node(tree: Tree) -> dict[str, str]:
    return {"spec.unschedulable": "true" if _get(tree, "spec", "unschedulable") else "false"}


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _event(tree: Tree) -> dict[str, str]:
    values = {f"involvedObject.{name}": _text(_get(tree, "involvedObject", name)) for name in _INVOLVED}
    component = _text(_get(tree, "source", "component"))
    values["reason"] = _text(tree.get("reason"))
    values["type"] = _text(tree.get("type"))
    values["reportingComponent"] = _text(tree.get("reportingComponent"))
    values["source"] = component or values["reportingComponent"]
    return values


def _namespace(tree: Tree) -> dict[str, str]:
    return {"status.phase": _text(_get(tree, "status", "phase"))}


def _replicas(tree: Tree) -> dict[str, str]:
    return {"status.replicas": _text(_get(tree, "status", "replicas") or 0)}


def _secret(tree: Tree) -> dict[str, str]:
    return {"type": _text(tree.get("type"))}


FIELD_READERS: Mapping[str, Callable[[Tree], dict[str, str]]] = {
    "pods": _pod,
    "nodes": _node,
    "events": _event,
    "namespaces": _namespace,
    "replicasets.apps": _replicas,
    "replicationcontrollers": _replicas,
    "secrets": _secret,
}
"""By storage resource. `metadata.name` and `metadata.namespace` go for every kind and are not in here."""

METADATA_FIELDS = frozenset(("metadata.name", "metadata.namespace"))
SELECTABLE: Mapping[str, frozenset[str]] = {
    resource: METADATA_FIELDS | frozenset(read({})) for resource, read in FIELD_READERS.items()
}

_EVENTS_V1_PREFIX = "regarding."


def stored_field(resource: str, name: str) -> str:
    """The stored name of a field: events.k8s.io has its own names for some."""
    if resource == "events" and name.startswith(_EVENTS_V1_PREFIX):
        return f"involvedObject.{name.removeprefix(_EVENTS_V1_PREFIX)}"
    if resource == "events" and name == "reportingController":
        return "reportingComponent"
    return "metadata.name" if resource == "namespaces" and name == "name" else name
