"""The kubelet's care for its node: what its status lacks, its labels and its lease.

Laws: a node annotated `pilotage.dev/kubelet: none` is left alone; what a user set is never overwritten;
leases are spread over their period, which grows with the number of nodes so that renewing stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from zlib import crc32

from pilotage.api.kinds import Kind, by_resource
from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.client.api import ApiClient
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
_NOT_FOUND, _CONFLICT = 404, 409


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
    """Creates the lease, or patches it where it is there already (or is expected to be, when `is_known`)."""

    node: str
    uid: str
    time: str
    seconds: int
    is_known: bool = False
    resource: str = ""

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        spec = {"renewTime": self.time, "leaseDurationSeconds": self.seconds}
        steps = [partial(self._create, client, spec), partial(self._renew, client, spec)]
        first, second = reversed(steps) if self.is_known else steps
        try:
            await first()
        except ApiError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise
            await second()
        return None

    async def _renew(self, client: ApiClient, spec: Mapping[str, Any]) -> None:
        await client.patch(_lease_kind(), self.node, {"spec": spec}, LEASE_NAMESPACE)

    async def _create(self, client: ApiClient, spec: Mapping[str, Any]) -> None:
        await client.create(_lease_kind(), self._whole(spec), LEASE_NAMESPACE)

    def _whole(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": self.uid}
        metadata = {"name": self.node, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": {"holderIdentity": self.node, **spec}}


def _lease_kind() -> Kind:
    kind = by_resource("leases.coordination.k8s.io")
    assert kind is not None
    return kind


@dataclass(frozen=True, slots=True)
class DropLease:
    node: str
    resource: str = ""

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        try:
            await client.delete(_lease_kind(), self.node, LEASE_NAMESPACE)
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
        # Nodes whose lease we wrote at least once.
        self._written: set[str] = set()

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        if moved.resource != "nodes":
            return ()
        is_news = moved.old is None or moved.new is None or has_kubelet(moved.old) != has_kubelet(moved.new)
        return (moved.object.metadata.name,) if is_news else ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        node = cache.get("nodes", key)
        if node is None:
            return plan([DropLease(key)] if self._forget(key) else [])
        if not has_kubelet(node):
            self._forget(key)
            return NOTHING
        period = lease_period(cache.count("nodes"))
        known = self._due.get(key)
        due = self._first(key, period, now) if known is None else known
        if due > now + 0.001:
            self._due[key] = due
            return plan([], due - now)
        self._due[key] = now + (period if key in self._written else period * _share(key))
        write = RenewLease(
            key, node.metadata.uid, micro_time_text(now), int(period * 4), key in self._written
        )
        self._written.add(key)
        return plan([write], self._due[key] - now)

    def _forget(self, key: str) -> bool:
        """Whether there may be a lease of ours."""
        self._due.pop(key, None)
        was_written = key in self._written
        self._written.discard(key)
        return was_written

    def _first(self, key: str, period: float, now: float) -> float:
        """At once for few nodes; many would all write in one moment."""
        return now + period * _share(key) if period > LEASE_SECONDS else now


def _share(node: str) -> float:
    return max(0.05, crc32(node.encode()) % 1000 / 1000)


def lease_period(nodes: int) -> float:
    """Seconds between two renewals of one node's lease."""
    return LEASE_SECONDS * max(1.0, nodes / NODES_PER_PERIOD)
