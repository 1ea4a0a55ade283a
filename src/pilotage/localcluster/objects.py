"""What kubelets and controllers believe about the cluster: one cache for all of them (pure).

Why: each of them reads its own writes at once. An answered create or patch goes into the cache before the
watch tells it, so that nothing is created twice; a watch event that is older than what is known is dropped.

Laws: an object never goes back to an older resourceVersion; an object that we saw removed does not come
back under its UID; what was only known from an answer and is not confirmed by the watch is forgotten
after `UNCONFIRMED_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pilotage.api import kinds
from pilotage.api.kinds import Kind
from pilotage.api.meta import KubeObject, OwnerReference

UNCONFIRMED_SECONDS = 120.0


class Whole(KubeObject, frozen=True):
    """Any object whose spec and status are read as they are."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


WHOLE = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "poddisruptionbudgets.policy",
    "namespaces",
)
TYPED = ("persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io")
"""Kinds whose view has all that controllers read."""


def kind_of(resource: str) -> Kind:
    """The kind as controllers read it: whole for the few that are templates or budgets, else the view."""
    return _KINDS[resource]


def _read_as(resource: str) -> Kind:
    kind = kinds.by_resource(resource)
    if kind is None:
        raise LookupError(f"no kind {resource}")
    return replace(kind, view=Whole) if resource in WHOLE else kind


_KINDS = {
    resource: _read_as(resource)
    for resource in (*WHOLE, *TYPED, "pods", "nodes", "leases.coordination.k8s.io")
}


def controller_of(view: KubeObject) -> OwnerReference | None:
    return next((ref for ref in view.metadata.owner_references or () if ref.controller), None)


@dataclass(frozen=True, slots=True)
class Moved:
    """One change of the cache: `old` is None on add, `new` is None on delete."""

    resource: str
    old: KubeObject | None
    new: KubeObject | None

    @property
    def object(self) -> KubeObject:
        found = self.new or self.old
        assert found is not None
        return found


class Cache:
    def __init__(self) -> None:
        # resource -> key -> newest known state.
        self._objects: dict[str, dict[str, KubeObject]] = {}
        # owner UID -> (resource, key) of what names it in ownerReferences; insertion order, values unused.
        self._owned: dict[str, dict[tuple[str, str], None]] = {}
        # node name -> keys of the pods on it.
        self._on_node: dict[str, dict[str, None]] = {}
        # namespace -> keys of its pods that no controller owns.
        self._uncontrolled: dict[str, dict[str, None]] = {}
        # UID -> None of objects removed by our own delete, until the watch says so too.
        self._gone: dict[str, None] = {}
        # (resource, key) -> time at which an answer told of it and no watch has so far.
        self._unconfirmed: dict[tuple[str, str], float] = {}

    def get(self, resource: str, key: str) -> KubeObject | None:
        return self._objects.get(resource, {}).get(key)

    def all(self, resource: str) -> Iterable[KubeObject]:
        return self._objects.get(resource, {}).values()

    def count(self, resource: str) -> int:
        return len(self._objects.get(resource, ()))

    def in_namespace(self, resource: str, namespace: str) -> list[KubeObject]:
        return [view for view in self.all(resource) if view.metadata.namespace == namespace]

    def owned_by(self, uid: str, resource: str = "") -> list[tuple[str, KubeObject]]:
        """(resource, object) of all that name the UID as an owner."""
        found = []
        for owned, key in self._owned.get(uid, ()):
            view = self.get(owned, key)
            if view is not None and (not resource or owned == resource):
                found.append((owned, view))
        return found

    def pods_on(self, node: str) -> list[KubeObject]:
        pods = self._objects.get("pods", {})
        return [pods[key] for key in self._on_node.get(node, ())]

    def uncontrolled_pods(self, namespace: str) -> list[KubeObject]:
        pods = self._objects.get("pods", {})
        return [pods[key] for key in self._uncontrolled.get(namespace, ())]

    def told(self, resource: str, view: KubeObject) -> Moved | None:
        """The watch told a state. None when nothing is new in it."""
        self._unconfirmed.pop((resource, view.key), None)
        return self._upsert(resource, view)

    def told_deleted(self, resource: str, view: KubeObject) -> Moved | None:
        self._gone.pop(view.metadata.uid, None)
        return self._remove(resource, view.key, view.metadata.uid)

    def answered(self, resource: str, view: KubeObject, now: float) -> Moved | None:
        """The server answered a write of ours with this state."""
        moved = self._upsert(resource, view)
        if moved is not None:
            self._unconfirmed[resource, view.key] = now
        return moved

    def answered_deleted(self, resource: str, key: str, uid: str) -> Moved | None:
        moved = self._remove(resource, key, uid)
        if moved is not None:
            self._gone[uid] = None
        return moved

    def forget_unconfirmed(self, now: float) -> list[Moved]:
        late = [known for known, since in self._unconfirmed.items() if now - since > UNCONFIRMED_SECONDS]
        moved = [self._remove(resource, key, "") for resource, key in late]
        return [move for move in moved if move is not None]

    def _upsert(self, resource: str, view: KubeObject) -> Moved | None:
        if view.metadata.uid in self._gone:
            return None
        objects = self._objects.setdefault(resource, {})
        old = objects.get(view.key)
        if old is not None and not _is_newer(old, view):
            return None
        if old is not None:
            self._unindex(resource, old)
        objects[view.key] = view
        self._index(resource, view)
        return Moved(resource, old, view)

    def _remove(self, resource: str, key: str, uid: str) -> Moved | None:
        old = self.get(resource, key)
        if old is None or (uid and old.metadata.uid != uid):
            return None
        del self._objects[resource][key]
        self._unconfirmed.pop((resource, key), None)
        self._unindex(resource, old)
        return Moved(resource, old, None)

    def _index(self, resource: str, view: KubeObject) -> None:
        for reference in view.metadata.owner_references or ():
            self._owned.setdefault(reference.uid, {})[resource, view.key] = None
        if resource != "pods":
            return
        if node_of(view):
            self._on_node.setdefault(node_of(view), {})[view.key] = None
        if controller_of(view) is None:
            self._uncontrolled.setdefault(view.metadata.namespace, {})[view.key] = None

    def _unindex(self, resource: str, view: KubeObject) -> None:
        for reference in view.metadata.owner_references or ():
            _discard(self._owned, reference.uid, (resource, view.key))
        if resource == "pods":
            _discard(self._on_node, node_of(view), view.key)
            _discard(self._uncontrolled, view.metadata.namespace, view.key)


def node_of(pod: KubeObject) -> str:
    spec = getattr(pod, "spec", None)
    return getattr(spec, "node_name", "")


def _discard(index: dict[str, dict[Any, None]], name: str, entry: object) -> None:
    entries: dict[Any, None] = index.get(name, {})
    entries.pop(entry, None)
    if not entries:
        index.pop(name, None)


def _is_newer(old: KubeObject, new: KubeObject) -> bool:
    if old.metadata.uid != new.metadata.uid:
        return True
    known, fresh = old.metadata.resource_version, new.metadata.resource_version
    if known.isdecimal() and fresh.isdecimal():
        return int(fresh) > int(known)
    return known != fresh


def labels_of(view: KubeObject) -> Mapping[str, str]:
    return view.metadata.labels or {}
