"""The kubelet's care for its node: what its status lacks, its labels and its lease.

Laws: a node annotated `pilotage.dev/kubelet: none` is left alone; what a user set is never overwritten;
leases are spread over their period, which grows with the number of nodes so that renewing stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

from pilotage.api.kinds import by_resource
from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.client.api import ApiClient, PatchType
from pilotage.client.errors import ApiError
from pilotage.localcluster.controllers.plan import NOTHING, Patch, Plan, plan
from pilotage.localcluster.kubelet.addresses import Addresses, node_addresses
from pilotage.localcluster.kubelet.status import node_labels, node_status
from pilotage.localcluster.objects import Cache, Moved
from pilotage.localcluster.rest.timestamps import micro_time_text

ANNOTATION = "pilotage.dev/kubelet"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 10.0
NODES_PER_PERIOD = 200  # with more, the period is stretched
_NOT_FOUND = 404


def has_kubelet(node: KubeObject | None) -> bool:
    """Whether a simulated kubelet runs on the node."""
    return node is not None and (node.metadata.annotations or {}).get(ANNOTATION) != "none"


class NodeKubelets:
    """Keys are node names."""

    name: ClassVar[str] = "kubelet-nodes"
    settle: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.addresses: Addresses = node_addresses()

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        return (moved.object.metadata.name,) if moved.resource == "nodes" else ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        node = cache.get("nodes", key)
        if not isinstance(node, Node):
            self.addresses.give_back(key)
            return NOTHING
        if not has_kubelet(node) or node.metadata.deletion_timestamp:
            return NOTHING
        status = node_status(node, self.addresses.of(key), now)
        labels = node_labels(node)
        writes = []
        if status:
            writes.append(Patch("nodes", "", key, {"status": status}, "status", strategic=True))
        if labels:
            writes.append(Patch("nodes", "", key, {"metadata": {"labels": labels}}))
        return plan(writes)


@dataclass(frozen=True, slots=True)
class RenewLease:
    """Patches the lease, or creates it where there is none."""

    node: str
    uid: str
    time: str
    seconds: int
    resource: str = ""

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        kind = by_resource("leases.coordination.k8s.io")
        assert kind is not None
        spec = {"renewTime": self.time, "leaseDurationSeconds": self.seconds}
        try:
            await client.patch(kind, self.node, {"spec": spec}, LEASE_NAMESPACE, patch_type=PatchType.MERGE)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            await client.create(kind, self._whole(spec), LEASE_NAMESPACE)
        return None

    def _whole(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": self.uid}
        metadata = {"name": self.node, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": {"holderIdentity": self.node, **spec}}


@dataclass(frozen=True, slots=True)
class DropLease:
    node: str
    resource: str = ""

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        kind = by_resource("leases.coordination.k8s.io")
        assert kind is not None
        try:
            await client.delete(kind, self.node, LEASE_NAMESPACE)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
        return None


class NodeLeases:
    """Keys are node names. Renewed by requeueing, not by news: a node's other changes cost no lease."""

    name: ClassVar[str] = "kubelet-leases"
    settle: ClassVar[float] = 0.0

    def __init__(self) -> None:
        # node name -> when its lease is to be written next; a node without an entry has none of ours.
        self._due: dict[str, float] = {}

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        if moved.resource != "nodes":
            return ()
        is_news = moved.old is None or moved.new is None or has_kubelet(moved.old) != has_kubelet(moved.new)
        return (moved.object.metadata.name,) if is_news else ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        node = cache.get("nodes", key)
        if node is None:
            return plan([DropLease(key)] if self._due.pop(key, None) is not None else [])
        if not has_kubelet(node):
            self._due.pop(key, None)
            return NOTHING
        period = lease_period(sum(1 for _ in cache.keys("nodes")))
        due = self._due.get(key)
        if due is not None and due > now + 0.001:
            return plan([], due - now)
        share = 1.0 if due is not None else max(0.05, crc32(key.encode()) % 1000 / 1000)
        self._due[key] = now + period * share
        write = RenewLease(key, node.metadata.uid, micro_time_text(now), int(period * 4))
        return plan([write], period * share)


def lease_period(nodes: int) -> float:
    """Seconds between two renewals of one node's lease."""
    return LEASE_SECONDS * max(1.0, nodes / NODES_PER_PERIOD)
