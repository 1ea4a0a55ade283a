"""Everything believed about the cluster: one owner, changed by informer facts and by our own decisions.

Laws:
- A pod is counted on at most one node: where the API says it is, or where it was assumed to go.
- A pod assumed leaves that state only when the informer shows it bound, when it is forgotten, or when it is
  deleted: never by time.
- Pods of a node that is not known are kept aside and are counted the moment the node arrives.
- Repeated and outdated facts change nothing and return no change; a new UID under an old name is a
  deletion and an addition.
- All counts equal a rebuild from the objects (`check_invariants`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast

from pilotage.api.meta import KubeObject, ObjectMeta
from pilotage.api.nodes import Node
from pilotage.api.others import PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet
from pilotage.state.capacity import unusable
from pilotage.state.invariants import check_cluster
from pilotage.state.nodes import NodeTable
from pilotage.state.nominations import Nominations
from pilotage.state.objects import ObjectChange, ObjectStore, is_repeat
from pilotage.state.podinfo import PodInfo
from pilotage.state.terms import TermIndex
from pilotage.state.volumes import Volumes

NAMESPACES = "namespaces"
_NO_LABELS: Mapping[str, str] = {}


class NodeChange(NamedTuple):
    """One node before and after; None on add or delete."""

    old: Node | None
    new: Node | None
    row: int


class PodChange(NamedTuple):
    """One pod before and after (None on add or delete) and the nodes that counted it ("" for none)."""

    old: PodInfo | None
    new: PodInfo | None
    old_node: str = ""
    new_node: str = ""
    was_assumed: bool = False


class ClusterState:
    """Nodes, pods, assumed pods, nominations and other objects."""

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.terms = TermIndex()
        self.nominations = Nominations()
        self.objects = ObjectStore()
        self.volumes = Volumes(self.objects)
        # UID -> newest state from the informer. Terminal pods are not kept.
        self._pods: dict[str, PodInfo] = {}
        self._uid_of: dict[str, str] = {}
        # UID -> node that counts it, bound or assumed; that node may be unknown yet.
        self._node_of: dict[str, str] = {}
        # UIDs counted because of our own decision, not yet shown by the informer.
        self._assumed: set[str] = set()
        # Pods (UIDs) that are leaving though no informer shows it yet: their eviction was accepted.
        self.evicted: set[str] = set()
        # Pods counted on nodes that are not known: node name -> UID -> pod.
        self._orphans: dict[str, dict[str, PodInfo]] = {}

    # Nodes

    def upsert_node(self, node: Node) -> tuple[NodeChange, ...]:
        """Adds or updates a node; pods that waited for it are counted."""
        row = self.nodes.row(node.metadata.name)
        if row is None:
            return (NodeChange(None, node, self._add_node(node)),)
        known = self.nodes.node(row)
        if is_repeat(known.metadata, node.metadata):
            return ()
        if known.metadata.uid != node.metadata.uid:
            return *self.delete_node(node.metadata.name), NodeChange(None, node, self._add_node(node))
        self.nodes.upsert(node)
        return (NodeChange(known, node, row),)

    def upsert_unreadable_node(self, name: str, uid: str, error: str) -> tuple[NodeChange, ...]:
        """A node that could not be decoded: it keeps its pods and gets no more."""
        row = self.nodes.row(name)
        known = None if row is None else self.nodes.node(row)
        node = Node(metadata=ObjectMeta(name=name, uid=uid))
        return (NodeChange(known, node, self._add_node(node, unusable(error))),)

    def delete_node(self, name: str, uid: str = "") -> tuple[NodeChange, ...]:
        """Removes the node; its pods are kept aside. Nothing when unknown or when `uid` is another one's."""
        row = self.nodes.row(name)
        if row is None:
            return ()
        known = self.nodes.node(row)
        if uid and known.metadata.uid and uid != known.metadata.uid:
            return ()
        for info in self.nodes.pods(row):
            self.terms.pod_removed(row, info)
        pods = self.nodes.remove(name)
        if pods:
            self._orphans[name] = {info.uid: info for info in pods}
        return (NodeChange(known, None, row),)

    def _add_node(self, node: Node, defect: str = "") -> int:
        row = self.nodes.upsert(node, defect)
        self.terms.grow(self.nodes.n_rows)
        for info in self._orphans.pop(node.metadata.name, {}).values():
            self.nodes.add_pod(row, info)
            self.terms.pod_added(row, info)
        return row

    # Pods

    def upsert_pod(self, info: PodInfo) -> tuple[PodChange, ...]:
        """Takes over what the informer shows: terminal means deleted, bound ends an assumption."""
        known = self._pods.get(self._uid_of.get(info.key, ""))
        if known is not None and is_repeat(known.pod.metadata, info.pod.metadata):
            return ()
        gone: tuple[PodChange, ...] = ()
        if known is not None and known.uid != info.uid:
            gone, known = self.delete_pod(known.uid), None
        if info.is_terminal:
            return gone + self.delete_pod(info.uid)
        return (*gone, self._take_over(known, info))

    def _take_over(self, known: PodInfo | None, info: PodInfo) -> PodChange:
        before, was_assumed = self._node_of.get(info.uid, ""), info.uid in self._assumed
        self._pods[info.uid] = info
        self._uid_of[info.key] = info.uid
        if info.is_bound:
            self._assumed.discard(info.uid)
            self.nominations.remove(info.uid)
            self._move(info, info.node_name)
        elif before and not was_assumed:
            self._uncount(info.uid)
        return PodChange(known, info, before, self._node_of.get(info.uid, ""), was_assumed)

    def delete_pod(self, uid: str) -> tuple[PodChange, ...]:
        """Forgets the pod in every role: counted, assumed, nominated. Nothing when unknown."""
        known = self._pods.pop(uid, None)
        self.evicted.discard(uid)
        was_assumed = uid in self._assumed
        before = self._node_of.get(uid, "")
        counted = self._uncount(uid)
        self._assumed.discard(uid)
        self.nominations.remove(uid)
        gone = known or counted
        if gone is None:
            return ()
        if self._uid_of.get(gone.key) == uid:
            del self._uid_of[gone.key]
        return (PodChange(gone, None, before, "", was_assumed),)

    def assume(self, info: PodInfo, node_name: str) -> None:
        """Counts the pod on the node ahead of the API, as it will look once bound.

        Raises ValueError when it is counted already.
        """
        if info.uid in self._node_of:
            raise ValueError(f"pod {info.key} is counted on node {self._node_of[info.uid]} already")
        self._assumed.add(info.uid)
        self.nominations.remove(info.uid)
        self._count(info.bound_to(node_name), node_name)

    def forget(self, uid: str) -> tuple[PodChange, ...]:
        """Takes an assumption back. Nothing when the pod is not assumed (confirmed or deleted meanwhile)."""
        if uid not in self._assumed:
            return ()
        before = self._node_of[uid]
        self._assumed.discard(uid)
        info = self._uncount(uid)
        return (PodChange(info, self._pods.get(uid), before, "", True),)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def assumed_uids(self) -> Collection[str]:
        return frozenset(self._assumed)

    def pod(self, uid: str) -> PodInfo | None:
        """Newest state that the informer showed."""
        return self._pods.get(uid)

    def pod_by_key(self, key: str) -> PodInfo | None:
        return self._pods.get(self._uid_of.get(key, ""))

    def pods(self) -> Collection[PodInfo]:
        """All pods that the informer shows, terminal ones left out."""
        return self._pods.values()

    def node_of(self, uid: str) -> str:
        """Node that counts the pod, bound or assumed; empty when none does."""
        return self._node_of.get(uid, "")

    def pods_on(self, row: int) -> Sequence[PodInfo]:
        return self.nodes.pods(row)

    def _move(self, info: PodInfo, node_name: str) -> None:
        if self._node_of.get(info.uid) != node_name:
            self._uncount(info.uid)
            self._count(info, node_name)
            return
        row = self.nodes.row(node_name)
        if row is None:
            before = self._orphans[node_name][info.uid]
            self._orphans[node_name][info.uid] = info
        else:
            before = self.nodes.replace_pod(row, info)
            self.terms.pod_replaced(row, before, info)
        if before.pod.spec.volumes != info.pod.spec.volumes:
            self.volumes.pod_uncounted(before, node_name)
            self.volumes.pod_counted(info, node_name)

    def _count(self, info: PodInfo, node_name: str) -> None:
        self._node_of[info.uid] = node_name
        self.volumes.pod_counted(info, node_name)
        row = self.nodes.row(node_name)
        if row is None:
            self._orphans.setdefault(node_name, {})[info.uid] = info
            return
        self.nodes.add_pod(row, info)
        self.terms.pod_added(row, info)

    def _uncount(self, uid: str) -> PodInfo | None:
        node_name = self._node_of.pop(uid, "")
        if not node_name:
            return None
        row = self.nodes.row(node_name)
        if row is not None:
            info = self.nodes.remove_pod(row, uid)
            self.terms.pod_removed(row, info)
        else:
            waiting = self._orphans[node_name]
            info = waiting.pop(uid)
            if not waiting:
                del self._orphans[node_name]
        self.volumes.pod_uncounted(info, node_name)
        return info

    # Other objects

    def upsert_object(self, resource: str, view: KubeObject) -> tuple[ObjectChange, ...]:
        changes = self.objects.upsert(resource, view)
        if changes and resource == NAMESPACES:
            self.terms.namespace_changed(view.metadata.name, view.metadata.labels or _NO_LABELS)
        return changes

    def delete_object(self, resource: str, view: KubeObject) -> tuple[ObjectChange, ...]:
        changes = self.objects.delete(resource, view)
        if changes and resource == NAMESPACES:
            self.terms.namespace_changed(view.metadata.name, _NO_LABELS)
        return changes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Labels of a namespace; none when it is not known."""
        known = self.objects.get(NAMESPACES, namespace)
        return (known.metadata.labels if known is not None else None) or _NO_LABELS

    def services(self, namespace: str) -> Collection[Service]:
        return cast(Collection[Service], self.objects.in_namespace("services", namespace))

    def replication_controllers(self, namespace: str) -> Collection[ReplicationController]:
        found = self.objects.in_namespace("replicationcontrollers", namespace)
        return cast(Collection[ReplicationController], found)

    def replica_sets(self, namespace: str) -> Collection[ReplicaSet]:
        return cast(Collection[ReplicaSet], self.objects.in_namespace("replicasets.apps", namespace))

    def stateful_sets(self, namespace: str) -> Collection[StatefulSet]:
        return cast(Collection[StatefulSet], self.objects.in_namespace("statefulsets.apps", namespace))

    def disruption_budgets(self, namespace: str) -> Collection[PodDisruptionBudget]:
        found = self.objects.in_namespace("poddisruptionbudgets.policy", namespace)
        return cast(Collection[PodDisruptionBudget], found)

    def check_invariants(self) -> None:
        """Raises AssertionError where a count differs from a rebuild of the objects."""
        check_cluster(self.nodes, self._pods, self._node_of, self._assumed, self._orphans)
        self.nominations.check_invariants()
        self.terms.check_invariants()
        waiting = [(info, name) for name, pods in self._orphans.items() for info in pods.values()]
        rows = self.nodes.live_rows.tolist()
        on_rows = [(info, self.nodes.name(row)) for row in rows for info in self.nodes.pods(row)]
        self.volumes.check_invariants((*on_rows, *waiting))
