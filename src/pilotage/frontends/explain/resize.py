"""The resize of a pod on its node: what it asks, what the node has, and what the scheduler does about it.

Decided with the real cycle on a copy of the cluster in which the pod is on its node; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pilotage.api.meta import Condition
from pilotage.api.pods import Pod
from pilotage.frontends.explain.model import Victim
from pilotage.scheduling.deferred_cycle import ResizeOutcome, as_resized, decide_resize, resize_view
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.transitions import Position
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
DISABLED: Final = "PodResizePreemptionDisabled"
OUT: Final = "not in the queue"


@dataclass(frozen=True, slots=True)
class Balance:
    """One resource on the pod's node. `others`: what the other pods have, as the kubelet counts them."""

    resource: str
    wants: int
    has: int
    others: int
    of: int

    @property
    def free(self) -> int:
        """For this pod, what it has included."""
        return max(0, self.of - self.others)

    @property
    def short(self) -> int:
        return max(0, self.wants - self.free)


@dataclass(frozen=True, slots=True)
class Resize:
    """`state`: reason of the condition (Deferred, Infeasible, InProgress); `since`: as the API writes times.

    `outcome`: what a cycle finds now (fits, preempts, waits, rejected, error), or `not in the queue` with the
    reason as `message`. `preempted`: pods that events name as its victims.
    """

    state: str
    since: str
    kubelet_says: str
    node: str
    outcome: str
    message: str
    balances: tuple[Balance, ...] = ()
    victims: tuple[Victim, ...] = ()
    leaving: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()


def explain_resize(engine: Engine, pod: Pod, events: Iterable[Mapping[str, Any]]) -> Resize | None:
    """None for a pod without a resize. `engine` knows the pod as it is; `events`: Event objects."""
    condition = _true(pod, PENDING) or _true(pod, IN_PROGRESS)
    if not pod.spec.node_name or condition is None:
        return None
    state = condition.reason if condition.type == PENDING and condition.reason else "InProgress"
    info, cluster = PodInfo(pod), engine.cluster
    row = cluster.nodes.row(pod.spec.node_name)
    found = Resize(
        state,
        condition.last_transition_time or "",
        condition.message or "",
        pod.spec.node_name,
        OUT,
        _why_out(engine, info),
        balances=() if row is None else tuple(_balances(cluster, info, row)),
        leaving=() if row is None else tuple(_leaving(cluster, info, row)),
        preempted=tuple(_preempted(info, events)),
    )
    return found if found.message else _decided(engine, info, found)


def _true(pod: Pod, kind: str) -> Condition | None:
    condition = pod.condition(kind)
    return condition if condition is not None and condition.status == "True" else None


def _why_out(engine: Engine, pod: PodInfo) -> str:
    """Why the scheduler takes no part; empty where it does."""
    if engine.position(pod.uid) is not Position.ABSENT:
        return ""
    if pod.is_terminating:
        return "the pod is being deleted"
    disabled = _true(pod.pod, DISABLED)
    if disabled is not None:
        return f"condition {DISABLED} is True ({disabled.reason or 'no reason given'})"
    if not pod.is_resize_deferred:
        return "only deferred resizes wait for room; this is the kubelet's"
    if pod.pod.spec.scheduler_name not in engine.profiles:
        return f'schedulerName "{pod.pod.spec.scheduler_name}" is no profile of this configuration'
    return "preemption for resizes is switched off (feature gate, or no plugin takes part)"


def _decided(engine: Engine, pod: PodInfo, found: Resize) -> Resize:
    verdict = decide_resize(engine.profiles[pod.pod.spec.scheduler_name], engine.cluster, pod)
    units = verdict.preemption.units if verdict.preemption is not None else ()
    victims = tuple(Victim(v.namespace, v.name, v.priority) for unit in units for v in unit.pods)
    leaving = found.leaving if verdict.outcome is ResizeOutcome.WAITS else ()
    return replace(
        found, outcome=verdict.outcome.value, message=verdict.message, victims=victims, leaving=leaving
    )


def _balances(cluster: ClusterState, pod: PodInfo, row: int) -> Iterable[Balance]:
    """Of every resource that the pod wants or has in another amount, or that its node is short of."""
    wanted, view = as_resized(cluster, pod).requests, resize_view(cluster.nodes, row, pod)
    for resource, wants in sorted(wanted.items()):
        column = view.column(resource)
        offered = 0 if column is None else int(view.allocatable[row, column])
        others = 0 if column is None else int(view.requested[row, column])
        balance = Balance(resource, wants, pod.held.get(resource, 0), others, offered)
        if balance.short or balance.wants != balance.has:
            yield balance


def _leaving(cluster: ClusterState, pod: PodInfo, row: int) -> Iterable[str]:
    return [other.key for other in cluster.nodes.pods(row) if other.is_terminating and other.uid != pod.uid]


def _preempted(pod: PodInfo, events: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Pods about which an event says that they went for this one."""
    beginning = f"Preempted by pod {pod.uid} "
    found: dict[str, None] = {}
    for event in events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        text = str(event.get("message") or event.get("note") or "")
        if event.get("reason") == "Preempted" and text.startswith(beginning):
            found[f"{about.get('namespace', '')}/{about.get('name', '')}"] = None
    return found
