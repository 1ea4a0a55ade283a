"""NodePorts: no two pods on a node hold the same host port."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status
from pilotage.framework.vector import reject
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import NodeView, Rows

NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(Plugin):
    depends_on = DependsOn.ROW

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        return SUCCESS if pod.host_ports else SKIP

    def filter_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        is_taken = np.zeros(view.n_rows, np.bool_)
        for wanted in pod.host_ports:
            is_taken[list(view.port_conflicts(wanted))] = True
        return reject(is_taken[rows], Code.UNSCHEDULABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (NO_FREE_PORTS,)

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(Resource.NODE, Action.ADD)
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        return EventRegistration(node), EventRegistration(gone, _freed_a_port)


def _freed_a_port(pod: PodInfo, old: object | None, _new: object | None) -> Hint:
    if not isinstance(old, PodInfo) or not old.node_name:
        return Hint.SKIP
    is_freed = any(ports_collide(wanted, used) for wanted in pod.host_ports for used in old.host_ports)
    return Hint.QUEUE if is_freed else Hint.SKIP
