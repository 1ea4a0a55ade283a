"""A pod's claims sorted by what is left to do for them, and why a pod cannot go on with one.

Laws: the first claim that cannot be used decides, in the order of the pod's volumes. A claim that names a
volume but is not bound yet belongs to the volume controller, whatever the class's binding mode says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pilotage.api.others import PersistentVolumeClaim
from pilotage.framework.status import Status, error, unresolvable
from pilotage.state.podinfo import ClaimUse, PodInfo
from pilotage.state.volume_values import LOST, WAIT_FOR_FIRST_CONSUMER, class_of, is_bound
from pilotage.state.volumes import Volumes


class UnusableClaimError(Exception):
    """A claim that keeps the pod from being placed anywhere; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@dataclass(slots=True)
class PodClaims:
    """`delayed`: to be bound once a node is chosen."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    immediate: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)


def not_found(resource: str, name: str) -> str:
    """The text of a lookup that finds nothing."""
    return f'{resource} "{name}" not found'


def claims_of(volumes: Volumes, pod: PodInfo) -> PodClaims:
    """Raises UnusableClaimError."""
    found = PodClaims()
    for claim in [_usable(volumes, pod, use) for use in pod.claims]:
        if is_bound(claim):
            found.bound.append(claim)
        elif not claim.spec.volume_name and _is_delayed(volumes, claim):
            found.delayed.append(claim)
        else:
            found.immediate.append(claim)
    found.delayed = _distinct(found.delayed)
    return found


def _distinct(claims: Iterable[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Each claim once, though two volumes of the pod may name it."""
    return list({claim.key: claim for claim in claims}.values())


def _usable(volumes: Volumes, pod: PodInfo, use: ClaimUse) -> PersistentVolumeClaim:
    claim = volumes.claim(pod.namespace, use.name)
    if claim is None:
        if use.is_generated:
            text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
            raise UnusableClaimError(unresolvable(text))
        raise UnusableClaimError(unresolvable(not_found("persistentvolumeclaim", use.name)))
    if claim.status.phase == LOST:
        volume = claim.spec.volume_name
        text = f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        raise UnusableClaimError(unresolvable(text))
    if claim.metadata.deletion_timestamp is not None:
        raise UnusableClaimError(unresolvable(f'persistentvolumeclaim "{use.name}" is being deleted'))
    if use.is_generated and not _is_owned(claim, pod):
        text = f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
        raise UnusableClaimError(unresolvable(text))
    return claim


def _is_owned(claim: PersistentVolumeClaim, pod: PodInfo) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references or ())


def _is_delayed(volumes: Volumes, claim: PersistentVolumeClaim) -> bool:
    name = class_of(claim)
    found = volumes.storage_class(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise UnusableClaimError(error(f'VolumeBindingMode not set for StorageClass "{name}"'))
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
