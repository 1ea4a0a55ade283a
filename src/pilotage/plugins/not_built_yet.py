"""NotBuiltYet: pods that need what this scheduler does not do yet stay pending with a reason that names it.

Placing such a pod as if the need were not there would be worse than not placing it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilotage.api.pods import Pod
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, Plugin
from pilotage.framework.status import SKIP, Status, unresolvable
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


class NotBuiltYet(Plugin):
    depends_on = DependsOn.ROW

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        needs = tuple(_unsupported(pod.pod))
        return unresolvable(*(f"pod {need}, which is not supported yet" for need in needs)) if needs else SKIP

    def events_to_register(self) -> Sequence[EventRegistration]:
        """No event helps; one that never does keeps the pod from being woken by all."""
        return (EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _never),)


def _never(_pod: PodInfo, _old: object | None, _new: object | None) -> Hint:
    return Hint.SKIP


def _unsupported(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    for claim in spec.resource_claims or ():
        yield f'uses resourceClaim "{claim.name}"'
    if spec.scheduling_group is not None:
        yield f'belongs to pod group "{spec.scheduling_group.pod_group_name or ""}"'
    if spec.workload_ref is not None:
        yield f'belongs to workload "{spec.workload_ref.get("name", "")}"'
