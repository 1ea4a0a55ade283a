"""A server, a client of it and a scheduler in one virtual loop, for the tests of the driver itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pilotage.api.kinds import Kind, by_resource
from pilotage.client.api import ApiClient
from pilotage.client.transport import Transport
from pilotage.framework.registry import Registry
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.runtime.config import default_settings, load_settings
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.scheduler import Scheduler
from pilotage.scheduling.messages import Attempt, Effect, Event
from pilotage.testing import virtualtime
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport

T = TypeVar("T")


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


PODS, NODES = kind("pods"), kind("nodes")


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable, "capacity": allocatable}}


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


class Watching:
    """An observer that keeps what it sees."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.events = 0

    def effect(self, effect: Effect, now: float) -> None:
        del now
        if isinstance(effect, Attempt):
            self.attempts.append(effect)

    def handled(self, event: Event, seconds: float) -> None:
        del event, seconds
        self.events += 1

    def decided(self, seconds: float) -> None:
        pass


class World:
    """A server, a client of it and a scheduler, in one virtual loop."""

    def __init__(
        self,
        config: dict[str, Any] | None = None,
        registry: Registry | None = None,
        wrap: Callable[[Transport], Transport] | None = None,
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        self.clock = virtualtime.VirtualClock(asyncio.get_running_loop())
        self.server = ApiServer(make_store(), Ids(b"seed"), self.clock.time())
        self.transport = InProcessTransport(self.server, self.clock)
        self.api = ApiClient(self.transport)
        self.seen = Watching()
        registry = registry or build_registry()
        settings = load_settings(config, registry, gates) if config else default_settings(registry, gates)
        self.faults = Faults()
        door: Transport = FaultyTransport(
            InProcessTransport.over(self.transport.host), self.faults, "scheduler"
        )
        self.scheduler = Scheduler(
            door if wrap is None else wrap(door),
            settings,
            registry,
            clock=self.clock,
            observers=[self.seen],
        )
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.scheduler.run(self.stop))

    async def add(self, *objects: dict[str, Any]) -> None:
        for item in objects:
            await self.api.create(NODES if "allocatable" in item.get("status", {}) else PODS, item)

    async def bound(self) -> dict[str, str]:
        """Pod name -> node name, "" while it waits."""
        items = (await self.api.list(PODS))["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    async def end(self) -> float:
        """Stops the scheduler; how long that took."""
        begin = asyncio.get_running_loop().time()
        self.stop.set()
        await self.task
        self.scheduler.core.check_invariants()
        self.scheduler.engine.check_invariants()
        assert self.scheduler.calls.is_idle
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"still running: {left}"
        return asyncio.get_running_loop().time() - begin


def in_world(use: Callable[[World], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        world = World(**options)
        result = await use(world)
        if not world.task.done():
            assert await world.end() <= 5.0
        return result

    return virtualtime.run(main())
