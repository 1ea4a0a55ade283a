"""Empties a namespace that is being deleted, then lets it go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pilotage.api.kinds import KINDS, Kind
from pilotage.client.api import ApiClient
from pilotage.client.errors import ApiError
from pilotage.localcluster.controllers.plan import NOTHING, Plan, RetryLater, plan
from pilotage.localcluster.objects import Cache, Moved, kind_of

RESOURCE = "namespaces"
_NOT_FOUND, _NOT_ALLOWED = 404, 405


@dataclass(frozen=True, slots=True)
class Empty:
    """Deletes all that a namespace holds, and the namespace once nothing is left."""

    name: str
    resource: str = ""  # nothing to keep of the answer

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        left = 0
        for kind in _contents():
            left += await _purge(client, kind, self.name)
        if left:
            raise RetryLater
        namespace = await client.get(kind_of(RESOURCE), self.name)
        namespace["spec"] = {"finalizers": []}
        await client.update(kind_of(RESOURCE), namespace, subresource="finalize")
        return None


def _contents() -> list[Kind]:
    return [kind for kind in KINDS if kind.namespaced and kind.is_stored and not kind.storage]


async def _purge(client: ApiClient, kind: Kind, namespace: str) -> int:
    """How many objects are still there after a delete of all of them (0 or 1: one is enough to know)."""
    try:
        found = await client.list(kind, namespace, limit=0)
        if not found["items"]:
            return 0
        await client.delete_collection(kind, namespace)
        return len((await client.list(kind, namespace, limit=0))["items"])
    except ApiError as error:
        if error.status in (_NOT_FOUND, _NOT_ALLOWED):
            return 0
        raise


class Namespaces:
    name: ClassVar[str] = "namespace-controller"
    settle: ClassVar[float] = 0.0

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        if moved.resource != RESOURCE or moved.new is None or not moved.new.metadata.deletion_timestamp:
            return ()
        return (moved.new.key,)

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del now
        namespace = cache.get(RESOURCE, key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return NOTHING
        return plan([Empty(key)])
