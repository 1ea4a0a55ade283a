"""Makes Node objects: some number of them from a template, or pools of different shapes over zones.

A template is either a Node (its name is the prefix of the names) or a document with `zones` and `pools`,
each pool with `name`, `count`, `resources`, and optionally `labels`, `annotations`, `taints`,
`unschedulable`, `images`. Zones are dealt round robin inside each pool.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pilotage.api.quantity import QuantityError, parse
from pilotage.localcluster.kubelet.status import DEFAULT_CAPACITY

Tree = dict[str, Any]
DEFAULT_ZONES = ("zone-a", "zone-b", "zone-c")
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
HOSTNAME_LABEL = "kubernetes.io/hostname"
POOL_LABEL = "pool"
_POOL_FIELDS = frozenset(
    ("name", "count", "resources", "labels", "annotations", "taints", "unschedulable", "images")
)


_NODE_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))
_DOCUMENT_FIELDS = frozenset(("zones", "pools"))


class NodeTemplateError(ValueError):
    """The template cannot be used; the text says where and why."""


def generate(count: int, template: Mapping[str, Any] | None = None) -> list[Tree]:
    """`count` nodes. A Node template is repeated; of pools the first `count` nodes, repeated as a whole.

    Without a template: equal nodes of 4 CPUs in three zones. Raises NodeTemplateError.
    """
    if template is not None and "pools" in template:
        pool = from_pools(template)
        if not pool and count:
            raise NodeTemplateError("pools: they have no node at all")
        return [_renamed(pool[index % len(pool)], index // len(pool)) for index in range(count)]
    node = template or {}
    if node and node.get("kind") not in (None, "Node"):
        raise NodeTemplateError(f"kind: expected Node (or a document with pools), got {node.get('kind')!r}")
    _check_fields(node, _NODE_FIELDS, "")
    prefix = _mapping(node, "metadata", "").get("name") or "node"
    return [_from_node(node, f"{prefix}-{index}", index) for index in range(count)]


def from_pools(document: Mapping[str, Any]) -> list[Tree]:
    """All nodes of a document with `pools`. Raises NodeTemplateError."""
    _check_fields(document, _DOCUMENT_FIELDS, "")
    zones = document.get("zones") or ()
    if not isinstance(zones, list | tuple) or not all(isinstance(zone, str) for zone in zones):
        raise NodeTemplateError(f"zones: expected a list of names, got {zones!r}")
    pools = document.get("pools")
    if not isinstance(pools, list):
        raise NodeTemplateError("pools: expected a list")
    return [node for index, pool in enumerate(pools) for node in _pool(pool, f"pools[{index}]", zones)]


def _pool(pool: object, where: str, zones: Sequence[str]) -> Iterator[Tree]:
    if not isinstance(pool, dict) or not pool.get("name"):
        raise NodeTemplateError(f"{where}.name: required")
    _check_fields(pool, _POOL_FIELDS, f"{where}.")
    count = pool.get("count", 1)
    if not isinstance(count, int) or count < 0:
        raise NodeTemplateError(f"{where}.count: expected a number of nodes, got {count!r}")
    for field in ("labels", "annotations"):
        _mapping(pool, field, f"{where}.")
    resources = _mapping(pool, "resources", f"{where}.") or DEFAULT_CAPACITY
    _check_resources(resources, f"{where}.resources")
    for index in range(count):
        zone = zones[index % len(zones)] if zones else ""
        yield _node(f"{pool['name']}-{index}", zone, resources, pool)


def _check_fields(tree: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = sorted(str(field) for field in tree.keys() - known)
    if unknown:
        raise NodeTemplateError(f"{where}{unknown[0]}: unknown field; known: {', '.join(sorted(known))}")


def _mapping(tree: Mapping[str, Any], field: str, where: str) -> Mapping[str, Any]:
    """The mapping in a field; an empty one when it is absent. Raises NodeTemplateError."""
    value = tree.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NodeTemplateError(f"{where}{field}: expected a mapping, got {value!r}")
    return value


def _check_resources(resources: Mapping[str, Any], where: str) -> None:
    for name, amount in resources.items():
        try:
            parse(amount)
        except QuantityError as error:
            raise NodeTemplateError(f"{where}.{name}: {error}") from None


def _node(name: str, zone: str, resources: Mapping[str, Any], pool: Mapping[str, Any]) -> Tree:
    labels = {**_own_labels(name), POOL_LABEL: pool["name"]}
    if zone:
        labels[ZONE_LABEL] = zone
    amounts = {key: str(value) for key, value in resources.items()}
    amounts.setdefault("pods", DEFAULT_CAPACITY["pods"])
    spec = {key: copy.deepcopy(pool[key]) for key in ("taints", "unschedulable") if pool.get(key)}
    metadata: Tree = {"name": name, "labels": {**labels, **(pool.get("labels") or {})}}
    if pool.get("annotations"):
        metadata["annotations"] = dict(pool["annotations"])
    status: Tree = {"capacity": amounts, "allocatable": dict(amounts)}
    if pool.get("images"):
        status["images"] = copy.deepcopy(pool["images"])
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _own_labels(name: str) -> dict[str, str]:
    return {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }


def _from_node(template: Mapping[str, Any], name: str, index: int) -> Tree:
    parts = {field: dict(_mapping(template, field, "")) for field in ("metadata", "spec", "status")}
    node: Tree = copy.deepcopy({"apiVersion": "v1", "kind": "Node", **parts})
    metadata = node["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"):
        metadata.pop(field, None)
    zone = {ZONE_LABEL: DEFAULT_ZONES[index % len(DEFAULT_ZONES)]} if not template else {}
    given_labels = _mapping(metadata, "labels", "metadata.")
    metadata["labels"] = {**zone, **_own_labels(name), **given_labels, HOSTNAME_LABEL: name}
    metadata["name"] = name
    status = node["status"]
    given = [_mapping(status, field, "status.") for field in ("allocatable", "capacity")]
    amounts = given[0] or given[1] or DEFAULT_CAPACITY
    _check_resources(amounts, "status.allocatable")
    status["allocatable"] = {key: str(value) for key, value in amounts.items()}
    status.setdefault("capacity", dict(status["allocatable"]))
    return node


def _renamed(node: Tree, turn: int) -> Tree:
    """The pools once more: the same shapes under new names."""
    if not turn:
        return node
    again = copy.deepcopy(node)
    name = f"{node['metadata']['name']}-{turn}"
    again["metadata"]["name"] = name
    again["metadata"]["labels"][HOSTNAME_LABEL] = name
    return again
