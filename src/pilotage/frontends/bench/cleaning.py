"""Takes a run's objects away again: its pods, its namespace, its nodes.

Laws: it goes on where something is refused, and says at the end what is left and how to remove it; nodes go
last, when the last of the requests that an interruption left under way has long landed.
"""

from __future__ import annotations

import asyncio

from pilotage.client.api import ApiClient, ApiError, TransportError
from pilotage.frontends.bench.driving import kind
from pilotage.frontends.bench.objects import Place

_GONE_SECONDS, _POLL_SECONDS = 120.0, 0.2
_NOT_FOUND = 404


async def remove(client: ApiClient, place: Place) -> str:
    """What is left, as one line with the commands that remove it; "" when nothing is.

    The namespace's own end may take the cluster a while: it is awaited.
    """
    problems = [await _pods(client, place), await _namespace(client, place), await _nodes(client, place)]
    told = [problem for problem in problems if problem]
    if not told:
        return ""
    commands = f"kubectl delete namespace {place.namespace}; kubectl delete nodes -l {place.selector}"
    return f"not all is removed ({'; '.join(told)}): {commands}"


async def _nodes(client: ApiClient, place: Place) -> str:
    try:
        if place.has_own_nodes:
            await client.delete_collection(kind("nodes"), label_selector=place.selector)
    except (ApiError, TransportError) as problem:
        return f"nodes: {problem}"
    return ""


async def _pods(client: ApiClient, place: Place) -> str:
    """At once: no kubelet may be there to confirm their end. What stays goes with the namespace."""
    try:
        await client.delete_collection(
            kind("pods"), place.namespace, label_selector=place.selector, grace_seconds=0
        )
    except (ApiError, TransportError) as problem:
        return f"pods: {problem}"
    return ""


async def _namespace(client: ApiClient, place: Place) -> str:
    try:
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
