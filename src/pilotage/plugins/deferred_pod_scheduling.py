"""DeferredPodScheduling: nodes that do not want preemption for resizes, and the events that help a resize.

Takes part in the cycles of deferred resizes alone. Laws: one owner in `spec.podPreemptionPolicy.
disableResizePreemption` is enough to keep the scheduler out; a parked resize is tried again when its own
requests change, when a pod of its node leaves or changes what it has or wishes, and when its node lets
preemption happen again or comes back. What NodeResourcesFit waits for is its own business.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.api.nodes import Node
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

DISABLED = "node had resize preemption disabled"


class DeferredPodScheduling(Plugin):
    depends_on = DependsOn.ROW
    takes_part_in_resizes = True

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        return SUCCESS if pod.is_bound else SKIP

    def filter_nodes(self, _cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        disabled = [has_disabled_preemption(view.node(row)) for row in rows.tolist()]
        is_out = np.array(disabled, np.bool_)
        return FilterResult(is_out * np.int8(Code.UNRESOLVABLE), is_out.astype(np.uint64))

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (DISABLED,)

    def events_to_register(self) -> Sequence[EventRegistration]:
        pod = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE)
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_PREEMPTION_POLICY)
        taint = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)  # else it is told of all of them
        return (
            EventRegistration(pod, self._pod_changed),
            EventRegistration(node, self._node_allows),
            EventRegistration(taint, _never),
        )

    def _pod_changed(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """Pods that waited on another node than `pod` are not asked: see the queue's node index."""
        if not pod.is_bound or not isinstance(old, PodInfo):
            return Hint.SKIP
        if not isinstance(new, PodInfo):
            return Hint.QUEUE
        if new.uid == pod.uid:
            return Hint.QUEUE if old.requests != new.requests else Hint.SKIP
        return Hint.QUEUE if old.usage != new.usage or old.held != new.held else Hint.SKIP

    def _node_allows(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not pod.is_bound or not isinstance(new, Node) or has_disabled_preemption(new):
            return Hint.SKIP
        was_closed = not isinstance(old, Node) or has_disabled_preemption(old)
        return Hint.QUEUE if was_closed else Hint.SKIP


def has_disabled_preemption(node: Node) -> bool:
    """Whether anybody keeps the scheduler from evicting pods of the node for a resize."""
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)


def _never(_pod: PodInfo, _old: object | None, _new: object | None) -> Hint:
    return Hint.SKIP
