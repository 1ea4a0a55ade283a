"""NodeResourcesFit: what the pod asks for must be free; nodes score by how full they would be.

Filtering uses real requests (pod-level ones included), scoring counts a default for containers that ask
for nothing. Resources asked for with 0 are not looked at, so an over-committed one does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pilotage.api.nodes import Node
from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Handle, Plugin
from pilotage.framework.status import SUCCESS, Code, Status, unresolvable
from pilotage.plugins.resource_scoring import (
    DEFAULT_RESOURCES,
    Combine,
    ResourceSpec,
    ShapePoint,
    least_allocated,
    loads,
    most_allocated,
    requested_to_capacity_ratio,
)
from pilotage.state.capacity import node_capacity
from pilotage.state.podinfo import PodInfo
from pilotage.state.resources import NATIVE, is_counted, is_extended
from pilotage.state.view import Bool, Int64, NodeView, Rows, UInt64

TOO_MANY_PODS = "Too many pods"
_PODS_BIT = 1
_MAX_BITS = 64


class ShapeArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    type: str = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: ShapeArgs | None = None


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class _Wish(NamedTuple):
    """One resource that the pod asks for, and the bit that stands for its lack."""

    resource: str
    amount: int
    bit: int


class NodeResourcesFit(Plugin):
    depends_on = DependsOn.ROW
    takes_part_in_resizes = True
    args_type = NodeResourcesFitArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        """Raises ValueError for a strategy that is unknown or has no shape."""
        super().__init__(read_args(NodeResourcesFitArgs, args), handle)
        strategy: ScoringStrategy = self.args.scoring_strategy
        self._resources = strategy.resources or DEFAULT_RESOURCES
        self._combine = _combination(strategy)

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        return unresolvable(pod.defect) if pod.defect else SUCCESS

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        is_full = view.pod_count[rows] >= view.allowed_pods[rows]
        bits: UInt64 = is_full.astype(np.uint64) * np.uint64(_PODS_BIT)
        is_hopeless = np.zeros(rows.size, np.bool_)
        for wish in self._wishes(pod):
            is_short, is_beyond = _shortage(wish, view, rows)
            bits |= is_short.astype(np.uint64) * np.uint64(wish.bit)
            is_hopeless |= is_beyond
        codes = np.where(is_hopeless, np.int8(Code.UNRESOLVABLE), np.int8(Code.UNSCHEDULABLE))
        return FilterResult(codes * (bits != 0), bits)

    def reason_texts(
        self, _cycle: CycleState, pod: PodInfo, _view: NodeView, _row: int, bits: int
    ) -> Sequence[str]:
        reasons = [TOO_MANY_PODS] if bits & _PODS_BIT else []
        reasons += [f"Insufficient {wish.resource}" for wish in self._wishes(pod) if bits & wish.bit]
        return reasons

    def score_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        of = list(loads(self._resources, pod, view, rows))
        return self._combine(of) if of else np.zeros(rows.size, np.int64)

    def _wishes(self, pod: PodInfo) -> Sequence[_Wish]:
        names = sorted(filter(self.looks_at, pod.requests), key=_native_first)
        return [_Wish(name, pod.requests[name], _bit(index)) for index, name in enumerate(names)]

    def looks_at(self, resource: str) -> bool:
        """Whether a request for it counts, by kind and by the arguments."""
        if not is_extended(resource):
            return is_counted(resource)
        group = resource.partition("/")[0]
        return resource not in self.args.ignored_resources and group not in self.args.ignored_resource_groups

    # Events

    def events_to_register(self) -> Sequence[EventRegistration]:
        pod = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        return EventRegistration(pod, self._pod_left_or_shrank), EventRegistration(node, self._node_grew)

    def _pod_left_or_shrank(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(old, PodInfo):
            return Hint.SKIP
        if not isinstance(new, PodInfo):
            had_room = bool(old.node_name or old.pod.status.nominated_node_name)
            return Hint.QUEUE if had_room else Hint.SKIP
        if new.uid == pod.uid:
            return Hint.QUEUE if _shrank(old.requests, new.requests, old.requests) else Hint.SKIP
        wanted = [wish.resource for wish in self._wishes(pod)]
        is_help = bool(new.node_name) and _shrank(old.usage, new.usage, wanted)
        return Hint.QUEUE if is_help else Hint.SKIP

    def _node_grew(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node):
            return Hint.SKIP
        offers = node_capacity(new).amounts
        wishes = self._wishes(pod)
        if offers.get("pods", 0) < 1 or any(offers.get(w.resource, 0) < w.amount for w in wishes):
            return Hint.SKIP
        if not isinstance(old, Node):
            return Hint.QUEUE
        offered = node_capacity(old).amounts
        grew = any(
            offers.get(name, 0) > offered.get(name, 0) for name in ("pods", *(w.resource for w in wishes))
        )
        return Hint.QUEUE if grew else Hint.SKIP


def _shortage(wish: _Wish, view: NodeView, rows: Rows) -> tuple[Bool, Bool]:
    """Rows where too little is free, and of these the ones where even an empty node offers too little."""
    column = view.column(wish.resource)
    if column is None:
        everywhere = np.ones(rows.size, np.bool_)
        return everywhere, everywhere
    offered = view.allocatable[rows, column]
    is_short: Bool = wish.amount > offered - view.requested[rows, column]
    is_beyond: Bool = wish.amount > offered
    return is_short, is_beyond


def _combination(strategy: ScoringStrategy) -> Combine:
    match strategy.type:
        case "LeastAllocated":
            return least_allocated
        case "MostAllocated":
            return most_allocated
        case "RequestedToCapacityRatio":
            shape = strategy.requested_to_capacity_ratio
            if shape is None or not shape.shape:
                raise ValueError(
                    "scoringStrategy.requestedToCapacityRatio.shape: at least one point is needed"
                )
            return requested_to_capacity_ratio(shape.shape)
    raise ValueError(f'scoringStrategy.type: "{strategy.type}" is not a scoring strategy')


def _native_first(resource: str) -> tuple[int, str]:
    return (NATIVE.index(resource) if resource in NATIVE else len(NATIVE), resource)


def _bit(index: int) -> int:
    """Bit 0 is for the number of pods; pods that ask for more than 62 resources share the last bit."""
    return 1 << min(index + 1, _MAX_BITS - 1)


def _shrank(before: dict[str, int], after: dict[str, int], resources: Iterable[str]) -> bool:
    return any(after.get(name, 0) < before.get(name, 0) for name in resources)
