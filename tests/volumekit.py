"""Storage objects in few words, for tests on state and plugins; `put` shows them to a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from pilotage.api.kinds import by_kind
from pilotage.api.meta import KubeObject
from pilotage.state.cluster import ClusterState
from pilotage.testing import builders

Tree = dict[str, Any]
STORAGE = "storage.k8s.io/v1"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_versions = count(1_000_000)


def view_of(tree: Mapping[str, Any]) -> KubeObject:
    """As an informer shows it: with a UID and a new version."""
    kind = by_kind(tree.get("apiVersion", "v1"), tree["kind"])
    assert kind is not None
    assert kind.view is not None
    meta = {"uid": f"uid-{tree['metadata']['name']}", **tree["metadata"]}
    meta["resourceVersion"] = str(next(_versions))
    shown: KubeObject = msgspec.convert({**tree, "metadata": meta}, kind.view)
    return shown


def put(state: ClusterState, *trees: Mapping[str, Any]) -> ClusterState:
    for tree in trees:
        kind = by_kind(tree.get("apiVersion", "v1"), tree["kind"])
        assert kind is not None
        state.upsert_object(kind.resource, view_of(tree))
    return state


def remove(state: ClusterState, tree: Mapping[str, Any]) -> None:
    kind = by_kind(tree.get("apiVersion", "v1"), tree["kind"])
    assert kind is not None
    state.delete_object(kind.resource, view_of(tree))


def sc(name: str, *, topologies: Sequence[Mapping[str, Sequence[str]]] = (), **more: Any) -> Tree:
    """`topologies`: alternatives, each of labels and their values."""
    terms = [
        {"matchLabelExpressions": [{"key": key, "values": list(values)} for key, values in one.items()]}
        for one in topologies
    ]
    return builders.storage_class(name, **more, **({"allowedTopologies": terms} if terms else {}))


def pvc(name: str, class_name: str | None = "fast", *, to: str = "", **more: Any) -> Tree:
    """`to`: bound to that volume."""
    spec = {"volumeName": to} if to else {}
    notes = {**(BOUND if to else {}), **more.pop("annotations", {})}
    tree = builders.claim(name, class_name, annotations=notes, **{**spec, **more})
    return {**tree, "status": {"phase": "Bound" if to else "Pending"}}


def pv(
    name: str,
    class_name: str = "fast",
    node: str = "",
    *,
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Tree:
    tree = builders.local_volume(name, class_name, node, **more)
    tree["metadata"]["labels"] = dict(labels or {})
    return {**tree, "status": {"phase": phase}}


def ref(name: str, uid: str = "", namespace: str = "default") -> Tree:
    return {"namespace": namespace, "name": name, "uid": uid or f"uid-{name}"}


def csi(handle: str, driver: str = "csi.example.com") -> Tree:
    """Source of a volume: `pv("v", csi=csi("h"))`."""
    return {"driver": driver, "volumeHandle": handle}


def csi_node(name: str, **counts: int | None) -> Tree:
    """Drivers `<key>.example.com` with their limit, None for a driver without one."""
    drivers = [
        {
            "name": f"{key}.example.com",
            "nodeID": name,
            "topologyKeys": [],
            **({"allocatable": {"count": limit}} if limit is not None else {}),
        }
        for key, limit in counts.items()
    ]
    return {
        "apiVersion": STORAGE,
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def csi_driver(name: str, **spec: Any) -> Tree:
    return {"apiVersion": STORAGE, "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(
    name: str, class_name: str, amount: str, labels: Mapping[str, str] | None = None, **more: Any
) -> Tree:
    """Room of a class on the nodes with these labels."""
    return {
        "apiVersion": STORAGE,
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": class_name,
        "capacity": amount,
        "nodeTopology": {"matchLabels": dict(labels or {})},
        **more,
    }


def attachment(name: str, node: str, volume: str, attacher: str = "csi.example.com") -> Tree:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return {"apiVersion": STORAGE, "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}


uses = builders.uses
