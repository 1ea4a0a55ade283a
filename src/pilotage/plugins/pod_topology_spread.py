"""PodTopologySpread: keeps matching pods even over topology domains.

Filter: hard constraints (DoNotSchedule) reject nodes whose domain would exceed maxSkew. Score: soft ones
(ScheduleAnyway) prefer domains with few matches. A pod without constraints of its own gets the profile's
default ones, whose selector is that of its Services and its controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pilotage.api.nodes import Node
from pilotage.api.pods import TopologySpreadConstraint
from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import MAX_NODE_SCORE, DependsOn, FilterResult, Handle, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from pilotage.state.default_spread import DefaultSelectors
from pilotage.state.pod_terms import spread_constraint, spread_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.spread_counts import HOSTNAME, HardSpread, SoftSpread, hard_spread, soft_spread
from pilotage.state.term_values import SpreadConstraint
from pilotage.state.terms import TermIndex
from pilotage.state.view import Int64, NodeView, Rows

SKEW_REASON: Final = "node(s) didn't match pod topology spread constraints"
KEY_REASON: Final = f"{SKEW_REASON} (missing required label)"
_TEXTS: Final = {1: SKEW_REASON, 2: KEY_REASON}

_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """`default_constraints` need defaulting type List and carry no labelSelector."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class PodTopologySpread(Plugin):
    """Vector form."""

    depends_on = DependsOn.CLUSTER
    args_type = PodTopologySpreadArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        settings = read_args(PodTopologySpreadArgs, args)
        self._is_system = settings.defaulting_type == "System"
        self._defaults = _SYSTEM_DEFAULTS if self._is_system else settings.default_constraints
        self._selectors: DefaultSelectors | None = None

    # Filter

    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        if defect := spread_of(pod).defect:
            return unresolvable(f"invalid topology spread constraints: {defect}")
        constraints = self._constraints(pod, is_hard=True)
        if not constraints:
            return SKIP
        cycle.write(f"{self.name}/hard", hard_spread(view, self._terms, pod, constraints))
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView) -> Status:
        return self._change(cycle, other, row, +1)

    def remove_pod(self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView) -> Status:
        return self._change(cycle, other, row, -1)

    def _change(self, cycle: CycleState, other: PodInfo, row: int, delta: int) -> Status:
        cycle.read(f"{self.name}/hard", HardSpread).change(self._terms, other, row, delta)
        return SUCCESS

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        """Each row's reason is that of the first constraint that it fails."""
        codes = np.zeros(len(rows), np.int8)
        reasons = np.zeros(len(rows), np.uint64)
        for counts in cycle.read(f"{self.name}/hard", HardSpread).counts:
            is_open = codes == Code.SUCCESS
            lacks_key = counts.domains[rows] == 0
            exceeds = ~lacks_key & (counts.skew(rows) > counts.constraint.max_skew)
            for failed, code, reason in (
                (is_open & lacks_key, Code.UNRESOLVABLE, 2),
                (is_open & exceeds, Code.UNSCHEDULABLE, 1),
            ):
                codes[failed] = code
                reasons[failed] = reason
        return FilterResult(codes, reasons)

    def reason_texts(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, row: int, bits: int
    ) -> Sequence[str]:
        return (_TEXTS[bits],)

    # Score

    def pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Status:
        constraints = self._constraints(pod, is_hard=False)
        if not constraints:
            return SKIP
        needs_all_keys = bool(spread_of(pod).constraints) or not self._is_system
        soft = soft_spread(view, self._terms, pod, constraints, rows, needs_all_keys=needs_all_keys)
        cycle.write(f"{self.name}/soft", soft)
        return SUCCESS

    def score_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        return cycle.read(f"{self.name}/soft", SoftSpread).scores(rows)

    def normalize(self, cycle: CycleState, pod: PodInfo, scores: Int64, rows: Rows) -> Int64:
        """The fewer matches the better; ignored nodes get 0."""
        ignored = cycle.read(f"{self.name}/soft", SoftSpread).ignored[rows]
        result = np.zeros(len(scores), np.int64)
        counted = scores[~ignored]
        if len(counted):
            low, high = int(counted.min()), int(counted.max())
            result[~ignored] = MAX_NODE_SCORE
            if high:
                result[~ignored] = MAX_NODE_SCORE * (high + low - counted) // high
        return result

    # Constraints

    @property
    def _terms(self) -> TermIndex:
        terms = self.handle.cluster.terms
        assert isinstance(terms, TermIndex)
        return terms

    def _constraints(self, pod: PodInfo, *, is_hard: bool) -> tuple[SpreadConstraint, ...]:
        own = spread_of(pod)
        if own.constraints:
            return own.hard if is_hard else own.soft
        wanted = [c for c in self._defaults if (c.when_unsatisfiable == "DoNotSchedule") is is_hard]
        if not wanted:
            return ()
        if self._selectors is None:
            self._selectors = DefaultSelectors(self.handle.cluster.objects)
        selector = self._selectors.selector(pod)
        if selector is None:
            return ()
        return tuple(spread_constraint(pod.namespace, c, selector) for c in wanted)

    # Requeueing

    def events_to_register(self) -> Sequence[EventRegistration]:
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        toleration = ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(ClusterEvent(Resource.POD, pods), self._after_pod),
            EventRegistration(toleration, self._after_toleration),
            EventRegistration(ClusterEvent(Resource.NODE, nodes), self._after_node),
        )

    def _after_pod(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A pod of the same namespace came, went or changed sides for some constraint."""
        before = old if isinstance(old, PodInfo) else None
        after = new if isinstance(new, PodInfo) else None
        if any(info is not None and info.namespace != pod.namespace for info in (before, after)):
            return Hint.SKIP
        constraints = self._constraints(pod, is_hard=True)
        return _queue_if(any(_selects(c, before) != _selects(c, after) for c in constraints))

    def _after_toleration(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """Tolerations matter where they decide which nodes count."""
        return _queue_if(any(c.honors_taints for c in self._constraints(pod, is_hard=True)))

    def _after_node(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A node with all keys came or went, or changed its domains or whether it counts."""
        constraints = self._constraints(pod, is_hard=True)
        before = _place(pod, old, constraints)
        after = _place(pod, new, constraints)
        return _queue_if(before != after)


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


def _selects(constraint: SpreadConstraint, info: PodInfo | None) -> bool:
    return info is not None and constraint.selector.matches(info.labels)


def _place(pod: PodInfo, node: object | None, constraints: Sequence[SpreadConstraint]) -> object | None:
    """What a node means to the constraints; None when it lacks one of their keys."""
    if not isinstance(node, Node):
        return None
    labels = node.metadata.labels or {}
    if not all(c.topology_key in labels for c in constraints):
        return None
    taints = tuple(node.spec.taints or ()) if any(c.honors_taints for c in constraints) else ()
    is_wanted = not any(c.honors_affinity for c in constraints) or _is_wanted(pod, node)
    return tuple(labels[c.topology_key] for c in constraints), taints, is_wanted


def _is_wanted(pod: PodInfo, node: Node) -> bool:
    labels = node.metadata.labels or {}
    affinity = pod.node_affinity
    if affinity is not None and not affinity.matches(labels, node.metadata.name):
        return False
    return all(requirement.matches(labels.get(requirement.key)) for requirement in pod.node_selector)
