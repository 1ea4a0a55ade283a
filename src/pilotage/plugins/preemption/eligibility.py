"""Whether a pod may preempt at all."""

from __future__ import annotations

from pilotage.framework.plugin import NodeFailures
from pilotage.framework.status import Code
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView

NEVER = "not eligible due to preemptionPolicy=Never."
VICTIM_IS_LEAVING = "not eligible due to a terminating pod on the nominated node."

_CONDITION, _REASON = "DisruptionTarget", "PreemptionByScheduler"


def why_not_eligible(cluster: ClusterState, pod: PodInfo, view: NodeView, failures: NodeFailures) -> str:
    """Empty when the pod may preempt.

    A pod whose earlier victims are still leaving the node that it is nominated to waits for them, unless
    that node cannot take it whatever leaves.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = cluster.nominations.node_of(pod.uid) or pod.pod.status.nominated_node_name
    row = view.row(nominated) if nominated else None
    if row is None or failures.code(row) is Code.UNRESOLVABLE:
        return ""
    is_waiting = any(
        other.priority < pod.priority and (other.uid in cluster.evicted or _is_leaving(other))
        for other in view.pods(row)
    )
    return VICTIM_IS_LEAVING if is_waiting else ""


def _is_leaving(pod: PodInfo) -> bool:
    """Terminating, and because of preemption."""
    condition = pod.pod.condition(_CONDITION) if pod.is_terminating else None
    return condition is not None and (condition.status, condition.reason) == ("True", _REASON)
