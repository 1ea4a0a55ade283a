"""What-if: a view of the nodes in which some pods came or went, without touching the table under it.

Laws: sums are copied on the first change, everything else is the base's; rows that changed have revision
-1, which no cache may keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api.nodes import Node, Taint
from pilotage.api.pods import Toleration
from pilotage.state.columns import MAX_REQUEST
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import Bool, HostPort, ImageInfo, Int32, Int64, NodeView, Rows


class NodeOverlay:
    """Implements `NodeView` over another view."""

    def __init__(self, base: NodeView) -> None:
        self._base = base
        # Row -> UID -> pod, for rows that changed.
        self._pods: dict[int, dict[str, PodInfo]] = {}
        self._revision: Int64 | None = None
        self._requested: Int64 = base.requested
        self._nonzero: Int64 = base.nonzero_requested
        self._pod_count: Int64 = base.pod_count

    def add_pod(self, row: int, info: PodInfo) -> None:
        self._open(row)[info.uid] = info
        self._count(row, info, +1)

    def remove_pod(self, row: int, uid: str) -> PodInfo:
        """Raises KeyError when the pod is not on that row."""
        info = self._open(row).pop(uid)
        self._count(row, info, -1)
        return info

    def replace_pod(self, row: int, info: PodInfo) -> None:
        """Another state of a pod, in its place. Raises KeyError when the pod is not on that row."""
        pods = self._open(row)
        self._count(row, pods[info.uid], -1)
        pods[info.uid] = info
        self._count(row, info, +1)

    def _open(self, row: int) -> dict[str, PodInfo]:
        if self._revision is None:
            self._revision = self._base.revision.copy()
            self._requested = self._requested.copy()
            self._nonzero = self._nonzero.copy()
            self._pod_count = self._pod_count.copy()
        if row not in self._pods:
            self._pods[row] = {info.uid: info for info in self._base.pods(row)}
            self._revision[row] = -1
        return self._pods[row]

    def _count(self, row: int, info: PodInfo, sign: int) -> None:
        for resource, amount in info.usage.items():
            column = self._base.column(resource)
            if column is not None:  # no node offers what has no column: such a pod is on no node
                self._requested[row, column] += sign * min(amount, MAX_REQUEST)
        self._nonzero[row, 0] += sign * min(info.nonzero_usage[0], MAX_REQUEST)
        self._nonzero[row, 1] += sign * min(info.nonzero_usage[1], MAX_REQUEST)
        self._pod_count[row] += sign

    # What changed

    @property
    def revision(self) -> Int64:
        return self._base.revision if self._revision is None else self._revision

    @property
    def requested(self) -> Int64:
        return self._requested

    @property
    def nonzero_requested(self) -> Int64:
        return self._nonzero

    @property
    def pod_count(self) -> Int64:
        return self._pod_count

    def pods(self, row: int) -> Sequence[PodInfo]:
        changed = self._pods.get(row)
        return self._base.pods(row) if changed is None else tuple(changed.values())

    def port_conflicts(self, wanted: HostPort) -> Sequence[int]:
        rows = [row for row in self._base.port_conflicts(wanted) if row not in self._pods]
        return rows + [row for row, pods in self._pods.items() if _is_taken(wanted, pods)]

    # What did not

    @property
    def identity(self) -> object:
        return self._base.identity

    @property
    def n_rows(self) -> int:
        return self._base.n_rows

    @property
    def n_nodes(self) -> int:
        return self._base.n_nodes

    @property
    def live_rows(self) -> Rows:
        return self._base.live_rows

    @property
    def alive(self) -> Bool:
        return self._base.alive

    @property
    def allocatable(self) -> Int64:
        return self._base.allocatable

    @property
    def allowed_pods(self) -> Int64:
        return self._base.allowed_pods

    @property
    def unschedulable(self) -> Bool:
        return self._base.unschedulable

    @property
    def defective(self) -> Bool:
        return self._base.defective

    @property
    def taint_set(self) -> Int32:
        return self._base.taint_set

    def taints_of(self, taint_set: int) -> tuple[Taint, ...]:
        return self._base.taints_of(taint_set)

    def declares(self, features: frozenset[str]) -> Bool:
        return self._base.declares(features)

    def untolerated_counts(self, tolerations: tuple[Toleration, ...], effects: tuple[str, ...]) -> Int64:
        return self._base.untolerated_counts(tolerations, effects)

    def column(self, resource: str) -> int | None:
        return self._base.column(resource)

    @property
    def resources(self) -> Sequence[str]:
        return self._base.resources

    def label_column(self, key: str) -> Int32:
        return self._base.label_column(key)

    def label_code(self, key: str, value: str) -> int:
        return self._base.label_code(key, value)

    def label_value(self, key: str, code: int) -> str:
        return self._base.label_value(key, code)

    def label_values(self, key: str) -> Sequence[str]:
        return self._base.label_values(key)

    def image(self, name: str) -> ImageInfo | None:
        return self._base.image(name)

    @property
    def has_defects(self) -> bool:
        return self._base.has_defects

    def defect(self, row: int) -> str:
        return self._base.defect(row)

    def node(self, row: int) -> Node:
        return self._base.node(row)

    def name(self, row: int) -> str:
        return self._base.name(row)

    def row(self, name: str) -> int | None:
        return self._base.row(name)


def _is_taken(wanted: HostPort, pods: dict[str, PodInfo]) -> bool:
    return any(ports_collide(wanted, port) for info in pods.values() for port in info.host_ports)
