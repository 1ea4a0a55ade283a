"""The volume controller: binds claims to volumes, makes volumes where a class may, and lets go of old ones.

Stands in for kube-controller-manager's and for every CSI provisioner, those in `external` left out.
Laws: one step per reconcile, and the answer to it brings the next: a volume is reserved for a claim (or made
for it) before the claim names the volume, and only a claim that does is called bound. A claim of a class
that waits for its first consumer is touched only once a scheduler reserved a volume for it or chose a node.
A volume is released only after its claim was bound and is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from pilotage.api.nodes import Node
from pilotage.api.others import PersistentVolume, PersistentVolumeClaim, StorageClass
from pilotage.localcluster.controllers.plan import NOTHING, Create, Delete, Patch, Plan, Write, plan
from pilotage.localcluster.objects import Cache, Moved
from pilotage.state.volume_values import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    annotation,
    class_of,
    compile_request,
    compile_volume,
    has_annotation,
    is_bound,
    is_choice,
    is_for,
    is_usable,
)

CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses.storage.k8s.io"
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_ZONE: Final = "topology.kubernetes.io/zone"


class VolumeClaims:
    """Keys are those of claims. `external`: provisioners that somebody else plays."""

    name: ClassVar[str] = "persistentvolume-binder"
    settle: ClassVar[float] = 0.0

    def __init__(self, external: Iterable[str] = ()) -> None:
        self._external = frozenset(external)

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        view = moved.object
        if isinstance(view, PersistentVolumeClaim):
            return (view.key,)
        if isinstance(view, PersistentVolume):
            reference = view.spec.claim_ref
            if reference is not None:
                return (f"{reference.namespace}/{reference.name}",)
            return _waiting(cache, class_of(view))
        if isinstance(view, StorageClass):
            return (*_waiting(cache, view.metadata.name), *_waiting(cache, ""))
        return ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del now
        claim = cache.get(CLAIMS, key)
        if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.deletion_timestamp is not None:
            return NOTHING
        if is_bound(claim):
            return plan([_bound_status(claim, cache)])
        kept = _kept_for(claim, cache)
        if kept is not None:
            return plan([_reserve(kept, claim) if _lacks_uid(kept) else _name_volume(claim, kept)])
        return plan([self._next_step(claim, cache)])

    def _next_step(self, claim: PersistentVolumeClaim, cache: Cache) -> Write | None:
        """Towards a volume of its own, for a claim that has none."""
        if claim.spec.volume_name:
            named = cache.get(VOLUMES, claim.spec.volume_name)
            is_free = isinstance(named, PersistentVolume) and named.spec.claim_ref is None
            return _reserve(named, claim) if is_free and isinstance(named, PersistentVolume) else None
        if claim.spec.storage_class_name is None and not class_of(claim):
            default = _default_class(cache)
            if default is not None:
                return _patch_claim(claim, {"spec": {"storageClassName": default.metadata.name}})
        found = cache.get(CLASSES, class_of(claim))
        storage_class = found if isinstance(found, StorageClass) else None
        waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        node = annotation(claim, SELECTED_NODE)
        if waits and not node:
            return None
        free = None if waits else _smallest(claim, cache)
        if free is not None:
            return _reserve(free, claim)
        return self._provision(claim, storage_class, node, cache)

    def _provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass | None, node: str, cache: Cache
    ) -> Write | None:
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER, *self._external):
            return None
        place = cache.get("nodes", node) if node else None
        if node and place is None:  # it cannot be made there: whoever chose the node has to choose again
            return _patch_claim(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
        zone = (place.metadata.labels or {}).get(_ZONE, "") if isinstance(place, Node) else ""
        return Create(VOLUMES, "", _new_volume(claim, storage_class, zone))


def _waiting(cache: Cache, class_name: str) -> list[str]:
    """Keys of the claims of a class that have no volume."""
    claims = [view for view in cache.all(CLAIMS) if isinstance(view, PersistentVolumeClaim)]
    return [claim.key for claim in claims if not is_bound(claim) and class_of(claim) == class_name]


def _volumes(cache: Cache) -> list[PersistentVolume]:
    found = [view for view in cache.all(VOLUMES) if isinstance(view, PersistentVolume)]
    return sorted(found, key=lambda volume: volume.metadata.name)


def _kept_for(claim: PersistentVolumeClaim, cache: Cache) -> PersistentVolume | None:
    """The volume whose claimRef names the claim."""
    request = compile_request(claim)
    kept = (volume for volume in _volumes(cache) if is_for(volume, claim))
    return next((volume for volume in kept if is_usable(compile_volume(volume), request)), None)


def _lacks_uid(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None or not volume.spec.claim_ref.uid


def _smallest(claim: PersistentVolumeClaim, cache: Cache) -> PersistentVolume | None:
    request = compile_request(claim)
    fitting = [one for one in map(compile_volume, _volumes(cache)) if is_choice(one, request)]
    return min(fitting, key=lambda one: one.size).view if fitting else None


def _default_class(cache: Cache) -> StorageClass | None:
    """The newest of those that are marked."""
    classes = [view for view in cache.all(CLASSES) if isinstance(view, StorageClass)]
    marked = [one for one in classes if annotation(one, IS_DEFAULT) == "true"]
    return max(marked, key=lambda one: (one.metadata.creation_timestamp or "", one.key), default=None)


def _reserve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Write:
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    if volume.spec.claim_ref is None:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    body = {"metadata": metadata, "spec": {"claimRef": _reference(claim)}}
    return Patch(VOLUMES, "", volume.metadata.name, body, uid=volume.metadata.uid)


def _reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }


def _name_volume(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Write:
    notes = {BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        notes[BOUND_BY_CONTROLLER] = "yes"
    return _patch_claim(
        claim, {"metadata": {"annotations": notes}, "spec": {"volumeName": volume.metadata.name}}
    )


def _patch_claim(claim: PersistentVolumeClaim, body: Mapping[str, Any]) -> Write:
    """On exactly this version."""
    meta = claim.metadata
    metadata = {**body.get("metadata", {}), "resourceVersion": meta.resource_version}
    return Patch(CLAIMS, meta.namespace, meta.name, {**body, "metadata": metadata}, uid=meta.uid)


def _bound_status(claim: PersistentVolumeClaim, cache: Cache) -> Write | None:
    """Bound, with what the volume offers; Lost when a volume that was there is gone."""
    volume = cache.get(VOLUMES, claim.spec.volume_name)
    status: dict[str, Any] = {"phase": "Lost"}
    if isinstance(volume, PersistentVolume):
        status = {
            "phase": "Bound",
            "accessModes": volume.spec.access_modes or [],
            "capacity": volume.spec.capacity or {},
        }
    elif claim.status.phase != "Bound":
        return None
    if claim.status.phase == status["phase"]:
        return None
    meta = claim.metadata
    return Patch(CLAIMS, meta.namespace, meta.name, {"status": status}, "status")


def _new_volume(claim: PersistentVolumeClaim, storage_class: StorageClass, zone: str) -> dict[str, Any]:
    name = f"pvc-{claim.metadata.uid}"
    spec: dict[str, Any] = {
        "capacity": dict(claim.spec.resources.requests or {}),
        "accessModes": list(claim.spec.access_modes or ()),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "storageClassName": storage_class.metadata.name,
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "claimRef": _reference(claim),
        "csi": {"driver": storage_class.provisioner, "volumeHandle": name},
    }
    if zone:
        inside = {"key": _ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]}}
    notes = {PROVISIONED_BY: storage_class.provisioner}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}


class VolumePhases:
    """Keys are volume names: what phase a volume is in, and the end of one that was made for a claim."""

    name: ClassVar[str] = "persistentvolume-phases"
    settle: ClassVar[float] = 0.0

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        view = moved.object
        if isinstance(view, PersistentVolume):
            return (view.metadata.name,)
        if isinstance(view, PersistentVolumeClaim) and view.spec.volume_name:
            return (view.spec.volume_name,)
        return ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del now
        volume = cache.get(VOLUMES, key)
        if not isinstance(volume, PersistentVolume) or volume.metadata.deletion_timestamp is not None:
            return NOTHING
        phase = _phase(volume, cache)
        policy = volume.spec.persistent_volume_reclaim_policy
        if phase == "Released" and policy == "Delete" and has_annotation(volume, PROVISIONED_BY):
            return plan([Delete(VOLUMES, "", key, volume.metadata.uid)])
        if phase == volume.status.phase:
            return NOTHING
        return plan([Patch(VOLUMES, "", key, {"status": {"phase": phase}}, "status")])


def _phase(volume: PersistentVolume, cache: Cache) -> str:
    known = volume.status.phase
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        return AVAILABLE
    claim = cache.get(CLAIMS, f"{reference.namespace}/{reference.name}")
    if isinstance(claim, PersistentVolumeClaim) and claim.metadata.uid == reference.uid:
        is_there = is_bound(claim) and claim.spec.volume_name == volume.metadata.name
        return "Bound" if is_there else known if known not in ("", "Pending") else AVAILABLE
    return "Released" if known in ("Bound", "Released") else AVAILABLE
