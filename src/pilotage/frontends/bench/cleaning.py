"""Takes a run's objects away again: its pods, its nodes, its namespace.

Law: it goes on where something is refused, and says at the end what is left and how to remove it.
"""

from __future__ import annotations

import asyncio

from pilotage.client.api import ApiClient, ApiError, TransportError
from pilotage.frontends.bench.driving import kind
from pilotage.frontends.bench.objects import Place

_GONE_SECONDS, _POLL_SECONDS = 60.0, 0.2
_NOT_FOUND = 404


class LeftoversError(RuntimeError):
    """Something of the run is still there; the text is one line with the commands that remove it."""


async def remove(client: ApiClient, place: Place) -> None:
    """Raises LeftoversError. The namespace's own end may take the cluster a moment: it is awaited."""
    problems = [
        problem for problem in [await _nodes(client, place), await _namespace(client, place)] if problem
    ]
    if problems:
        raise LeftoversError(
            f"not all is removed ({'; '.join(problems)}): "
            f"kubectl delete namespace {place.namespace}; kubectl delete nodes -l {place.selector}"
        )


async def _nodes(client: ApiClient, place: Place) -> str:
    try:
        if place.has_own_nodes:
            await client.delete_collection(kind("nodes"), label_selector=place.selector)
    except (ApiError, TransportError) as problem:
        return f"nodes: {problem}"
    return ""


async def _namespace(client: ApiClient, place: Place) -> str:
    """Pods go first and at once: no kubelet may be there to confirm their end."""
    try:
        await client.delete_collection(
            kind("pods"), place.namespace, label_selector=place.selector, grace_seconds=0
        )
        await client.delete(kind("namespaces"), place.namespace)
        return await _until_gone(client, place)
    except ApiError as problem:
        return "" if problem.status == _NOT_FOUND else f"namespace: {problem}"
    except TransportError as problem:
        return f"namespace: {problem}"


async def _until_gone(client: ApiClient, place: Place) -> str:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + _GONE_SECONDS
    while clock.time() < deadline:
        await client.get(kind("namespaces"), place.namespace)
        await asyncio.sleep(_POLL_SECONDS)
    return f"namespace {place.namespace} is still there after {_GONE_SECONDS:.0f} s"
