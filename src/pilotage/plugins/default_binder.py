"""DefaultBinder: binding is one call, a POST to the pod's binding subresource."""

from __future__ import annotations

from pilotage.framework.calls import BindPod, ObjectKey
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import Plugin
from pilotage.state.podinfo import PodInfo


class DefaultBinder(Plugin):
    def bind(self, _cycle: CycleState, pod: PodInfo, node_name: str) -> BindPod:
        return BindPod(ObjectKey("pods", pod.namespace, pod.name, pod.uid), node_name)
