"""What-if on many rows at once: the view without some of the pods that preemption may take.

Law: a row shows exactly its pods that are not taken; sums follow in one vector step for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.state.importance import LowerPods
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import Bool, HostPort, Int64, NodeView, Rows


class RemovalOverlay(NodeOverlay):
    """Starts with every pod of `lower` taken away. Not to be mixed with `add_pod` and `remove_pod`."""

    def __init__(self, base: NodeView, lower: LowerPods) -> None:
        super().__init__(base)
        self._lower = lower
        self._index = {row: index for index, row in enumerate(lower.rows.tolist())}
        self._taken: Bool = np.ones(len(lower.pods), np.bool_)
        self._requested = base.requested.copy()
        self._nonzero = base.nonzero_requested.copy()
        self._pod_count = base.pod_count.copy()
        self._revision = base.revision.copy()
        self._revision[lower.rows] = -1
        has_pods = np.flatnonzero(lower.counts)
        if has_pods.size:
            sums = np.add.reduceat(lower.amounts, lower.starts[:-1][has_pods], axis=0)
            self._shift(lower.rows[has_pods], -sums)

    def put_back(self, indexes: Rows, rows: Rows) -> None:
        """Pods (indexes in `lower`), at most one for each of `rows`, come back; aligned."""
        self._taken[indexes] = False
        self._shift(rows, self._lower.amounts[indexes])

    def take(self, indexes: Rows, rows: Rows) -> None:
        """Pods, at most one for each of `rows`, go; aligned."""
        self._taken[indexes] = True
        self._shift(rows, -self._lower.amounts[indexes])

    def is_taken(self) -> Bool:
        """[pods of `lower`]"""
        return self._taken

    def _shift(self, rows: Rows, amounts: Int64) -> None:
        n_resources = amounts.shape[1] - 3
        self._requested[rows, :n_resources] += amounts[:, :n_resources]
        self._nonzero[rows] += amounts[:, n_resources : n_resources + 2]
        self._pod_count[rows] += amounts[:, n_resources + 2]

    def pods(self, row: int) -> Sequence[PodInfo]:
        index = self._index.get(row)
        pods = self._base.pods(row)
        if index is None:
            return pods
        first, after = self._lower.starts[index : index + 2].tolist()
        gone = {self._lower.pods[i].uid for i in range(first, after) if self._taken[i]}
        return tuple(info for info in pods if info.uid not in gone)

    def port_conflicts(self, wanted: HostPort) -> Sequence[int]:
        """Pods only go: a row that has no conflict in the base has none here."""
        return [row for row in self._base.port_conflicts(wanted) if self._still_collides(row, wanted)]

    def _still_collides(self, row: int, wanted: HostPort) -> bool:
        if row not in self._index:
            return True
        return any(ports_collide(wanted, port) for info in self.pods(row) for port in info.host_ports)
