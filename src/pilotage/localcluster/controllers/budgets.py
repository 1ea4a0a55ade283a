"""PodDisruptionBudget status: how many pods may be evicted just now.

Laws: written against the resourceVersion that was read, since the eviction subresource writes here too;
an evicted pod stays in disruptedPods until it is seen terminating, at most two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.plan import NOTHING, Patch, Plan, plan
from pilotage.localcluster.controllers.pods import is_ready, replicas_of, selector_of
from pilotage.localcluster.controllers.rollout import resolve
from pilotage.localcluster.objects import Cache, Moved, Whole, controller_of
from pilotage.localcluster.rest.timestamps import parse_time, time_text

RESOURCE = "poddisruptionbudgets.policy"
DISRUPTED_SECONDS = 120.0
_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "Deployment": "deployments.apps",
}


class Budgets:
    name: ClassVar[str] = "disruption-controller"
    settle: ClassVar[float] = 0.05

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == RESOURCE:
            return (moved.object.key,)
        if moved.resource != "pods":
            return ()
        views = [view for view in (moved.old, moved.new) if view is not None]
        return {
            budget.key
            for budget in cache.in_namespace(RESOURCE, moved.object.metadata.namespace)
            if isinstance(budget, Whole)
            and any(selector_of(budget).matches(view.metadata.labels) for view in views)
        }

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        budget = cache.get(RESOURCE, key)
        if not isinstance(budget, Whole) or budget.metadata.deletion_timestamp:
            return NOTHING
        matcher = selector_of(budget)
        pods = [
            pod
            for pod in cache.in_namespace("pods", budget.metadata.namespace)
            if isinstance(pod, Pod) and not pod.is_terminal and matcher.matches(pod.metadata.labels)
        ]
        disrupted = _disrupted(budget, pods, now)
        wanted = _status(budget, pods, disrupted, cache, now)
        requeue = DISRUPTED_SECONDS if disrupted else None
        if all(budget.status.get(name) == value for name, value in wanted.items()):
            return plan([], requeue)
        return plan([_patch(budget, wanted)], requeue)


def _patch(budget: Whole, wanted: Mapping[str, Any]) -> Patch:
    """A merge patch: names that left disruptedPods are removed by null."""
    before = budget.status.get("disruptedPods") or {}
    removed = {name: None for name in before if name not in wanted["disruptedPods"]}
    status = {**wanted, "disruptedPods": {**removed, **wanted["disruptedPods"]}}
    meta = budget.metadata
    body = {"metadata": {"resourceVersion": meta.resource_version}, "status": status}
    return Patch(RESOURCE, meta.namespace, meta.name, body, "status")


def _disrupted(budget: Whole, pods: list[Pod], now: float) -> dict[str, str]:
    waiting = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}
    return {
        name: since
        for name, since in (budget.status.get("disruptedPods") or {}).items()
        if name in waiting and now - (parse_time(since) or 0.0) < DISRUPTED_SECONDS
    }


def _status(
    budget: Whole, pods: list[Pod], disrupted: Mapping[str, str], cache: Cache, now: float
) -> dict[str, Any]:
    expected, desired = _expectation(budget, pods, cache)
    healthy = sum(
        is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected else 0
    return {
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget.metadata.generation,
        "disruptedPods": dict(disrupted),
        "conditions": [_condition(budget, allowed, now)],
    }


def _condition(budget: Whole, allowed: int, now: float) -> dict[str, Any]:
    wanted = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget.metadata.generation,
    }
    for before in budget.status.get("conditions") or ():
        if before.get("type") == "DisruptionAllowed" and before.get("status") == wanted["status"]:
            return {**wanted, "lastTransitionTime": before.get("lastTransitionTime")}
    return {**wanted, "lastTransitionTime": time_text(now)}


def _expectation(budget: Whole, pods: list[Pod], cache: Cache) -> tuple[int, int]:
    """(expected pods, pods that must stay healthy)."""
    most = budget.spec.get("maxUnavailable")
    if most is not None:
        expected = _scale_of(pods, cache)
        return expected, max(0, expected - resolve(most, expected, default=0, round_up=True))
    least = budget.spec.get("minAvailable")
    if isinstance(least, str) and least.endswith("%"):
        expected = _scale_of(pods, cache)
        return expected, resolve(least, expected, default=0, round_up=True)
    return len(pods), 1 if least is None else int(least)


def _scale_of(pods: list[Pod], cache: Cache) -> int:
    """Replicas that the pods' controllers ask for, each counted once; a pod without one counts itself."""
    scales: dict[str, int] = {}
    for pod in pods:
        top = _top_owner(pod, cache)
        scales[top.metadata.uid] = replicas_of(top) if isinstance(top, Whole) else 1
    return sum(scales.values())


def _top_owner(view: KubeObject, cache: Cache) -> KubeObject:
    owner = controller_of(view)
    resource = _SCALED.get(owner.kind) if owner is not None else None
    found = cache.get(resource, f"{view.metadata.namespace}/{owner.name}") if resource and owner else None
    return _top_owner(found, cache) if found is not None else view
