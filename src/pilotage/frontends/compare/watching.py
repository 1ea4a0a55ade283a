"""What a scheduler makes of one pod, seen from outside: pods of the namespace watched until all is quiet."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pilotage.api.kinds import Kind, by_resource
from pilotage.client.api import ApiClient, Json

_EVENT_TRIES, _EVENT_SECONDS = 40, 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """`condition`: reason and text of the first PodScheduled=False. `events`: texts of FailedScheduling."""

    node: str = ""
    condition: tuple[str, str] | None = None
    events: tuple[str, ...] = ()
    victims: frozenset[str] = frozenset()
    nominated: str = ""


@dataclass(slots=True)
class _Seen:
    name: str
    uid: str = ""
    node: str = ""
    condition: tuple[str, str] | None = None
    nominated: str = ""
    victims: set[str] = field(default_factory=set)

    def take(self, event: str, pod: Json) -> bool:
        """Whether it changed what is known."""
        before = (self.node, self.condition, self.nominated, len(self.victims))
        meta, status = pod["metadata"], pod.get("status", {})
        if meta["name"] != self.name:
            if event == "DELETED" or meta.get("deletionTimestamp"):
                self.victims.add(meta["name"])
        elif event != "DELETED":
            self.uid = meta["uid"]
            self.node = pod["spec"].get("nodeName", "")
            self.nominated = status.get("nominatedNodeName", "") or self.nominated
            self.condition = self.condition or _refusal(status)
        return before != (self.node, self.condition, self.nominated, len(self.victims))

    @property
    def is_settled(self) -> bool:
        return bool(self.node)

    @property
    def has_word(self) -> bool:
        return bool(self.node or self.condition or self.nominated)


class Watch:
    """`quiet`: seconds without news after which a pod that has a condition will not be bound."""

    def __init__(self, client: ApiClient, namespace: str, name: str, quiet: float, timeout: float) -> None:
        self._client = client
        self._namespace = namespace
        self._quiet = quiet
        self._timeout = timeout
        self._seen = _Seen(name)
        self._news = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        pods = _kind("pods")
        version = (await self._client.list(pods, self._namespace))["metadata"]["resourceVersion"]
        task = asyncio.create_task(self._follow(version))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, version: str) -> None:
        pods = _kind("pods")
        while True:
            async for event, pod in self._client.watch(pods, self._namespace, resource_version=version):
                version = pod["metadata"]["resourceVersion"]
                if self._seen.take(event, pod):
                    self._news.set()

    async def verdict(self) -> Verdict:
        """Waits for it. A pod of which nothing was heard within `timeout` has the empty verdict."""
        seen, clock = self._seen, asyncio.get_running_loop()
        deadline = clock.time() + self._timeout
        while not seen.is_settled and clock.time() < deadline:
            self._news.clear()
            wait = self._patience() if seen.has_word else deadline - clock.time()
            try:
                await asyncio.wait_for(self._news.wait(), wait)
            except TimeoutError:
                break
        events = await self._events() if seen.condition else ()
        return Verdict(seen.node, seen.condition, events, frozenset(seen.victims), seen.nominated)

    def _patience(self) -> float:
        """Who nominated a node goes on: the victims' end, or a volume, is waited for."""
        return self._quiet * (4 if self._seen.nominated else 1)

    async def _events(self) -> tuple[str, ...]:
        kind = _kind("events.events.k8s.io")
        for _ in range(_EVENT_TRIES):
            found = (await self._client.list(kind, self._namespace))["items"]
            texts = [event["note"] for event in found if self._is_ours(event)]
            if texts:
                return tuple(texts[:1])
            await asyncio.sleep(_EVENT_SECONDS)
        return ()

    def _is_ours(self, event: Json) -> bool:
        regarding = event.get("regarding") or {}
        return event.get("reason") == "FailedScheduling" and regarding.get("uid") == self._seen.uid


def _refusal(status: Json) -> tuple[str, str] | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return None


def _kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found
