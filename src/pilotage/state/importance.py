"""The pods of nodes in the order in which preemption keeps them, with their amounts as arrays.

Laws
- More important first: higher priority; among equals the one that started earlier; pods that have no start
  time come after those that have one, the last to arrive first.
- What is kept for a row holds while the row has the same revision, and is rebuilt otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pilotage.state.columns import MAX_REQUEST
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, Int64, NodeView, Rows

NO_PRIORITY = 2**62  # higher than any
NO_REVISION = -2  # neither a table's nor an overlay's
_EXTRA = 3  # after the resources: cpu and memory with scoring defaults, number of pods


def by_importance(pods: Sequence[PodInfo]) -> list[PodInfo]:
    """`pods` in order of arrival, put in order of importance."""
    return [pods[index] for index in sorted(range(len(pods)), key=lambda index: _rank(pods[index], index))]


def _rank(pod: PodInfo, arrival: int) -> tuple[int, bool, float]:
    start = pod.start_time
    return (-pod.priority, True, -arrival) if start is None else (-pod.priority, False, start)


class RowPods(NamedTuple):
    """One row's pods, most important first."""

    revision: int
    pods: tuple[PodInfo, ...]
    priorities: Int64  # [pods] descending
    amounts: Int64  # [pods, resources + 3]


class LowerPods(NamedTuple):
    """Pods of several rows with a priority below some value, row after row, most important first.

    Those of `rows[i]` have the indexes `starts[i]` to `starts[i + 1]` in `pods` and `amounts`.
    """

    rows: Rows
    starts: Rows  # [rows + 1]
    pods: tuple[PodInfo, ...]
    amounts: Int64  # [pods, resources + 3]

    @property
    def counts(self) -> Rows:
        """[rows] pods of each row."""
        return np.diff(self.starts)


class ImportanceIndex:
    """Row -> its pods in order of importance, for rows that somebody asked for. Holds for one table."""

    __slots__ = ("_identity", "_known", "_lowest", "_n_resources", "_revision")

    def __init__(self) -> None:
        self._identity: object = None
        self._n_resources = 0
        self._known: dict[int, RowPods] = {}
        # [rows] lowest priority on the row, and the revision that it holds for.
        self._lowest: Int64 = np.zeros(0, np.int64)
        self._revision: Int64 = np.zeros(0, np.int64)

    def has_below(self, view: NodeView, rows: Rows, priority: int) -> Bool:
        """[rows] whether the row has a pod whose priority is lower."""
        self._attach(view)
        self._grow(view.n_rows)
        for row in rows[self._revision[rows] != view.revision[rows]].tolist():
            self._lowest[row] = min((info.priority for info in view.pods(row)), default=NO_PRIORITY)
            self._revision[row] = view.revision[row]
        return self._lowest[rows] < priority

    def below(self, view: NodeView, rows: Rows, priority: int) -> LowerPods:
        """The pods on `rows` whose priority is lower than `priority`. The view must be a live table."""
        self._attach(view)
        found = [self._of(view, row, revision) for row, revision in _pairs(view, rows)]
        firsts = [_first_below(known.priorities, priority) for known in found]
        amounts = [known.amounts[first:] for known, first in zip(found, firsts, strict=True)]
        pods = [info for known, first in zip(found, firsts, strict=True) for info in known.pods[first:]]
        starts = np.zeros(rows.size + 1, np.intp)
        np.cumsum([len(part) for part in amounts], out=starts[1:])
        none = np.zeros((0, self._n_resources + _EXTRA), np.int64)
        return LowerPods(rows, starts, tuple(pods), np.concatenate(amounts) if amounts else none)

    def _attach(self, view: NodeView) -> None:
        n_resources = len(view.resources)
        if view.identity is not self._identity or n_resources != self._n_resources:
            self._identity, self._n_resources = view.identity, n_resources
            self._known.clear()
            self._revision[:] = NO_REVISION

    def _grow(self, n_rows: int) -> None:
        missing = n_rows - self._revision.size
        if missing > 0:
            self._revision = np.append(self._revision, np.full(missing, NO_REVISION))
            self._lowest = np.append(self._lowest, np.zeros(missing, np.int64))

    def _of(self, view: NodeView, row: int, revision: int) -> RowPods:
        known = self._known.get(row)
        if known is None or known.revision != revision:
            pods = by_importance(view.pods(row))
            priorities = np.array([info.priority for info in pods], np.int64)
            known = RowPods(revision, tuple(pods), priorities, amounts_of(view, pods))
            self._known[row] = known
        return known


def _pairs(view: NodeView, rows: Rows) -> zip[tuple[int, int]]:
    return zip(rows.tolist(), view.revision[rows].tolist(), strict=True)


def _first_below(priorities: Int64, priority: int) -> int:
    """Index of the first that is lower than `priority`."""
    if not priorities.size or priorities[0] < priority:
        return 0
    return int(np.searchsorted(-priorities, -priority, side="right"))


def amounts_of(view: NodeView, pods: Sequence[PodInfo]) -> Int64:
    """[pods, resources + 3] what each pod counts on a row, in the columns of the view."""
    n_resources = len(view.resources)
    found = np.zeros((len(pods), n_resources + _EXTRA), np.int64)
    for index, info in enumerate(pods):
        for resource, amount in info.usage.items():
            column = view.column(resource)
            if column is not None:  # no node offers what has no column: such a pod is on no node
                found[index, column] = min(amount, MAX_REQUEST)
        found[index, n_resources] = min(info.nonzero_usage[0], MAX_REQUEST)
        found[index, n_resources + 1] = min(info.nonzero_usage[1], MAX_REQUEST)
    found[:, n_resources + 2] = 1
    return found
