"""NodeName: a pod that names its node fits nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.api.nodes import Node
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import Code
from pilotage.framework.vector import all_pass, reject
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

OTHER_NODE = "node(s) didn't match the requested node name"


class NodeName(Plugin):
    depends_on = DependsOn.ROW

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        if not pod.node_name:
            return all_pass(rows)
        row = view.row(pod.node_name)
        is_other = np.ones(rows.size, np.bool_) if row is None else rows != row
        return reject(is_other, Code.UNRESOLVABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (OTHER_NODE,)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD), _is_named),)


def _is_named(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    is_wanted = isinstance(new, Node) and pod.node_name in ("", new.metadata.name)
    return Hint.QUEUE if is_wanted else Hint.SKIP
