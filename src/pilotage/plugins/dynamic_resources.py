"""DynamicResources, as far as pods without claims meet it: they own no claim whose device could be given up.

Pods with claims are kept pending by NotBuiltYet. What is here is the text that users of kube-scheduler read
ahead of preemption's, and the error that they read when PreFilter ended before this plugin.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, NodeFailures, Plugin, PostFilterResult
from pilotage.framework.status import SKIP, Status, error, unschedulable
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView

NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
NO_STATE = "not found"  # PreFilter was over before it came to this plugin


class DynamicResources(Plugin):
    depends_on = DependsOn.ROW

    def pre_filter(self, cycle: CycleState, _pod: PodInfo, _view: NodeView) -> Status:
        cycle.write(self.name, True)
        return SKIP

    def post_filter(
        self, cycle: CycleState, _pod: PodInfo, _view: NodeView, _failures: NodeFailures
    ) -> PostFilterResult:
        if cycle.get(self.name) is None:
            return PostFilterResult(error(NO_STATE))
        return PostFilterResult(unschedulable(NOTHING_TO_DEALLOCATE))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Rejects nobody so far; a plugin that registers nothing is woken by all."""
        return (EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _never),)


def _never(_pod: PodInfo, _old: object | None, _new: object | None) -> Hint:
    return Hint.SKIP
