"""The newest version of each object that calls write, from informers and from our own writes.

Laws: an object that a write returned is newer than what informers bring until they catch up; what is
older is ignored. A deleted object is forgotten, and nothing that returns late brings it back.
"""

from __future__ import annotations

from collections.abc import Container

from pilotage.api.meta import KubeObject
from pilotage.calls.slots import is_newer

WRITTEN = frozenset({"pods", "persistentvolumes", "persistentvolumeclaims"})
"""Kinds whose objects calls change and decisions read."""


class NewestObjects:
    def __init__(self, resources: Container[str] = WRITTEN) -> None:
        self._resources = resources
        # UID -> newest version seen, without pending changes, for objects not deleted.
        self._known: dict[str, KubeObject] = {}
        # UIDs whose newest version came from a write and not yet from an informer.
        self._ahead: set[str] = set()

    def get(self, uid: str) -> KubeObject | None:
        return self._known.get(uid)

    def seen(self, resource: str, found: KubeObject) -> bool:
        """An informer brought `found`; False if a newer version is known from a write."""
        if resource not in self._resources:
            return True
        uid = found.metadata.uid
        if uid in self._ahead:
            if is_newer(self._known[uid], found):
                return False
            self._ahead.discard(uid)
        self._known[uid] = found
        return True

    def written(self, resource: str, returned: KubeObject) -> bool:
        """A write returned `returned`; False if the object is gone or known in a newer version."""
        if resource not in self._resources:
            return False
        uid = returned.metadata.uid
        known = self._known.get(uid)
        if known is None or not is_newer(returned, known):
            return False
        self._known[uid] = returned
        self._ahead.add(uid)
        return True

    def gone(self, uid: str) -> None:
        self._known.pop(uid, None)
        self._ahead.discard(uid)
