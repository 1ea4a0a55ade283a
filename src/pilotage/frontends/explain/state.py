"""The pod as the API shows it."""

from __future__ import annotations

from pilotage.api.pods import Pod
from pilotage.frontends.explain.model import PodState
from pilotage.state.podinfo import PodInfo


def pod_state(pod: Pod, events: int) -> PodState:
    condition = pod.condition("PodScheduled")
    return PodState(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        profile=pod.spec.scheduler_name,
        priority=pod.spec.priority or 0,
        phase=pod.status.phase or "Pending",
        node=pod.spec.node_name,
        nominated_node=pod.status.nominated_node_name,
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates or ()),
        condition_status=condition.status if condition else "",
        condition_reason=(condition.reason or "") if condition else "",
        condition_message=(condition.message or "") if condition else "",
        is_terminating=pod.metadata.deletion_timestamp is not None,
        requests=PodInfo(pod).requests,
        events=events,
    )
