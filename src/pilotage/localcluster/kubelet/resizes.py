"""The kubelet's care for resizes: takes them where there is room, carries them out, says what waits and why.

A pod that runs and whose spec asks something else than is allocated to it is looked at when anything on its
node changes, and every three minutes. Taken, it is allocated at once and actual after `resize_seconds`. Where
the node's policy disables preemption for resizes, its deferred pods carry the condition that says so.

Laws: status is all that is written, one patch per pod and look; what is allocated stands in the status, so a
restart loses nothing. A pod may have a newer wish that waits while an older one is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from pilotage.api.meta import Condition
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.api.requests import pod_allocated
from pilotage.localcluster.controllers.plan import NOTHING, Patch, Plan, plan
from pilotage.localcluster.kubelet.allocation import IN_PROGRESS, PENDING, Verdict, decide, resizable
from pilotage.localcluster.kubelet.nodes import has_kubelet
from pilotage.localcluster.kubelet.status import finished_resize, taken_resize
from pilotage.localcluster.objects import Cache, Moved
from pilotage.localcluster.rest.timestamps import time_text

DISABLED: Final = "PodResizePreemptionDisabled"
RETRY_SECONDS: Final = 180.0
_BY_POLICY: Final = "PreemptionDisabledByNodePolicy"


class ResizeKubelets:
    """Keys are node names."""

    name: ClassVar[str] = "kubelet-resizes"
    settle: ClassVar[float] = 0.0

    def __init__(self, *, resize_seconds: float = 0.5) -> None:
        self._seconds = resize_seconds
        # UID -> when its resize was taken; exactly for those that are not actual yet, as far as seen here.
        self._taken_at: dict[str, float] = {}

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        if moved.resource == "nodes":
            return (moved.object.metadata.name,) if _is_node_news(moved) else ()
        if moved.resource != "pods" or not isinstance(moved.object, Pod) or not _is_pod_news(moved):
            return ()
        if moved.new is None:
            self._taken_at.pop(moved.object.metadata.uid, None)
        return (moved.object.spec.node_name,) if moved.object.spec.node_name else ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        node = cache.get("nodes", key)
        if not isinstance(node, Node) or not has_kubelet(node):
            return NOTHING
        there = [pod for pod in cache.pods_on(key) if isinstance(pod, Pod) and not pod.is_terminal]
        running = [pod for pod in there if pod.status.phase == "Running" and not _is_ending(pod)]
        asking = [pod for pod in running if _asks(pod)]
        allocated = {pod.metadata.uid: pod_allocated(pod) for pod in there} if asking else {}
        verdicts = decide(node, asking, allocated)
        writes, waits = [], []
        for pod in (pod for pod in running if pod.metadata.uid in verdicts or _is_resizing(pod)):
            verdict = verdicts.get(pod.metadata.uid)
            status, wait = self._status(node, pod, verdict, now)
            writes.append(_patch(pod, status) if status else None)
            waits += [wait] if wait is not None else []
        return plan(writes, min(waits, default=None))

    def _status(
        self, node: Node, pod: Pod, verdict: Verdict | None, now: float
    ) -> tuple[dict[str, Any], float | None]:
        """What is to be written of the pod, and when to look again."""
        uid = pod.metadata.uid
        if verdict is not None and not verdict.reason:
            self._taken_at[uid] = now
            conditions = [_removed(PENDING), _removed(DISABLED), _condition(pod, IN_PROGRESS, "", "", now)]
            return {**taken_resize(pod), "conditions": conditions}, self._seconds
        conditions = _waiting_conditions(node, pod, verdict, now)
        left = self._left(pod, now)
        status: dict[str, Any] = {}
        if left is not None and left <= 1e-6:
            self._taken_at.pop(uid, None)
            status = finished_resize(pod)
            conditions.append(_removed(IN_PROGRESS))
            left = None
        if conditions:
            status["conditions"] = conditions
        deferred = RETRY_SECONDS if verdict is not None and verdict.reason == "Deferred" else None
        return status, min((w for w in (left, deferred) if w is not None), default=None)

    def _left(self, pod: Pod, now: float) -> float | None:
        """Seconds until a resize that was taken is in force; None where none is on its way."""
        if not _is_true(pod, IN_PROGRESS):
            return None
        return self._taken_at.setdefault(pod.metadata.uid, now) + self._seconds - now


def _is_ending(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _is_resizing(pod: Pod) -> bool:
    return any(pod.condition(kind) is not None for kind in (PENDING, IN_PROGRESS, DISABLED))


def _asks(pod: Pod) -> bool:
    """Whether the spec differs from what is allocated; limits are compared with what is actual."""
    statuses = {s.name: s for s in (*(pod.status.init_container_statuses or ()), *_main(pod))}
    for container in resizable(pod):
        status = statuses.get(container.name)
        if status is None:
            continue
        if (container.resources.requests or {}) != (status.allocated_resources or {}):
            return True
        limits = (status.resources.limits if status.resources else None) or {}
        if not _is_true(pod, IN_PROGRESS) and (container.resources.limits or {}) != limits:
            return True
    level = pod.spec.resources.requests if pod.spec.resources else None
    return bool(level) and pod.status.allocated_resources not in (None, level)


def _main(pod: Pod) -> Iterable[Any]:
    return pod.status.container_statuses or ()


# Conditions


def _waiting_conditions(node: Node, pod: Pod, verdict: Verdict | None, now: float) -> list[Mapping[str, Any]]:
    """Only what differs from the pod's conditions."""
    policy = node.spec.pod_preemption_policy
    is_deferred = verdict is not None and verdict.reason == "Deferred"
    is_disabled = is_deferred and policy is not None and bool(policy.disable_resize_preemption)
    pending = verdict if verdict is not None and verdict.reason else None
    wanted = (
        (PENDING, pending),
        (DISABLED, Verdict(_BY_POLICY, "the node's policy") if is_disabled else None),
    )
    found: list[Mapping[str, Any]] = []
    for kind, content in wanted:
        if content is None:
            found += [_removed(kind)] if pod.condition(kind) is not None else []
        elif not _says(pod.condition(kind), content, pod.metadata.generation):
            found.append(_condition(pod, kind, content.reason, content.message, now))
    return found


def _says(condition: Condition | None, content: Verdict, generation: int) -> bool:
    if condition is None:
        return False
    said = (condition.status, condition.reason, condition.message, condition.observed_generation)
    return said == ("True", content.reason, content.message, generation)


def _condition(pod: Pod, kind: str, reason: str, message: str, now: float) -> Mapping[str, Any]:
    known = pod.condition(kind)
    is_same = known is not None and (known.status, known.reason or "") == ("True", reason)
    since = known.last_transition_time if is_same and known is not None else None
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
        "lastTransitionTime": since or time_text(now),
    }


def _removed(kind: str) -> Mapping[str, Any]:
    return {"type": kind, "$patch": "delete"}


def _is_true(pod: Pod, kind: str) -> bool:
    condition = pod.condition(kind)
    return condition is not None and condition.status == "True"


# News


def _is_node_news(moved: Moved) -> bool:
    old, new = moved.old, moved.new
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return (old.status.allocatable, old.spec, old.metadata.annotations) != (
        new.status.allocatable,
        new.spec,
        new.metadata.annotations,
    )


def _is_pod_news(moved: Moved) -> bool:
    old, new = moved.old, moved.new
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return True
    return _moment(old) != _moment(new)


def _moment(pod: Pod) -> tuple[object, ...]:
    resources = tuple(container.resources for container in resizable(pod))
    ending = pod.metadata.deletion_timestamp
    return (pod.spec.node_name, resources, pod.spec.resources, pod.status, ending)


def _patch(pod: Pod, status: Mapping[str, Any]) -> Patch:
    meta = pod.metadata
    return Patch("pods", meta.namespace, meta.name, {"status": status}, "status", meta.uid, strategic=True)
