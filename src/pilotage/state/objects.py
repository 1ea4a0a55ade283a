"""Objects of the kinds that need no table of their own, by resource, namespace and name; and versions.

Law: an object is replaced only by a newer one of the same UID, or by one of another UID.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pilotage.api.meta import KubeObject, ObjectMeta


class ObjectChange(NamedTuple):
    """One object before and after; None on add or delete."""

    old: KubeObject | None
    new: KubeObject | None


def is_repeat(known: ObjectMeta, seen: ObjectMeta) -> bool:
    """Whether `seen` says nothing that is newer than `known`.

    Versions are ordered when both are numbers, else only compared for equality; without versions everything
    is new.
    """
    before, after = known.resource_version, seen.resource_version
    if before.isdecimal() and after.isdecimal():
        is_same = known.uid == seen.uid
        return int(after) <= int(before) if is_same else int(after) < int(before)
    return bool(after) and after == before and known.uid == seen.uid


class ObjectStore:
    """resource -> namespace -> name -> object. Cluster-scoped objects have the empty namespace."""

    __slots__ = ("_objects", "_revisions")

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, dict[str, KubeObject]]] = {}
        self._revisions: dict[str, int] = {}

    def upsert(self, resource: str, view: KubeObject) -> tuple[ObjectChange, ...]:
        """Nothing when stale; a delete and an add when the UID changed."""
        meta = view.metadata
        names = self._objects.setdefault(resource, {}).setdefault(meta.namespace, {})
        known = names.get(meta.name)
        if known is not None and is_repeat(known.metadata, meta):
            return ()
        names[meta.name] = view
        self._bump(resource)
        if known is not None and known.metadata.uid != meta.uid:
            return ObjectChange(known, None), ObjectChange(None, view)
        return (ObjectChange(known, view),)

    def delete(self, resource: str, view: KubeObject) -> tuple[ObjectChange, ...]:
        """Nothing when unknown, or when the known object has another UID."""
        meta = view.metadata
        names = self._objects.get(resource, {}).get(meta.namespace, {})
        known = names.get(meta.name)
        if known is None or (meta.uid and known.metadata.uid != meta.uid):
            return ()
        del names[meta.name]
        self._bump(resource)
        return (ObjectChange(known, None),)

    def _bump(self, resource: str) -> None:
        self._revisions[resource] = self._revisions.get(resource, 0) + 1

    def revision(self, resource: str) -> int:
        """Moves with every change of an object of that resource."""
        return self._revisions.get(resource, 0)

    def get(self, resource: str, name: str, namespace: str = "") -> KubeObject | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def in_namespace(self, resource: str, namespace: str = "") -> Collection[KubeObject]:
        return self._objects.get(resource, {}).get(namespace, {}).values()

    def namespaces(self, resource: str) -> Mapping[str, Mapping[str, KubeObject]]:
        return self._objects.get(resource, {})
