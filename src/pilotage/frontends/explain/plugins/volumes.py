"""The volume plugins: which claims of the pod they speak of."""

from __future__ import annotations

from typing import Final

from pilotage.api.others import PersistentVolumeClaim
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.state.podinfo import PodInfo

PLUGINS: Final = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


class Volumes(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        claims = claim_names(look.pod)
        texts = [_claim_text(look, name) for name in claims]
        return Detail("; ".join(texts), numbers={"claims": claims} if claims else {})


def claim_names(pod: PodInfo) -> list[str]:
    """Names of the PersistentVolumeClaims that the pod uses, those of ephemeral volumes included."""
    found = []
    for volume in pod.pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.name}-{volume.name}")
    return found


def _claim_text(look: Look, name: str) -> str:
    claim = look.cluster.objects.get("persistentvolumeclaims", name, look.pod.namespace)
    if not isinstance(claim, PersistentVolumeClaim):
        return f"claim {name}: there is none"
    storage_class = claim.spec.storage_class_name
    of_class = f"class {storage_class}" if storage_class else "no class"
    if claim.spec.volume_name:
        return f"claim {name}: bound to volume {claim.spec.volume_name}, {of_class}"
    return f"claim {name}: not bound, {of_class}"
