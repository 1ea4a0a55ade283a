"""The node table: one row per node, everything that filters and scores read in arrays.

Laws:
- A row belongs to one node from `upsert` to `remove`; rows are reused, columns and codes are not.
- `requested`, `nonzero_requested`, `pod_count` and host ports are the sums over `pods(row)`, always.
- A node that cannot be used (no allocatable, a nonsense quantity, undecodable) keeps its row and its pods
  and is marked in `defective`; nothing here raises because of what a node says.
- Every change of a row moves its `revision` to a number never used before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pilotage.api.nodes import Node, Taint
from pilotage.api.pods import Toleration
from pilotage.state.capacity import node_capacity
from pilotage.state.columns import MAX_ALLOCATABLE, MAX_REQUEST, Amounts, Column
from pilotage.state.features import FeatureSets
from pilotage.state.images import ImageIndex
from pilotage.state.labels import LabelColumns
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import PortIndex
from pilotage.state.taints import TaintSets
from pilotage.state.view import Bool, HostPort, ImageInfo, Int32, Int64, Rows

BASE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_NO_LABELS: Mapping[str, str] = {}


class NodeTable:
    """Implements `state.view.NodeView`; written by `ClusterState` only."""

    def __init__(self) -> None:
        self.identity = object()
        self.n_rows = 0
        self._nodes: list[Node | None] = []
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []
        self._live: Rows | None = None
        self._pods: list[dict[str, PodInfo]] = []
        self._defects: dict[int, str] = {}
        self._resources: list[str] = list(BASE_RESOURCES)
        self._column_of = {name: i for i, name in enumerate(BASE_RESOURCES)}
        self._taints = TaintSets()
        self._features = FeatureSets()
        self._images = ImageIndex()
        self._ports = PortIndex()
        self._labels = LabelColumns()
        self._clock = 0
        self._allocatable = Amounts(len(BASE_RESOURCES))
        self._requested = Amounts(len(BASE_RESOURCES))
        self._nonzero = Amounts(2)
        self._alive = Column(np.bool_, False)
        self._unschedulable = Column(np.bool_, False)
        self._defective = Column(np.bool_, False)
        self._pod_count = Column(np.int64)
        self._allowed_pods = Column(np.int64)
        self._taint_set = Column(np.int32)
        self._feature_set = Column(np.int32)
        self._revision = Column(np.int64)

    # Arrays

    @property
    def alive(self) -> Bool:
        return self._alive.head(self.n_rows)

    @property
    def revision(self) -> Int64:
        return self._revision.head(self.n_rows)

    @property
    def allocatable(self) -> Int64:
        return self._allocatable.head(self.n_rows)

    @property
    def requested(self) -> Int64:
        return self._requested.head(self.n_rows)

    @property
    def nonzero_requested(self) -> Int64:
        return self._nonzero.head(self.n_rows)

    @property
    def pod_count(self) -> Int64:
        return self._pod_count.head(self.n_rows)

    @property
    def allowed_pods(self) -> Int64:
        return self._allowed_pods.head(self.n_rows)

    @property
    def unschedulable(self) -> Bool:
        return self._unschedulable.head(self.n_rows)

    @property
    def defective(self) -> Bool:
        return self._defective.head(self.n_rows)

    @property
    def taint_set(self) -> Int32:
        return self._taint_set.head(self.n_rows)

    # Lookups

    @property
    def n_nodes(self) -> int:
        return len(self._row_of)

    @property
    def live_rows(self) -> Rows:
        if self._live is None:
            self._live = np.flatnonzero(self.alive)
        return self._live

    @property
    def has_defects(self) -> bool:
        return bool(self._defects)

    def defect(self, row: int) -> str:
        return self._defects.get(row, "")

    def node(self, row: int) -> Node:
        node = self._nodes[row]
        assert node is not None, f"row {row} holds no node"
        return node

    def name(self, row: int) -> str:
        return self.node(row).metadata.name

    def row(self, name: str) -> int | None:
        return self._row_of.get(name)

    def names(self) -> Iterable[str]:
        """Names of all nodes, in order of arrival."""
        return self._row_of.keys()

    def pods(self, row: int) -> Sequence[PodInfo]:
        return tuple(self._pods[row].values())

    def taints_of(self, taint_set: int) -> tuple[Taint, ...]:
        return self._taints[taint_set]

    def untolerated_counts(self, tolerations: tuple[Toleration, ...], effects: tuple[str, ...]) -> Int64:
        return self._taints.untolerated_counts(tolerations, effects)

    def declares(self, features: frozenset[str]) -> Bool:
        has_all: Bool = self._features.holding(features)[self._feature_set.head(self.n_rows)]
        return has_all

    def column(self, resource: str) -> int | None:
        return self._column_of.get(resource)

    @property
    def resources(self) -> Sequence[str]:
        return self._resources

    def label_column(self, key: str) -> Int32:
        if self._labels.get(key) is None:
            self._labels.create(key, self.n_rows, self._all_labels())
        return self._labels.head(key, self.n_rows)

    def label_code(self, key: str, value: str) -> int:
        self.label_column(key)
        return self._labels.code(key, value)

    def label_value(self, key: str, code: int) -> str:
        return self._labels.values(key)[code]

    def label_values(self, key: str) -> Sequence[str]:
        self.label_column(key)
        return self._labels.values(key)

    def image(self, name: str) -> ImageInfo | None:
        return self._images.get(name)

    def port_conflicts(self, wanted: HostPort) -> Sequence[int]:
        return self._ports.conflicts(wanted)

    def label_keys(self) -> Sequence[str]:
        """Keys that somebody asked a column for."""
        return tuple(self._labels.keys())

    def ports_on(self, row: int) -> Mapping[HostPort, int]:
        """Host ports in use on a row and how many pods hold each, for invariants and explain."""
        return self._ports.on_row(row)

    def images_on(self, row: int) -> frozenset[str]:
        return self._images.on_row(row)

    # Nodes

    def upsert(self, node: Node, defect: str = "") -> int:
        """Adds the node or takes over its new state; returns its row. `defect`: it could not be decoded."""
        row = self._row_of.get(node.metadata.name)
        if row is None:
            row = self._take_row(node.metadata.name)
        self._nodes[row] = node
        self._set_capacity(row, node, defect)
        self._taint_set.data[row] = self._taints.intern(node.spec.taints or ())
        self._feature_set.data[row] = self._features.intern(node.status.declared_features or ())
        self._unschedulable.data[row] = node.spec.unschedulable
        self._labels.set_row(row, node.metadata.labels or _NO_LABELS)
        self._images.set_row(row, node.status.images or ())
        self._touch(row)
        return row

    def remove(self, name: str) -> tuple[PodInfo, ...]:
        """Frees the node's row; returns the pods that were on it, in order of arrival."""
        row = self._row_of[name]
        pods = tuple(self._pods[row].values())
        for info in pods:
            self.remove_pod(row, info.uid)
        del self._row_of[name]
        self._nodes[row] = None
        self._defects.pop(row, None)
        self._images.clear_row(row)
        self._labels.set_row(row, _NO_LABELS)
        self._allocatable.data[:, row] = 0
        for column in (
            self._alive,
            self._unschedulable,
            self._defective,
            self._allowed_pods,
            self._taint_set,
            self._feature_set,
        ):
            column.data[row] = 0
        self._live = None
        self._free.append(row)
        self._touch(row)
        return pods

    def _take_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self.n_rows
            self.n_rows += 1
            self._nodes.append(None)
            self._pods.append({})
            self._grow()
        self._row_of[name] = row
        self._alive.data[row] = True
        self._live = None
        return row

    def _grow(self) -> None:
        for amounts in (self._allocatable, self._requested):
            amounts.grow(len(self._resources), self.n_rows)
        self._nonzero.grow(2, self.n_rows)
        self._labels.grow(self.n_rows)
        self._alive.grow(self.n_rows)
        self._unschedulable.grow(self.n_rows)
        self._defective.grow(self.n_rows)
        self._pod_count.grow(self.n_rows)
        self._allowed_pods.grow(self.n_rows)
        self._taint_set.grow(self.n_rows)
        self._feature_set.grow(self.n_rows)
        self._revision.grow(self.n_rows)

    def _set_capacity(self, row: int, node: Node, defect: str) -> None:
        amounts, found = node_capacity(node)
        defect = defect or found
        self._defective.data[row] = bool(defect)
        self._defects.pop(row, None)
        if defect:
            self._defects[row] = defect
        columns = [(self._ensure_column(name), amount) for name, amount in amounts.items() if name != "pods"]
        self._allocatable.data[:, row] = 0
        for column, amount in columns:
            self._allocatable.data[column, row] = min(amount, MAX_ALLOCATABLE)
        self._allowed_pods.data[row] = min(amounts.get("pods", 0), MAX_ALLOCATABLE)

    def _ensure_column(self, resource: str) -> int:
        column = self._column_of.get(resource)
        if column is None:
            column = self._column_of[resource] = len(self._resources)
            self._resources.append(resource)
            self._grow()
        return column

    def _all_labels(self) -> Iterable[tuple[int, Mapping[str, str]]]:
        for row in self._row_of.values():
            yield row, self.node(row).metadata.labels or _NO_LABELS

    def _touch(self, row: int) -> None:
        self._clock += 1
        self._revision.data[row] = self._clock

    # Pods

    def add_pod(self, row: int, info: PodInfo) -> None:
        """Counts a pod on the row; it must not be there yet."""
        assert info.uid not in self._pods[row], f"{info.key} is on row {row} already"
        self._pods[row][info.uid] = info
        self._count(row, info, +1)
        self._ports.add(row, info.host_ports)

    def remove_pod(self, row: int, uid: str) -> PodInfo:
        """Takes a pod off the row; returns what was counted."""
        info = self._pods[row].pop(uid)
        self._count(row, info, -1)
        self._ports.remove(row, info.host_ports)
        return info

    def replace_pod(self, row: int, info: PodInfo) -> PodInfo:
        """Counts the new state of a pod that is on the row; it keeps its place. Returns the old state."""
        before = self._pods[row][info.uid]
        self._count(row, before, -1)
        self._ports.remove(row, before.host_ports)
        self._pods[row][info.uid] = info
        self._count(row, info, +1)
        self._ports.add(row, info.host_ports)
        return before

    def _count(self, row: int, info: PodInfo, sign: int) -> None:
        for resource, amount in info.usage.items():
            column = self._ensure_column(resource)
            self._requested.data[column, row] += sign * min(amount, MAX_REQUEST)
        cpu, memory = info.nonzero_usage
        self._nonzero.data[0, row] += sign * min(cpu, MAX_REQUEST)
        self._nonzero.data[1, row] += sign * min(memory, MAX_REQUEST)
        self._pod_count.data[row] += sign
        self._touch(row)
