"""TaintToleration: NoSchedule and NoExecute taints reject, PreferNoSchedule taints cost score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.api.nodes import Node
from pilotage.api.tolerations import PREFER_NO_SCHEDULE, find_untolerated
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import MAX_NODE_SCORE, DependsOn, FilterResult, Plugin
from pilotage.framework.status import Code
from pilotage.framework.vector import all_pass, reject
from pilotage.state.podinfo import PodInfo
from pilotage.state.taints import untolerated_mask
from pilotage.state.view import Int64, NodeView, Rows

UNTOLERATED = "node(s) had untolerated taint(s)"
_SOFT_EFFECTS = (PREFER_NO_SCHEDULE,)


class TaintToleration(Plugin):
    depends_on = DependsOn.ROW

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        is_out = untolerated_mask(view, pod)
        return all_pass(rows) if is_out is None else reject(is_out[rows], Code.UNRESOLVABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (UNTOLERATED,)

    def score_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        """Number of soft taints that the pod does not tolerate."""
        counts = view.untolerated_counts(pod.tolerations, _SOFT_EFFECTS)
        return counts[view.taint_set[rows]]

    def normalize(self, _cycle: CycleState, _pod: PodInfo, scores: Int64, _rows: Rows) -> Int64:
        """Fewest is best: 100 minus the share of the largest number."""
        most = scores.max()
        if most == 0:
            return np.full(scores.size, MAX_NODE_SCORE, np.int64)
        reversed_scores: Int64 = MAX_NODE_SCORE - MAX_NODE_SCORE * scores // most
        return reversed_scores

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
        return EventRegistration(node, _became_tolerable), EventRegistration(toleration, _is_own)


def _became_tolerable(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(new, Node) or find_untolerated(new.spec.taints, pod.tolerations):
        return Hint.SKIP
    was_tolerable = isinstance(old, Node) and not find_untolerated(old.spec.taints, pod.tolerations)
    return Hint.SKIP if was_tolerable else Hint.QUEUE


def _is_own(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    is_own = isinstance(new, PodInfo) and new.uid == pod.uid
    return Hint.QUEUE if is_own else Hint.SKIP
