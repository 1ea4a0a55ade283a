"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api.nodes import Node, Taint
from pilotage.api.tolerations import NO_SCHEDULE, is_tolerated
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import Code
from pilotage.framework.vector import all_pass, reject
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

UNSCHEDULABLE = "node(s) were unschedulable"
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(Plugin):
    depends_on = DependsOn.ROW

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        is_cordoned = view.unschedulable[rows]
        if not is_cordoned.any() or is_tolerated(_CORDON, pod.tolerations):
            return all_pass(rows)
        return reject(is_cordoned, Code.UNRESOLVABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (UNSCHEDULABLE,)

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
        return EventRegistration(node, _node_is_open), EventRegistration(toleration, _own_toleration)


def _node_is_open(_pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    is_open = isinstance(new, Node) and not new.spec.unschedulable
    return Hint.QUEUE if is_open else Hint.SKIP


def _own_toleration(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    is_own = isinstance(new, PodInfo) and new.uid == pod.uid and is_tolerated(_CORDON, new.tolerations)
    return Hint.QUEUE if is_own else Hint.SKIP
