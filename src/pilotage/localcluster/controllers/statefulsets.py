"""StatefulSet: pods with ordinals, and a claim per template and ordinal.

Laws: pods come in order, each after the one before is ready, and go in reverse order (unless
podManagementPolicy is Parallel); claims are created before their pod and never deleted here; after a
change of the template one pod at a time is replaced, from the highest ordinal down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.deployments import template_hash
from pilotage.localcluster.controllers.plan import (
    NOTHING,
    Create,
    Delete,
    Plan,
    Write,
    owner_reference,
    plan,
    status_patch,
)
from pilotage.localcluster.controllers.pods import as_pods, is_active, is_ready, pod_body, replicas_of
from pilotage.localcluster.objects import Cache, Moved, Whole, controller_of, labels_of

RESOURCE = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"
REVISION_LABEL = "controller-revision-hash"


class StatefulSets:
    name: ClassVar[str] = "statefulset-controller"
    settle: ClassVar[float] = 0.05

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == RESOURCE:
            return (moved.object.key,)
        if moved.resource != "pods":
            return ()
        owner = controller_of(moved.object)
        if owner is None or owner.kind != "StatefulSet":
            return ()
        return (f"{moved.object.metadata.namespace}/{owner.name}",)

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        owner = cache.get(RESOURCE, key)
        if not isinstance(owner, Whole) or owner.metadata.deletion_timestamp:
            return NOTHING
        pods = {
            ordinal: pod
            for pod in as_pods(cache.owned_by(owner.metadata.uid, "pods"))
            if (ordinal := _ordinal(owner, pod)) is not None
        }
        writes: list[Write] = _missing_claims(owner, cache)
        if not writes:
            writes = _parallel(owner, pods) if _is_parallel(owner) else _ordered(owner, pods)
        return plan([*writes, _status(owner, pods)])


def _is_parallel(owner: Whole) -> bool:
    return owner.spec.get("podManagementPolicy") == "Parallel"


def _start(owner: Whole) -> int:
    return int((owner.spec.get("ordinals") or {}).get("start") or 0)


def _wanted(owner: Whole) -> range:
    return range(_start(owner), _start(owner) + replicas_of(owner))


def _ordinal(owner: Whole, pod: Pod) -> int | None:
    prefix, _, number = pod.metadata.name.rpartition("-")
    return int(number) if prefix == owner.metadata.name and number.isdecimal() else None


def revision(owner: Whole) -> str:
    return f"{owner.metadata.name}-{template_hash(owner.spec.get('template') or {})}"


def _missing_claims(owner: Whole, cache: Cache) -> list[Write]:
    namespace = owner.metadata.namespace
    writes: list[Write] = []
    for template in owner.spec.get("volumeClaimTemplates") or ():
        for ordinal in _wanted(owner):
            name = f"{template['metadata']['name']}-{owner.metadata.name}-{ordinal}"
            if cache.get(CLAIMS, f"{namespace}/{name}") is None:
                writes.append(Create(CLAIMS, namespace, _claim(owner, template, name)))
    return writes


def _claim(owner: Whole, template: Mapping[str, Any], name: str) -> dict[str, Any]:
    meta = template["metadata"]
    labels = {**(meta.get("labels") or {}), **((owner.spec.get("selector") or {}).get("matchLabels") or {})}
    metadata = {"name": name, "namespace": owner.metadata.namespace, "labels": labels}
    if meta.get("annotations"):
        metadata["annotations"] = meta["annotations"]
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _pod(owner: Whole, ordinal: int) -> Write:
    name = f"{owner.metadata.name}-{ordinal}"
    spec = (owner.spec.get("template") or {}).get("spec") or {}
    claims = [
        {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}}
        for claim in (
            template["metadata"]["name"] for template in owner.spec.get("volumeClaimTemplates") or ()
        )
    ]
    taken = {volume["name"] for volume in claims}
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in taken]
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION_LABEL: revision(owner),
    }
    reference = owner_reference("apps/v1", "StatefulSet", owner)
    body = pod_body(owner, reference, name=name, labels=labels, volumes=[*claims, *others])
    body["spec"]["hostname"] = name
    if owner.spec.get("serviceName"):
        body["spec"]["subdomain"] = owner.spec["serviceName"]
    return Create("pods", owner.metadata.namespace, body)


def _delete(pod: Pod) -> Write:
    meta = pod.metadata
    return Delete("pods", meta.namespace, meta.name, meta.uid)


def _ordered(owner: Whole, pods: Mapping[int, Pod]) -> list[Write]:
    """One step at a time: bring up the lowest missing one, else take down the highest, else update."""
    for ordinal in _wanted(owner):
        pod = pods.get(ordinal)
        if pod is None:
            return [_pod(owner, ordinal)]
        if pod.is_terminal and is_undisturbed(pod):
            return [_delete(pod)]
        if not is_active(pod) or not is_ready(pod):
            return _stuck(owner, pod)
    surplus = sorted(set(pods) - set(_wanted(owner)), reverse=True)
    if surplus:
        return [_delete(pods[surplus[0]])] if is_undisturbed(pods[surplus[0]]) else []
    return _update(owner, pods)


def _parallel(owner: Whole, pods: Mapping[int, Pod]) -> list[Write]:
    writes = [_pod(owner, ordinal) for ordinal in _wanted(owner) if ordinal not in pods]
    surplus = sorted(set(pods) - set(_wanted(owner)), reverse=True)
    writes += [_delete(pods[ordinal]) for ordinal in surplus if is_undisturbed(pods[ordinal])]
    return writes or _update(owner, pods)


def is_undisturbed(pod: Pod) -> bool:
    """Nobody has asked for its end yet."""
    return pod.metadata.deletion_timestamp is None


def _stuck(owner: Whole, pod: Pod) -> list[Write]:
    """A pending pod of an old template is replaced at once: it would block its own repair."""
    is_old = labels_of(pod).get(REVISION_LABEL) != revision(owner)
    is_pending = is_active(pod) and pod.status.phase != "Running"
    return [_delete(pod)] if is_old and is_pending and not _is_on_delete(owner) else []


def _is_on_delete(owner: Whole) -> bool:
    return (owner.spec.get("updateStrategy") or {}).get("type") == "OnDelete"


def _update(owner: Whole, pods: Mapping[int, Pod]) -> list[Write]:
    if _is_on_delete(owner):
        return []
    rolling = (owner.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    lowest = max(_start(owner), int(rolling.get("partition") or 0))
    for ordinal in sorted((number for number in pods if number >= lowest), reverse=True):
        pod = pods[ordinal]
        if not is_active(pod):
            return []
        if labels_of(pod).get(REVISION_LABEL) != revision(owner):
            return [_delete(pod)]
        if not is_ready(pod):
            return []
    return []


def _status(owner: Whole, pods: Mapping[int, Pod]) -> Write | None:
    newest = revision(owner)
    updated = sum(labels_of(pod).get(REVISION_LABEL) == newest for pod in pods.values())
    ready = sum(is_ready(pod) for pod in pods.values())
    is_done = updated == len(pods)
    current = newest if is_done else owner.status.get("currentRevision") or newest
    wanted = {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": sum(labels_of(pod).get(REVISION_LABEL) == current for pod in pods.values()),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": newest,
        "observedGeneration": owner.metadata.generation,
    }
    return status_patch(RESOURCE, owner, owner.status, wanted)
