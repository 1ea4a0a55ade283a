"""Claims of generic ephemeral volumes: one per volume, owned by its pod and gone with it.

Law: a claim of that name which belongs to somebody else is left alone; the scheduler says so on the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.plan import NOTHING, Create, Plan, owner_reference, plan
from pilotage.localcluster.controllers.volumes import CLAIMS
from pilotage.localcluster.objects import Cache, Moved


class EphemeralVolumes:
    """Keys are those of pods."""

    name: ClassVar[str] = "ephemeral-volume-controller"
    settle: ClassVar[float] = 0.0

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        view = moved.object
        if isinstance(view, Pod) and any(volume.ephemeral for volume in view.spec.volumes or ()):
            return (view.key,)
        return ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del now
        pod = cache.get("pods", key)
        if not isinstance(pod, Pod) or pod.is_terminal or pod.metadata.deletion_timestamp is not None:
            return NOTHING
        wanted = [
            (f"{pod.metadata.name}-{v.name}", v.ephemeral) for v in pod.spec.volumes or () if v.ephemeral
        ]
        namespace = pod.metadata.namespace
        return plan(
            Create(CLAIMS, namespace, _claim(pod, name, source))
            for name, source in wanted
            if cache.get(CLAIMS, f"{namespace}/{name}") is None
        )


def _claim(pod: Pod, name: str, source: Mapping[str, object]) -> dict[str, Any]:
    template = cast(Mapping[str, Any], source.get("volumeClaimTemplate") or {})
    meta = template.get("metadata") or {}
    metadata = {
        "name": name,
        "namespace": pod.metadata.namespace,
        "labels": dict(meta.get("labels") or {}),
        "annotations": dict(meta.get("annotations") or {}),
        "ownerReferences": [owner_reference("v1", "Pod", pod)],
    }
    return {"metadata": metadata, "spec": template.get("spec") or {}}
