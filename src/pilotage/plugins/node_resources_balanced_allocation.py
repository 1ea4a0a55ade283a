"""NodeResourcesBalancedAllocation: prefers nodes whose use of cpu and memory the pod brings closer together.

Laws: real requests, never the scoring defaults; fractions in double precision as kube-scheduler computes
them. The score compares the spread of the fractions with the pod and without it: about 75 is no change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import MAX_NODE_SCORE, DependsOn, Handle, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Status
from pilotage.plugins.resource_scoring import DEFAULT_RESOURCES, ResourceSpec
from pilotage.state.podinfo import PodInfo
from pilotage.state.resources import is_scalar
from pilotage.state.view import Int64, NodeView, Rows

Fractions = NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class _Share(NamedTuple):
    """One resource on the asked rows: the fraction in use with the pod, without it, and who offers it."""

    after: Fractions
    before: Fractions
    is_offered: NDArray[np.bool_]


class NodeResourcesBalancedAllocation(Plugin):
    depends_on = DependsOn.ROW
    args_type = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(read_args(NodeResourcesBalancedAllocationArgs, args), handle)
        self._resources = [resource.name for resource in self.args.resources or DEFAULT_RESOURCES]

    def pre_score(self, _cycle: CycleState, pod: PodInfo, _view: NodeView, _rows: Rows) -> Status:
        return SUCCESS if any(pod.requests.get(name) for name in self._resources) else SKIP

    def score_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        shares = [share for name in self._resources if (share := _share(name, pod, view, rows))]
        with_pod = _balance([share.after for share in shares], shares, rows.size)
        without = _balance([share.before for share in shares], shares, rows.size)
        half = MAX_NODE_SCORE // 2
        scores: Int64 = half + (half + with_pod - without) // 2
        return scores


def _share(resource: str, pod: PodInfo, view: NodeView, rows: Rows) -> _Share | None:
    column = view.column(resource)
    asked = pod.requests.get(resource, 0)
    if column is None or (is_scalar(resource) and not asked):
        return None
    capacity = view.allocatable[rows, column]
    used = view.requested[rows, column]
    is_offered = capacity > 0
    divisor = np.where(is_offered, capacity, 1).astype(np.float64)
    after, before = (np.minimum((used + more) / divisor, 1.0) for more in (asked, 0))
    return _Share(after, before, is_offered)


def _balance(fractions: list[Fractions], shares: list[_Share], n_rows: int) -> Int64:
    """(1 - standard deviation) * 100 per row over the resources that the row offers, cut to whole numbers."""
    if all(share.is_offered.all() for share in shares):
        return _whole(_deviation(fractions, n_rows))
    offered = np.stack([share.is_offered for share in shares])
    scores = np.empty(n_rows, np.int64)
    for pattern in np.unique(offered, axis=1).T:
        rows = np.flatnonzero((offered == pattern[:, None]).all(axis=0))
        chosen = [of[rows] for of, is_in in zip(fractions, pattern, strict=True) if is_in]
        scores[rows] = _whole(_deviation(chosen, rows.size))
    return scores


def _deviation(fractions: list[Fractions], n_rows: int) -> Fractions:
    if len(fractions) < 2:
        return np.zeros(n_rows)
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    mean = sum(fractions[1:], fractions[0]) / len(fractions)
    squares = [(of - mean) * (of - mean) for of in fractions]
    deviation: Fractions = np.sqrt(sum(squares[1:], squares[0]) / len(fractions))
    return deviation


def _whole(deviation: Fractions) -> Int64:
    return ((1.0 - deviation) * MAX_NODE_SCORE).astype(np.int64)
