"""ReplicaSet: as many pods as it asks for.

Laws: a pod that matches and has no controller is adopted, one that stopped matching is released; what is
deleted first are pods that would be missed least (not assigned, not ready, crowded on a node, youngest).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.plan import (
    NOTHING,
    Create,
    Delete,
    Patch,
    Plan,
    Write,
    owner_reference,
    plan,
    status_patch,
)
from pilotage.localcluster.controllers.pods import (
    as_pods,
    available_at,
    is_active,
    is_ready,
    orphans,
    pod_body,
    replicas_of,
    selector_of,
)
from pilotage.localcluster.objects import Cache, Moved, Whole, controller_of

RESOURCE = "replicasets.apps"
CREATED_AT_ONCE = 500
_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets:
    name: ClassVar[str] = "replicaset-controller"
    settle: ClassVar[float] = 0.1

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == RESOURCE:
            return (moved.object.key,)
        if moved.resource != "pods":
            return ()
        return self._of_pod(moved, cache)

    def _of_pod(self, moved: Moved, cache: Cache) -> set[str]:
        keys = set()
        for pod in (moved.old, moved.new):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner.kind == "ReplicaSet" and pod is not None:
                keys.add(f"{pod.metadata.namespace}/{owner.name}")
        pod = moved.new
        if pod is not None and controller_of(pod) is None and _may_be_taken(moved):
            keys |= {
                view.key
                for view in cache.in_namespace(RESOURCE, pod.metadata.namespace)
                if isinstance(view, Whole) and selector_of(view).matches(pod.metadata.labels)
            }
        return keys

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        owner = cache.get(RESOURCE, key)
        if not isinstance(owner, Whole) or owner.metadata.deletion_timestamp:
            return NOTHING
        matcher = selector_of(owner)
        strays: list[Pod] = []
        pods: list[Pod] = []
        for pod in as_pods(cache.owned_by(owner.metadata.uid, "pods")):
            if is_active(pod):
                (pods if matcher.matches(pod.metadata.labels) else strays).append(pod)
        adopted = orphans(cache, owner)
        writes: list[Write | None] = [_release(owner, pod) for pod in strays]
        writes += [_adopt(owner, pod) for pod in adopted]
        writes += _scale(owner, pods + adopted)
        status, wait = _status(owner, pods, now)
        return plan([*writes, status], wait)


def _may_be_taken(moved: Moved) -> bool:
    """An uncontrolled pod is news to ReplicaSets when it is new, relabelled or has lost its owner."""
    old, new = moved.old, moved.new
    if old is None or new is None:
        return True
    return old.metadata.labels != new.metadata.labels or controller_of(old) is not None


def _scale(owner: Whole, pods: list[Pod]) -> list[Write]:
    difference = replicas_of(owner) - len(pods)
    meta = owner.metadata
    if difference > 0:
        reference = owner_reference("apps/v1", "ReplicaSet", owner)
        body = pod_body(owner, reference)
        return [Create("pods", meta.namespace, body)] * min(difference, CREATED_AT_ONCE)
    leaving = missed_least_first(pods)[: -difference or None] if difference else []
    return [Delete("pods", meta.namespace, pod.metadata.name, pod.metadata.uid) for pod in leaving]


def missed_least_first(pods: list[Pod]) -> list[Pod]:
    """Pods in the order in which a scale-down takes them."""
    per_node = Counter(pod.spec.node_name for pod in pods)

    def rank(pod: Pod) -> tuple[object, ...]:
        annotations = pod.metadata.annotations or {}
        cost = annotations.get(_COST, "0")
        return (
            bool(pod.spec.node_name),
            pod.status.phase == "Running",
            is_ready(pod),
            int(cost) if cost.lstrip("-").isdecimal() else 0,
            -per_node[pod.spec.node_name],
        )

    youngest_first = sorted(
        pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name), reverse=True
    )
    return sorted(youngest_first, key=rank)


def _adopt(owner: Whole, pod: Pod) -> Write:
    body = {"metadata": {"ownerReferences": [owner_reference("apps/v1", "ReplicaSet", owner)]}}
    meta = pod.metadata
    return Patch("pods", meta.namespace, meta.name, body, uid=meta.uid, strategic=True)


def _release(owner: Whole, pod: Pod) -> Write:
    body = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}]}}
    meta = pod.metadata
    return Patch("pods", meta.namespace, meta.name, body, uid=meta.uid, strategic=True)


def _status(owner: Whole, pods: list[Pod], now: float) -> tuple[Write | None, float | None]:
    seconds = float(owner.spec.get("minReadySeconds") or 0)
    times = [time for pod in pods if (time := available_at(pod, seconds)) is not None]
    later = [time - now for time in times if time > now]
    labels = ((owner.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted = {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(labels.items() <= (pod.metadata.labels or {}).items() for pod in pods),
        "readyReplicas": len(times),
        "availableReplicas": len(times) - len(later),
        "observedGeneration": owner.metadata.generation,
    }
    patch = status_patch(RESOURCE, owner, owner.status, wanted)
    return patch, min(later) if later else None
