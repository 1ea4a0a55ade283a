"""Which kinds a server has: asked once, so that nobody waits for ever for a list that will never come.

A group version that the server does not know (404) leaves its kinds out. Anything else that is no
answer is an error: a server that is only busy must not make a scheduler blind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotage.api.kinds import Kind
from pilotage.api.wire import Request
from pilotage.client.errors import ApiError, error_of_response
from pilotage.client.transport import Transport

_OK, _NOT_FOUND = 200, 404


@dataclass(frozen=True, slots=True)
class Discovered:
    """The asked kinds, in their order."""

    served: tuple[Kind, ...]
    missing: tuple[Kind, ...]


async def discover(transport: Transport, kinds: Iterable[Kind]) -> Discovered:
    """Raises ApiError and TransportError; both are worth another try."""
    wanted = tuple(kinds)
    versions = dict.fromkeys(kind.api_version for kind in wanted)
    listed = {version: await _resources(transport, version) for version in versions}
    served = tuple(kind for kind in wanted if kind.plural in listed[kind.api_version])
    return Discovered(served, tuple(kind for kind in wanted if kind not in served))


async def _resources(transport: Transport, api_version: str) -> frozenset[str]:
    """Plural names that can be listed and watched under a group version; empty when it is unknown."""
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    response = await transport.request(Request("GET", path))
    if response.status == _NOT_FOUND:
        return frozenset()
    if response.status != _OK:
        raise error_of_response(response)
    try:
        document: dict[str, Any] = msgspec.json.decode(response.body, type=dict[str, Any])
        return frozenset(item["name"] for item in document["resources"] if _can_watch(item))
    except (msgspec.MsgspecError, KeyError, TypeError) as problem:
        raise ApiError(response.status, "", f"{path}: no list of resources: {problem}") from None


def _can_watch(item: dict[str, Any]) -> bool:
    return {"list", "watch"} <= set(item.get("verbs") or ())
