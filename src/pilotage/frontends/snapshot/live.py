"""A snapshot of a running cluster: one list of each kind that scheduling reads. Reads only."""

from __future__ import annotations

from typing import Final

from pilotage.api.decode import DecodeError, DecodeFailure, convert_object
from pilotage.api.kinds import Kind, by_resource
from pilotage.api.meta import KubeObject
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.frontends.snapshot.objects import Item, Snapshot, in_order, missing_namespaces
from pilotage.runtime.watched import REQUIRED, field_selector, watched_kinds

_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403


async def read_cluster(client: ApiClient) -> Snapshot:
    """Raises ApiError for pods and nodes; kinds that may not be listed are left out with a note."""
    items: list[Item] = []
    notes: list[str] = []
    for kind in watched_kinds():
        try:
            listed = await client.list(kind, field_selector=field_selector(kind))
        except ApiError as problem:
            if kind.resource in REQUIRED or problem.status not in (_NOT_FOUND, _FORBIDDEN):
                raise
            if problem.status == _FORBIDDEN:
                notes.append(f"{kind.resource} may not be listed and are left out")
            continue
        items += [(kind, _view(kind, tree)) for tree in listed["items"]]
    return Snapshot(tuple(in_order([*items, *missing_namespaces(items)])), notes=tuple(notes))


async def read_events(client: ApiClient, namespace: str, name: str) -> tuple[Json, ...]:
    """Events about one pod; none where they may not be listed."""
    kind = by_resource("events")
    assert kind is not None
    selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
    try:
        return tuple((await client.list(kind, namespace, field_selector=selector))["items"])
    except ApiError:
        return ()


def _view(kind: Kind, tree: Json) -> KubeObject | DecodeFailure:
    try:
        return convert_object(kind, tree)
    except DecodeError as problem:
        return problem.failure
