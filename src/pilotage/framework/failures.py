"""Why each node was rejected: masks while deciding, texts only when somebody reads them.

Laws: one plugin per node, the first that rejected it; rows never evaluated carry the `absent` status.
Texts are functions of plugin and reason bits within one cycle, so one row stands for all with equal bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.guard import PluginFailedError, guarded
from pilotage.framework.status import SUCCESS, Code, Status
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, Int8, NodeView, Rows, UInt64

DEFECT_PLUGIN = "NodeResourcesFit"  # whose events tell when an unusable node reports a capacity again
_DEFECT = -2
_TEXTS = -1


class TellsReasons(Protocol):
    """Part of `framework.plugin.FilterNodesPlugin`."""

    def reason_texts(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, row: int, bits: int
    ) -> Sequence[str]: ...


class Origin(NamedTuple):
    """A vector plugin's filter run: who can tell what the reason bits mean."""

    name: str
    plugin: TellsReasons
    cycle: CycleState
    view: NodeView

    def status(self, pod: PodInfo, row: int, code: Code, bits: int) -> Status:
        """The rejection in words; a plugin that fails to tell leaves its error as the reason."""
        try:
            texts = guarded(
                self.name, "Filter", self.plugin.reason_texts, self.cycle, pod, self.view, row, bits
            )
            return guarded(self.name, "Filter", Status, code, cast("tuple[str, ...]", texts), self.name)
        except PluginFailedError as exc:
            return Status(code, exc.status.reasons, self.name)


class NodeFailures:
    """Implements `framework.plugin.NodeFailures` for one pod's cycle."""

    def __init__(self, view: NodeView, pod: PodInfo) -> None:
        self._view = view
        self._pod = pod
        self._codes: Int8 = np.zeros(view.n_rows, np.int8)
        self._origin = np.zeros(view.n_rows, np.int32)  # index in `_origins`, or one of the marks above
        self._bits: UInt64 = np.zeros(view.n_rows, np.uint64)
        self._origins: list[Origin] = []
        self._texts: dict[int, Status] = {}
        self._known: dict[tuple[int, int], Status] = {}
        # Status of nodes that no filter saw (outside a PreFilter node set, or PreFilter failed as a whole).
        self.absent: Status = SUCCESS
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()

    # Recording

    def record_bits(self, origin: Origin, rows: Rows, codes: Int8, bits: UInt64) -> None:
        """Rejections of a vector plugin, aligned with `rows`."""
        name = origin.name
        self._origins.append(origin)
        self._codes[rows] = codes
        self._bits[rows] = bits
        self._origin[rows] = len(self._origins) - 1
        is_pending = codes == Code.PENDING
        if is_pending.any():
            self.pending_plugins.add(name)
        if not is_pending.all():
            self.unschedulable_plugins.add(name)

    def record(self, row: int, status: Status) -> None:
        """One node's rejection by a plugin of the per-node form; the status names the plugin."""
        self._codes[row] = status.code
        self._origin[row] = _TEXTS
        self._texts[row] = status
        self.blame(status)

    def record_defects(self, rows: Rows) -> None:
        """Nodes that cannot be used at all: their state says why."""
        self._codes[rows] = Code.UNRESOLVABLE
        self._origin[rows] = _DEFECT
        self.unschedulable_plugins.add(DEFECT_PLUGIN)

    def blame(self, status: Status) -> None:
        """Notes the plugin of a rejection, whose events may wake the pod."""
        if status.plugin:
            is_pending = status.code is Code.PENDING
            (self.pending_plugins if is_pending else self.unschedulable_plugins).add(status.plugin)

    # Reading

    def code(self, row: int) -> Code:
        code = Code(int(self._codes[row]))
        return self.absent.code if code is Code.SUCCESS else code

    def status(self, row: int) -> Status:
        if not self._codes[row]:
            return self.absent
        origin = int(self._origin[row])
        if origin == _TEXTS:
            return self._texts[row]
        if origin == _DEFECT:
            return Status(Code.UNRESOLVABLE, (self._view.defect(row),), DEFECT_PLUGIN)
        return self._status_of_bits(row, origin, int(self._bits[row]))

    def rows_with(self, code: Code) -> Rows:
        mask: Bool = self._codes == code
        if code is self.absent.code:
            mask |= self._codes == Code.SUCCESS
        return np.flatnonzero(mask & self._view.alive[: mask.size])

    def histogram(self) -> Counter[str]:
        """Reason -> number of nodes that gave it, absent nodes included."""
        counts: Counter[str] = Counter()
        live = self._view.live_rows
        live = live[live < self._codes.size]  # not nodes that came while somebody outside was asked
        failed = live[self._codes[live] != Code.SUCCESS]
        for representative, number in self._groups(failed):
            for reason in self.status(representative).reasons:
                counts[reason] += number
        n_absent = len(live) - len(failed)
        for reason in self.absent.reasons if n_absent else ():
            counts[reason] += n_absent
        return counts

    def _groups(self, rows: Rows) -> Iterable[tuple[int, int]]:
        """A representative row and the number of rows with the same reasons."""
        by_bits = rows[self._origin[rows] >= 0]
        single = rows[self._origin[rows] < 0]
        yield from ((int(row), 1) for row in single)
        if by_bits.size:
            keys = np.stack([self._origin[by_bits].astype(np.uint64), self._bits[by_bits]], axis=1)
            _, first, numbers = np.unique(keys, axis=0, return_index=True, return_counts=True)
            yield from zip(by_bits[first].tolist(), numbers.tolist(), strict=True)

    def _status_of_bits(self, row: int, origin: int, bits: int) -> Status:
        known = self._known.get((origin, bits))
        if known is None or known.code != self._codes[row]:
            known = self._origins[origin].status(self._pod, row, Code(int(self._codes[row])), bits)
            self._known[(origin, bits)] = known
        return known


def histogram_message(n_nodes: int, failures: NodeFailures) -> str:
    """`0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`"""
    counts = failures.histogram()
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{n_nodes} nodes are available: {', '.join(parts)}."
