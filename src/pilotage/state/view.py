"""What plugins see of the nodes: the same arrays for the live table and for what-if overlays.

All arrays have one element (or row) per table row, `n_rows` of them, dead rows included: plugins are
always given the `rows` to look at (an index array) and index with it. Arrays are read-only for plugins
and must not be kept beyond the call: the table grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pilotage.api.nodes import Node, Taint
from pilotage.api.pods import Toleration

if TYPE_CHECKING:
    from pilotage.state.podinfo import PodInfo

Rows: TypeAlias = NDArray[np.intp]
Int64: TypeAlias = NDArray[np.int64]
Int32: TypeAlias = NDArray[np.int32]
Int8: TypeAlias = NDArray[np.int8]
UInt64: TypeAlias = NDArray[np.uint64]
Bool: TypeAlias = NDArray[np.bool_]

ABSENT_LABEL = -1  # in a label column: the node lacks the key
UNKNOWN_LABEL = -2  # from `label_code`: no node ever had that value


class HostPort(NamedTuple):
    """A host port in use or wanted. `ip` is "0.0.0.0" for every address of the node."""

    ip: str
    protocol: str
    port: int


class ImageInfo(NamedTuple):
    """One image name in the cluster: its size in bytes, and the rows of the nodes that have it."""

    size: int
    rows: Rows


class NodeView(Protocol):
    """The node table or an overlay of it."""

    @property
    def identity(self) -> object:
        """The table whose rows and revisions these are; an overlay has that of its base."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_nodes(self) -> int:
        """Number of live rows."""

    @property
    def live_rows(self) -> Rows:
        """Rows that hold a node, ascending."""

    @property
    def alive(self) -> Bool:
        """True where the row holds a node."""

    @property
    def revision(self) -> Int64:
        """[n_rows] changes whenever anything about the row changes; never used twice."""

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
    def defective(self) -> Bool:
        """True where the node cannot be used at all; `defect(row)` says why."""

    @property
    def taint_set(self) -> Int32:
        """Interned taint set id per row; `taints_of(id)` gives the taints. 0 is the empty set."""

    def taints_of(self, taint_set: int) -> tuple[Taint, ...]: ...

    def untolerated_counts(self, tolerations: tuple[Toleration, ...], effects: tuple[str, ...]) -> Int64:
        """[taint sets] number of taints with one of `effects` that no toleration covers."""

    def declares(self, features: frozenset[str]) -> Bool:
        """[n_rows] nodes that declare all of these features in their status."""

    def column(self, resource: str) -> int | None:
        """Column of a resource name, None if no node and no pod ever named it."""

    @property
    def resources(self) -> Sequence[str]:
        """Resource names by column."""

    def label_column(self, key: str) -> Int32:
        """[n_rows] dictionary-encoded values of a node label; -1 where the node lacks it."""

    def label_code(self, key: str, value: str) -> int:
        """Code of a value in `label_column(key)`; -2 if no node ever had it."""

    def label_value(self, key: str, code: int) -> str: ...

    def label_values(self, key: str) -> Sequence[str]:
        """Values by code: only ever appended to."""

    def image(self, name: str) -> ImageInfo | None:
        """None if no node has that image name."""

    def port_conflicts(self, wanted: HostPort) -> Sequence[int]:
        """Rows where a pod holds a host port that `wanted` collides with."""

    def defect(self, row: int) -> str: ...

    @property
    def has_defects(self) -> bool:
        """Whether any row is `defective`."""

    def node(self, row: int) -> Node: ...

    def name(self, row: int) -> str: ...

    def row(self, name: str) -> int | None: ...

    def pods(self, row: int) -> Sequence[PodInfo]:
        """Pods on the node, assumed ones included, in order of arrival."""
