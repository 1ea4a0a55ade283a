"""Garbage collection by ownerReferences: background, foreground, orphan.

Laws: an object goes when none of its owners exists any more; while one still does, only the dead references
are taken off. A foreground deletion ends when nothing with blockOwnerDeletion is left; an orphaning one
takes the owner's reference off its dependents first. Owners of kinds that are not watched count as alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pilotage.api import kinds
from pilotage.api.meta import KubeObject, OwnerReference
from pilotage.client.api import ApiClient
from pilotage.client.errors import ApiError
from pilotage.localcluster.controllers.plan import NOTHING, Delete, Patch, Plan, Write, plan
from pilotage.localcluster.objects import Cache, Moved, kind_of

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_NOT_FOUND = 404
WATCHED = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "poddisruptionbudgets.policy",
    "persistentvolumeclaims",
    "pods",
    "nodes",
    "namespaces",
)


@dataclass(frozen=True, slots=True)
class Collect:
    """Deletes an object after asking the server itself whether really none of its owners is left."""

    object_resource: str
    view: KubeObject
    propagation: str
    resource: str = ""  # the watch tells of the end

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        meta = self.view.metadata
        for owner in meta.owner_references or ():
            if await _is_alive(client, owner, meta.namespace):
                return None
        await client.delete(
            kind_of(self.object_resource),
            meta.name,
            meta.namespace,
            propagation=self.propagation,
            uid=meta.uid,
        )
        return None


async def _is_alive(client: ApiClient, owner: OwnerReference, namespace: str) -> bool:
    kind = kinds.by_kind(owner.api_version, owner.kind)
    if kind is None:
        return True
    try:
        found = await client.get(kind, owner.name, namespace if kind.namespaced else "")
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    meta = found["metadata"]
    is_leaving = "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())
    return meta.get("uid") == owner.uid and not is_leaving


class Garbage:
    """Keys are `resource|key`."""

    name: ClassVar[str] = "garbage-collector"
    settle: ClassVar[float] = 0.0

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        view = moved.object
        keys = []
        if moved.new is not None and (
            view.metadata.owner_references or view.metadata.deletion_timestamp is not None
        ):
            keys.append(f"{moved.resource}|{view.key}")
        if moved.new is None:
            keys += [f"{resource}|{owned.key}" for resource, owned in cache.owned_by(view.metadata.uid)]
            keys += [
                f"{resource}|{view.metadata.namespace}/{owner.name}"
                for owner in view.metadata.owner_references or ()
                if (resource := _resource_of(owner)) is not None
            ]
        return keys

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del now
        resource, _, name = key.partition("|")
        view = cache.get(resource, name)
        if view is None:
            return NOTHING
        finalizers = view.metadata.finalizers or ()
        if view.metadata.deletion_timestamp is not None:
            if ORPHAN in finalizers:
                return _orphan(resource, view, cache)
            return _foreground(resource, view, cache) if FOREGROUND in finalizers else NOTHING
        return _by_owners(resource, view, cache)


def _resource_of(owner: OwnerReference) -> str | None:
    kind = kinds.by_kind(owner.api_version, owner.kind)
    return kind.resource if kind is not None and kind.resource in WATCHED else None


def _is_dead(owner: OwnerReference, namespace: str, cache: Cache) -> bool:
    kind = kinds.by_kind(owner.api_version, owner.kind)
    if kind is None or kind.resource not in WATCHED:
        return False
    found = cache.get(kind.resource, f"{namespace}/{owner.name}" if kind.namespaced else owner.name)
    return found is None or found.metadata.uid != owner.uid


def _is_leaving(owner: OwnerReference, namespace: str, cache: Cache) -> bool:
    """The owner waits in a foreground deletion."""
    resource = _resource_of(owner)
    found = cache.get(resource, f"{namespace}/{owner.name}") if resource is not None else None
    return (
        found is not None
        and found.metadata.uid == owner.uid
        and found.metadata.deletion_timestamp is not None
        and FOREGROUND in (found.metadata.finalizers or ())
    )


def _by_owners(resource: str, view: KubeObject, cache: Cache) -> Plan:
    meta = view.metadata
    owners = meta.owner_references or []
    dead = [owner for owner in owners if _is_dead(owner, meta.namespace, cache)]
    leaving = [owner for owner in owners if _is_leaving(owner, meta.namespace, cache)]
    if owners and len(dead) + len(leaving) == len(owners):
        propagation = "Foreground" if leaving else "Background"
        return plan([Collect(resource, view, propagation)])
    return plan([_without_owners(resource, view, [owner.uid for owner in dead])]) if dead else NOTHING


def _without_owners(resource: str, view: KubeObject, uids: Iterable[str]) -> Write:
    body = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": uid} for uid in uids]}}
    meta = view.metadata
    return Patch(resource, meta.namespace, meta.name, body, uid=meta.uid, strategic=True)


def _orphan(resource: str, view: KubeObject, cache: Cache) -> Plan:
    owned = cache.owned_by(view.metadata.uid)
    if owned:
        return plan([_without_owners(kind, each, [view.metadata.uid]) for kind, each in owned], 0.1)
    return plan([_without_finalizer(resource, view, ORPHAN)])


def _foreground(resource: str, view: KubeObject, cache: Cache) -> Plan:
    owned = cache.owned_by(view.metadata.uid)
    if not owned:
        return plan([_without_finalizer(resource, view, FOREGROUND)])
    return plan(
        [
            Delete(kind, each.metadata.namespace, each.metadata.name, each.metadata.uid, None, "Foreground")
            for kind, each in owned
            if each.metadata.deletion_timestamp is None
        ]
    )


def _without_finalizer(resource: str, view: KubeObject, name: str) -> Write:
    meta = view.metadata
    left = [finalizer for finalizer in meta.finalizers or () if finalizer != name]
    body = {"metadata": {"finalizers": left, "resourceVersion": meta.resource_version}}
    return Patch(resource, meta.namespace, meta.name, body, uid=meta.uid)
