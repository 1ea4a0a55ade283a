"""SchedulingGates: a pod with gates stays out of the active queue until the last one is removed."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, Plugin
from pilotage.framework.status import SUCCESS, Status, unresolvable
from pilotage.state.podinfo import PodInfo

_GATES_GONE = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


class SchedulingGates(Plugin):
    depends_on = DependsOn.ROW

    def pre_enqueue(self, pod: PodInfo) -> Status:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(_GATES_GONE, _own_gates_gone),)


def _own_gates_gone(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    is_own = isinstance(new, PodInfo) and new.uid == pod.uid
    return Hint.QUEUE if is_own else Hint.SKIP
