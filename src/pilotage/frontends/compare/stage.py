"""A scenario on a live cluster: its objects put there as recorded, and taken away again without a trace.

Laws: only what a scenario names is created or removed. Nobody else works on the cluster: status is written
by hand, finalizers that no controller would take off are taken off, taints that admission adds are undone.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from pilotage.api.kinds import Kind, by_kind, by_resource
from pilotage.client.api import ApiClient, ApiError, Json, PatchType
from pilotage.frontends.replay.scenarios import Scenario
from pilotage.frontends.replay.world import as_created

_AT_ONCE = 8
_NOT_FOUND, _CONFLICT = 404, 409
_GONE_SECONDS, _POLL_SECONDS = 20.0, 0.02
# Created once and left there: without its controller a namespace never ends.
_KEPT = ("Namespace",)
T = TypeVar("T")


class StageError(RuntimeError):
    """The cluster is not one that scenarios can be played on. The text names what is in the way."""


class Stage:
    """Where one scenario after the other is played. All methods raise ApiError and TransportError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._made: list[tuple[Kind, str, str]] = []

    async def check(self) -> None:
        """Raises StageError unless the cluster is empty of what decisions depend on."""
        for resource in ("nodes", "persistentvolumes"):
            found = await self._client.list(_kind(resource), limit=1)
            if found["items"]:
                name = found["items"][0]["metadata"]["name"]
                raise StageError(f"the cluster is not empty: there is {resource} {name}")

    async def set_up(self, scenario: Scenario) -> None:
        """Kind by kind, in file order within a kind; the pending pod is left out."""
        for tree in as_created(scenario)[:-1]:
            await self._put(tree)

    async def create_pod(self, pod: Json, scheduler: str) -> Json:
        """The pending pod, for one scheduler to decide."""
        tree = copy.deepcopy(pod)
        tree["spec"]["schedulerName"] = scheduler
        kind = _kind("pods")
        self._made.append((kind, tree["metadata"].get("namespace", "default"), tree["metadata"]["name"]))
        return await self._client.create(kind, tree, self._made[-1][1])

    async def clear(self) -> None:
        """Removes everything that was put there, the newest first."""
        made, self._made = self._made[::-1], []
        pods = [one for one in made if one[0].resource == "pods"]
        await _each(pods, self._remove)
        await _each([one for one in made if one[0].resource != "pods"], self._remove)

    async def _put(self, tree: Json) -> None:
        kind = by_kind(tree["apiVersion"], tree["kind"])
        assert kind is not None, "as_created knows all kinds"
        meta = tree["metadata"]
        namespace = meta.get("namespace", "default") if kind.namespaced else ""
        try:
            made = await self._client.create(kind, tree, namespace)
        except ApiError as problem:
            if tree["kind"] in _KEPT and problem.status == _CONFLICT:
                return
            raise
        if tree["kind"] in _KEPT:
            await self._account(meta["name"])
            return
        self._made.append((kind, namespace, meta["name"]))
        await self._complete(kind, namespace, tree, made)

    async def _account(self, namespace: str) -> None:
        """Pods need the account that a controller would make."""
        account = {"metadata": {"name": "default", "namespace": namespace}}
        try:
            await self._client.create(_kind("serviceaccounts"), account, namespace)
        except ApiError as problem:
            if problem.status != _CONFLICT:
                raise

    async def _complete(self, kind: Kind, namespace: str, tree: Json, made: Json) -> None:
        """What a create does not take over: status, and taints as the scenario has them."""
        name = tree["metadata"]["name"]
        wanted = tree.get("spec", {}).get("taints")
        if tree["kind"] == "Node" and made["spec"].get("taints") != wanted:
            await self._client.patch(kind, name, {"spec": {"taints": wanted}})
        if tree.get("status") and any(part.name == "status" for part in kind.subresources):
            patch = {"status": tree["status"]}
            await self._client.patch(
                kind, name, patch, namespace, patch_type=PatchType.MERGE, subresource="status"
            )

    async def _remove(self, made: tuple[Kind, str, str]) -> None:
        kind, namespace, name = made
        deadline = asyncio.get_running_loop().time() + _GONE_SECONDS
        try:
            await self._client.delete(kind, name, namespace, grace_seconds=0)
            while asyncio.get_running_loop().time() < deadline:
                left = await self._client.get(kind, name, namespace)
                if left["metadata"].get("finalizers"):
                    await self._client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
                await asyncio.sleep(_POLL_SECONDS)
        except ApiError as problem:
            if problem.status != _NOT_FOUND:
                raise
            return
        raise StageError(f"{kind.resource} {namespace}/{name} does not go away".replace(" /", " "))


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(worker())
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None


def _kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found
