"""What a reconcile answers with: writes as values, and when to look again.

Law: the writes of one plan do not depend on each other and may run at once; what needs order comes from
the next reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pilotage.api.meta import KubeObject
from pilotage.client.api import ApiClient, PatchType
from pilotage.localcluster.objects import Cache, Moved, kind_of


class RetryLater(Exception):  # noqa: N818  # not an error: the world is not ready for this write
    """The write has to be tried again a little later."""


class Write(Protocol):
    """`apply` carries it out and answers with the object as the server left it, or None where it is gone.

    `resource` is "" where the answer is not to be kept.
    """

    @property
    def resource(self) -> str: ...

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Create:
    resource: str
    namespace: str
    body: Mapping[str, Any]

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        return await client.create(kind_of(self.resource), self.body, self.namespace)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch unless `strategic`. `uid` guards against a namesake."""

    resource: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
    uid: str = ""
    strategic: bool = False

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        body = dict(self.body)
        if self.uid:
            body["metadata"] = {**body.get("metadata", {}), "uid": self.uid}
        return await client.patch(
            kind_of(self.resource),
            self.name,
            body,
            self.namespace,
            subresource=self.subresource,
            patch_type=PatchType.STRATEGIC if self.strategic else PatchType.MERGE,
        )


@dataclass(frozen=True, slots=True)
class Delete:
    resource: str
    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None
    propagation: str = "Background"

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        answer = await client.delete(
            kind_of(self.resource),
            self.name,
            self.namespace,
            grace_seconds=self.grace_seconds,
            propagation=self.propagation,
            uid=self.uid,
        )
        return answer if _still_exists(answer) else None


def _still_exists(answer: Mapping[str, Any]) -> bool:
    """A terminating object waits for its grace period or its finalizers; anything else is gone."""
    metadata = answer.get("metadata") or {}
    if answer.get("kind") == "Status" or not metadata.get("deletionTimestamp"):
        return False
    return bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))


@dataclass(frozen=True, slots=True)
class Plan:
    """`requeue_after`: seconds until the key is to be looked at again, None when only news matter."""

    writes: tuple[Write, ...] = ()
    requeue_after: float | None = None


NOTHING = Plan()


def plan(writes: Iterable[Write | None], requeue_after: float | None = None) -> Plan:
    return Plan(tuple(write for write in writes if write is not None), requeue_after)


class Controller(Protocol):
    """One concern. Both methods are free of IO."""

    name: ClassVar[str]
    settle: ClassVar[float]  # seconds for which news of one key are gathered

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        """Keys that a change concerns."""

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        """What has to be written so that the cluster is as the object at `key` wants it."""


def status_patch(
    resource: str, view: KubeObject, current: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Patch | None:
    """A patch of /status where a wanted field differs; zero counts as absent."""
    changed = {name: value for name, value in wanted.items() if (current.get(name) or 0) != (value or 0)}
    if not changed:
        return None
    meta = view.metadata
    return Patch(resource, meta.namespace, meta.name, {"status": changed}, "status")


def owner_reference(api_version: str, kind: str, view: KubeObject) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": view.metadata.name,
        "uid": view.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
