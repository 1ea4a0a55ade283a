"""What plugins see of the nodes: the same arrays for the live table and for what-if overlays.

All arrays have one element (or row) per table row, `n_rows` of them, dead rows included: plugins are
always given the `rows` to look at (an index array) and index with it. Arrays are read-only for plugins.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pilotage.api.nodes import Node, Taint

Rows: TypeAlias = NDArray[np.intp]
Int64: TypeAlias = NDArray[np.int64]
Int32: TypeAlias = NDArray[np.int32]
Int8: TypeAlias = NDArray[np.int8]
UInt64: TypeAlias = NDArray[np.uint64]
Bool: TypeAlias = NDArray[np.bool_]


class NodeView(Protocol):
    """The node table or an overlay of it."""

    @property
    def n_rows(self) -> int: ...

    @property
    def alive(self) -> Bool:
        """True where the row holds a node."""

    @property
    def allocatable(self) -> Int64:
        """[n_rows, n_resources] milli-CPU, bytes, units. Column of a resource: `column(name)`."""

    @property
    def requested(self) -> Int64:
        """[n_rows, n_resources] sums over pods on the node, assumed ones included."""

    @property
    def nonzero_requested(self) -> Int64:
        """[n_rows, 2] cpu, memory with kube-scheduler's scoring defaults."""

    @property
    def pod_count(self) -> Int64: ...

    @property
    def allowed_pods(self) -> Int64:
        """allocatable `pods`."""

    @property
    def unschedulable(self) -> Bool: ...

    @property
    def taint_set(self) -> Int32:
        """Interned taint set id per row; `taints_of(id)` gives the taints."""

    def taints_of(self, taint_set: int) -> tuple[Taint, ...]: ...

    def column(self, resource: str) -> int | None:
        """Column of a resource name, None if no node and no pod ever named it."""

    def label_column(self, key: str) -> Int32:
        """[n_rows] dictionary-encoded values of a node label; -1 where the node lacks it."""

    def label_code(self, key: str, value: str) -> int:
        """Code of a value in `label_column(key)`; -2 if no node ever had it."""

    def label_value(self, key: str, code: int) -> str: ...

    def node(self, row: int) -> Node: ...

    def name(self, row: int) -> str: ...

    def row(self, name: str) -> int | None: ...
