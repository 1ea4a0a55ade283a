"""NodeAffinity: nodeSelector and node affinity, required and preferred, and the affinity that args add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pilotage.api.nodes import Node
from pilotage.api.pods import NodeAffinity as NodeAffinityView
from pilotage.api.pods import PreferredSchedulingTerm
from pilotage.api.selectors import (
    NodeMatcher,
    NodeTermMatcher,
    Operator,
    compile_node_selector,
    compile_node_term,
)
from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import (
    MAX_NODE_SCORE,
    DependsOn,
    FilterResult,
    Handle,
    Plugin,
    PreFilterResult,
)
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from pilotage.state.node_match import matcher_mask, required_mask, term_mask
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, Int64, NodeView, Rows

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
NO_ADDED_MATCH = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"
_POD_BIT, _ADDED_BIT = 1, 2
_NAME_IN = Operator.IN


class NodeAffinityArgs(PluginArgs, frozen=True):
    added_affinity: NodeAffinityView | None = None


class _Preference(NamedTuple):
    weight: int
    term: NodeTermMatcher


class NodeAffinity(Plugin):
    depends_on = DependsOn.ROW
    args_type = NodeAffinityArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        """Raises SelectorError for an affinity that cannot be compiled."""
        super().__init__(read_args(NodeAffinityArgs, args), handle)
        added = self.args.added_affinity
        required = added.required if added else None
        self._added: NodeMatcher | None = required and compile_node_selector(required, "addedAffinity")
        self._added_preferences = _preferences(added.preferred if added else None)

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _view: NodeView) -> PreFilterResult:
        if not pod.node_selector and pod.node_affinity is None and self._added is None:
            return PreFilterResult(SKIP)
        names = _pinned_names(pod.node_affinity)
        if names is not None and not names:
            return PreFilterResult(unresolvable(CONFLICT))
        return PreFilterResult(SUCCESS, names)

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        bits = np.zeros(rows.size, np.uint64)
        is_match = required_mask(view, pod)
        if is_match is not None:
            bits[~is_match[rows]] = _POD_BIT
        if self._added is not None:
            bits[~matcher_mask(view, self._added)[rows]] = _ADDED_BIT
        return FilterResult((bits != 0).astype(np.int8) * np.int8(Code.UNRESOLVABLE), bits)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, bits: int
    ) -> Sequence[str]:
        return (NO_ADDED_MATCH if bits & _ADDED_BIT else NO_MATCH,)

    def pre_score(self, _cycle: CycleState, pod: PodInfo, _view: NodeView, _rows: Rows) -> Status:
        return SUCCESS if self._added_preferences or _pod_preferred(pod) else SKIP

    def score_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        """Sum of the weights of matching preferred terms."""
        scores = np.zeros(view.n_rows, np.int64)
        for weight, term in (*self._added_preferences, *_preferences(_pod_preferred(pod))):
            matching: Bool = term_mask(view, term)
            scores[matching] += weight
        return scores[rows]

    def normalize(self, _cycle: CycleState, _pod: PodInfo, scores: Int64, _rows: Rows) -> Int64:
        most = scores.max()
        return scores if most == 0 else MAX_NODE_SCORE * scores // most

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(node, self._node_matches_now),)

    def _node_matches_now(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node) or not self._matches(pod, new):
            return Hint.SKIP
        return Hint.SKIP if isinstance(old, Node) and self._matches(pod, old) else Hint.QUEUE

    def _matches(self, pod: PodInfo, node: Node) -> bool:
        labels, name = node.metadata.labels or {}, node.metadata.name
        if self._added is not None and not self._added.matches(labels, name):
            return False
        if pod.node_affinity is not None and not pod.node_affinity.matches(labels, name):
            return False
        return all(requirement.matches(labels.get(requirement.key)) for requirement in pod.node_selector)


def _pinned_names(affinity: NodeMatcher | None) -> frozenset[str] | None:
    """The only nodes that can match when every term pins names, else None."""
    if affinity is None or not affinity.terms:
        return None
    names: frozenset[str] = frozenset()
    for term in affinity.terms:
        lists = [frozenset(r.values) for r in term.names if r.operator is _NAME_IN]
        if not lists:
            return None
        names |= frozenset.intersection(*lists)
    return names


def _pod_preferred(pod: PodInfo) -> list[PreferredSchedulingTerm] | None:
    affinity = pod.pod.spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else None


def _preferences(terms: Sequence[PreferredSchedulingTerm] | None) -> tuple[_Preference, ...]:
    return tuple(_Preference(t.weight, compile_node_term(t.preference)) for t in terms or () if t.weight)
