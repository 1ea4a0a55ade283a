"""What-if on many rows at once: the view with pods that are nominated to its nodes.

Law: a row shows its pods and those added to it, in order of nomination; sums follow in one vector step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.state.nominations import Nominations
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import HostPort, Int64, NodeView, Rows


class AdditionOverlay(NodeOverlay):
    """`rows`, `pods` and `amounts` ([pods, resources + 3], see importance.amounts_of) are aligned.

    Not to be mixed with `add_pod` and `remove_pod`.
    """

    def __init__(self, base: NodeView, rows: Rows, pods: Sequence[PodInfo], amounts: Int64) -> None:
        super().__init__(base)
        self._added: dict[int, list[PodInfo]] = {}
        for row, info in zip(rows.tolist(), pods, strict=True):
            self._added.setdefault(row, []).append(info)
        self._with_ports = [row for row, added in self._added.items() if any(p.host_ports for p in added)]
        self._requested = base.requested.copy()
        self._nonzero = base.nonzero_requested.copy()
        self._pod_count = base.pod_count.copy()
        self._revision = base.revision.copy()
        self._revision[rows] = -1
        n_resources = amounts.shape[1] - 3
        np.add.at(self._requested, rows, amounts[:, :n_resources])
        np.add.at(self._nonzero, rows, amounts[:, n_resources : n_resources + 2])
        np.add.at(self._pod_count, rows, amounts[:, n_resources + 2])

    @property
    def rows(self) -> Rows:
        """The rows that pods were added to, each once."""
        return np.fromiter(self._added, np.intp, len(self._added))

    def pods(self, row: int) -> Sequence[PodInfo]:
        added = self._added.get(row)
        return self._base.pods(row) if added is None else (*self._base.pods(row), *added)

    def port_conflicts(self, wanted: HostPort) -> Sequence[int]:
        known = self._base.port_conflicts(wanted)
        more = [row for row in self._with_ports if row not in known and self._collides(row, wanted)]
        return [*known, *more] if more else known

    def _collides(self, row: int, wanted: HostPort) -> bool:
        return any(ports_collide(wanted, port) for info in self._added[row] for port in info.host_ports)


def with_nominated(nominations: Nominations, view: NodeView, pod: PodInfo) -> AdditionOverlay | None:
    """The view with all nominated pods whose room `pod` must respect; None where there are none."""
    found = nominations.entitled_beside(pod)
    rows = [view.row(node) for node, _ in found]
    there = [index for index, row in enumerate(rows) if row is not None]
    if not there:
        return None
    pods = [found[index][1] for index in there]
    at = np.array([rows[index] for index in there], np.intp)
    return AdditionOverlay(view, at, pods, nominations.amounts(view, pods))
