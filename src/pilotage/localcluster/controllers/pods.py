"""What controllers ask about a pod, and the selector and the template that they hold (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotage.api.meta import KubeObject, LabelSelector
from pilotage.api.pods import Pod
from pilotage.api.selectors import LabelMatcher, compile_label_selector
from pilotage.localcluster.objects import Cache, Whole
from pilotage.localcluster.rest.timestamps import parse_time


def is_ready(pod: Pod) -> bool:
    ready = pod.condition("Ready")
    return ready is not None and ready.status == "True"


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out."""
    return not pod.is_terminal and pod.metadata.deletion_timestamp is None


def available_at(pod: Pod, min_ready_seconds: float) -> float | None:
    """When the pod counts as available, seconds since the epoch; None while it is not ready."""
    ready = pod.condition("Ready")
    if ready is None or ready.status != "True":
        return None
    if min_ready_seconds <= 0:
        return 0.0
    return (parse_time(ready.last_transition_time) or 0.0) + min_ready_seconds


def as_pods(objects: list[tuple[str, KubeObject]]) -> list[Pod]:
    return [view for _, view in objects if isinstance(view, Pod)]


def selector_of(owner: Whole) -> LabelMatcher:
    """The owner's label selector; one that is missing or broken matches nothing."""
    try:
        return compile_label_selector(msgspec.convert(owner.spec.get("selector"), LabelSelector | None))
    except (msgspec.ValidationError, ValueError):
        return compile_label_selector(None)


def replicas_of(owner: Whole) -> int:
    wanted = owner.spec.get("replicas")
    return 1 if wanted is None else int(wanted)


def pod_body(
    owner: Whole,
    reference: Mapping[str, Any],
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    volumes: list[Any] | None = None,
) -> dict[str, Any]:
    """A pod from the owner's template, with a generated name unless one is given."""
    template = owner.spec.get("template") or {}
    meta = template.get("metadata") or {}
    metadata: dict[str, Any] = {key: meta[key] for key in ("annotations", "finalizers") if meta.get(key)}
    metadata["labels"] = {**(meta.get("labels") or {}), **(labels or {})}
    metadata["ownerReferences"] = [dict(reference)]
    metadata["namespace"] = owner.metadata.namespace
    metadata |= {"name": name} if name else {"generateName": f"{owner.metadata.name}-"}
    spec = dict(template.get("spec") or {})
    if volumes is not None:
        spec["volumes"] = volumes
    return {"metadata": metadata, "spec": spec}


def orphans(cache: Cache, owner: Whole) -> list[Pod]:
    """Pods of the namespace that the owner selects and nobody controls."""
    matcher = selector_of(owner)
    if matcher.is_nothing or matcher.is_everything:
        return []
    return [
        pod
        for pod in cache.uncontrolled_pods(owner.metadata.namespace)
        if isinstance(pod, Pod) and is_active(pod) and matcher.matches(pod.metadata.labels)
    ]
