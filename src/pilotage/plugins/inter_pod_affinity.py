"""InterPodAffinity: places pods by the pods that are there already.

Filter, in this order: the pod's required affinity, its required anti-affinity, and the required
anti-affinity of pods on nodes towards it. Score: preferred terms of both sides, and required affinity of
pods on nodes with `hardPodAffinityWeight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from pilotage.api.nodes import Node
from pilotage.api.others import Namespace
from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import MAX_NODE_SCORE, DependsOn, FilterResult, Handle, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from pilotage.state.affinity_counts import (
    AffinityCounts,
    PairCounts,
    affinity_counts,
    matches_itself,
    preference_scores,
)
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import OwnedTerm, OwnerKind, Term
from pilotage.state.terms import TermIndex
from pilotage.state.view import Bool, Int64, NodeView, Rows

_TEXTS: Final = {
    1: "node(s) didn't match pod affinity rules",
    2: "node(s) didn't match pod anti-affinity rules",
    4: "node(s) didn't satisfy existing pods anti-affinity rules",
}


class InterPodAffinityArgs(PluginArgs, frozen=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class InterPodAffinity(Plugin):
    """Vector form."""

    depends_on = DependsOn.CLUSTER
    args_type = InterPodAffinityArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        settings = read_args(InterPodAffinityArgs, args)
        self._ignores_preferred = settings.ignore_preferred_terms_of_existing_pods
        self._factors = {
            OwnerKind.REQUIRED: settings.hard_pod_affinity_weight,
            OwnerKind.PREFERRED: 1,
            OwnerKind.PREFERRED_ANTI: -1,
        }

    # Filter

    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        """Nominated pods may bring anti-affinity with them: while there are such, nothing is skipped."""
        if defect := affinity_of(pod).defect:
            return unresolvable(f"invalid pod affinity: {defect}")
        counts = affinity_counts(view, self._terms, pod)
        if counts.is_idle and not self.handle.cluster.nominations.has_repelling:
            return SKIP
        cycle.write(f"{self.name}/counts", counts)
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView) -> Status:
        return self._change(cycle, other, row, +1, view)

    def remove_pod(self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView) -> Status:
        return self._change(cycle, other, row, -1, view)

    def _change(self, cycle: CycleState, other: PodInfo, row: int, delta: int, view: NodeView) -> Status:
        counts = cycle.read(f"{self.name}/counts", AffinityCounts)
        counts.change(self._terms, view, other, row, delta)
        return SUCCESS

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        counts = cycle.read(f"{self.name}/counts", AffinityCounts)
        codes = np.zeros(len(rows), np.int8)
        reasons = np.zeros(len(rows), np.uint64)
        for failed, code, reason in (
            (_any_counted(counts.existing.values(), rows), Code.UNSCHEDULABLE, 4),
            (_any_counted(counts.anti, rows), Code.UNSCHEDULABLE, 2),
            (self._misses_affinity(counts, rows), Code.UNRESOLVABLE, 1),
        ):
            codes[failed] = code
            reasons[failed] = reason
        return FilterResult(codes, reasons)

    def _misses_affinity(self, counts: AffinityCounts, rows: Rows) -> Bool:
        """A pod that matches its own terms may be the first where no pod matches them anywhere."""
        has_keys = np.ones(len(rows), np.bool_)
        is_counted = np.ones(len(rows), np.bool_)
        for pairs in counts.required:
            has_keys &= pairs.has_key(rows)
            is_counted &= pairs.is_counted(rows)
        if counts.required and counts.is_unmatched and matches_itself(self._terms, counts.info):
            return ~has_keys
        return ~is_counted

    def reason_texts(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, row: int, bits: int
    ) -> Sequence[str]:
        return (_TEXTS[bits],)

    # Score

    def pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Status:
        terms = affinity_of(pod)
        if self._ignores_preferred and not (terms.preferred or terms.preferred_anti):
            return SKIP
        scores = preference_scores(view, self._terms, pod, self._factors)
        if scores is None:
            return SKIP
        cycle.write(f"{self.name}/scores", scores)
        return SUCCESS

    def score_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        scores: Int64 = cycle.read(f"{self.name}/scores", np.ndarray)[rows]
        return scores

    def normalize(self, cycle: CycleState, pod: PodInfo, scores: Int64, rows: Rows) -> Int64:
        """100 x ((s - min) / (max - min)) in doubles in this order, truncated."""
        if not len(scores) or scores.min() == scores.max():
            return np.zeros(len(scores), np.int64)
        low, high = scores.min(), scores.max()
        normalized: Int64 = (MAX_NODE_SCORE * ((scores - low) / float(high - low))).astype(np.int64)
        return normalized

    @property
    def _terms(self) -> TermIndex:
        terms = self.handle.cluster.terms
        assert isinstance(terms, TermIndex)
        return terms

    # Requeueing

    def events_to_register(self) -> Sequence[EventRegistration]:
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        namespaces = Action.ADD | Action.UPDATE_OTHER
        return (
            EventRegistration(ClusterEvent(Resource.POD, pods), self._after_pod),
            EventRegistration(ClusterEvent(Resource.NODE, nodes), self._after_node),
            EventRegistration(ClusterEvent(Resource.NAMESPACE, namespaces), self._after_namespace),
        )

    def _after_pod(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        before = old if isinstance(old, PodInfo) else None
        after = new if isinstance(new, PodInfo) else None
        if before is not None and after is not None and pod.uid == after.uid:
            return Hint.QUEUE  # its own labels: other pods' terms, and its own, see it differently now
        helps = self._helps_affinity(pod, before, after) or self._helps_anti_affinity(pod, before, after)
        return Hint.QUEUE if helps else Hint.SKIP

    def _helps_affinity(self, pod: PodInfo, before: PodInfo | None, after: PodInfo | None) -> bool:
        """A match came; or the last one may have gone, and the pod can be the first."""
        conjunction = affinity_of(pod).all_required
        if conjunction is None:
            return False
        was, is_now = self._matches(conjunction, before), self._matches(conjunction, after)
        return (is_now and not was) or (was and not is_now and matches_itself(self._terms, pod))

    def _helps_anti_affinity(self, pod: PodInfo, before: PodInfo | None, after: PodInfo | None) -> bool:
        """A pod that the terms keep away from went or stopped matching, or one that kept `pod` away went."""
        if before is None:
            return False
        own = affinity_of(pod).required_anti
        if any(self._matches(t.term, before) and not self._matches(t.term, after) for t in own):
            return True
        theirs = affinity_of(before).required_anti if after is None else ()
        return any(self._matches(t.term, pod) for t in theirs)

    def _matches(self, term: Term, info: PodInfo | None) -> bool:
        return info is not None and self._terms.matches(term, info)

    def _after_node(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node):
            return Hint.SKIP
        terms = affinity_of(pod)
        labels = new.metadata.labels or {}
        if not isinstance(old, Node):
            helps = bool(terms.required_anti) or any(t.topology_key in labels for t in terms.required)
            return Hint.QUEUE if helps else Hint.SKIP
        before = old.metadata.labels or {}
        gained = any(t.topology_key in labels for t in _changed(terms.required, before, labels))
        left = any(t.topology_key in before for t in _changed(terms.required_anti, before, labels))
        return Hint.QUEUE if gained or left else Hint.SKIP

    def _after_namespace(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """Its labels brought pods to the pod's affinity, or took some out of an anti-affinity's sight."""
        if not isinstance(new, Namespace):
            return Hint.SKIP
        name = new.metadata.name
        before = (old.metadata.labels if isinstance(old, Namespace) else None) or {}
        now = self._terms.namespace_labels(name)

        def saw(term: OwnedTerm) -> bool:
            return term.clause.namespaces.matches(name, before)

        def sees(term: OwnedTerm) -> bool:
            return term.clause.namespaces.matches(name, now)

        terms = affinity_of(pod)
        helps = any(saw(t) is not sees(t) for t in terms.required)
        helps = helps or any(saw(t) and not sees(t) for t in terms.required_anti)
        helps = helps or (name == pod.namespace and self._terms.gave_up_repelling(pod, before))
        return Hint.QUEUE if helps else Hint.SKIP


def _changed(
    terms: Iterable[OwnedTerm], before: dict[str, str], after: dict[str, str]
) -> Iterable[OwnedTerm]:
    """Terms whose topology value of the node is another one now."""
    return (t for t in terms if before.get(t.topology_key) != after.get(t.topology_key))


def _any_counted(pairs: Iterable[PairCounts], rows: Rows) -> Bool:
    counted = np.zeros(len(rows), np.bool_)
    for pair in pairs:
        counted |= pair.is_counted(rows)
    return counted
