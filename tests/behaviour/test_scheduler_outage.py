"""Bad days of the driver: the server is gone, answers rubbish in between, or expires everything."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from behaviour.world import PODS, World, in_world, kind, node, pod
from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, Transport
from pilotage.testing.faults import Gone


def test_an_api_server_gone_for_ten_seconds_and_back_loses_nothing() -> None:
    async def use(world: World) -> dict[str, str]:
        await world.add(node("n1", "2"), pod("a", "1"), pod("gone", "1"), pod("waits", "2"))
        await asyncio.sleep(5)
        world.faults.unreachable_for(10.0)
        # Meanwhile the world goes on, unseen: a delete, a new pod, a new node.
        await world.api.delete(PODS, "gone", "default", grace_seconds=0)
        await world.add(node("n2", "2"), pod("new", "1"))
        await asyncio.sleep(60)
        statistics = world.scheduler.statistics()
        assert statistics.engine.pods == 3
        assert {one.relists for one in statistics.informers.values()} == {0}, "resumed, not relisted"
        return await world.bound()

    assert in_world(use) == {"a": "n1", "new": "n1", "waits": "n2"}


def test_a_server_that_goes_away_under_a_burst_of_binds() -> None:
    """Every pod bound exactly once, no node over its room, whatever became of the requests under way."""

    async def use(world: World) -> dict[str, str]:
        await world.scheduler.ready.wait()
        pods = [pod(f"p{i}", "1") for i in range(30)]
        await world.add(*[node(f"n{i}", "5") for i in range(6)], *pods[:15])
        await asyncio.sleep(0.01)
        world.faults.unreachable_for(10.0)
        await world.add(*pods[15:])
        await asyncio.sleep(90)
        return await world.bound()

    bound = in_world(use)
    assert sorted(bound.values()) == sorted(f"n{i}" for i in range(6) for _ in range(5))


@pytest.mark.parametrize("form", list(Gone))
def test_f4_410_in_each_form(form: Gone) -> None:
    async def use(world: World) -> dict[str, str]:
        # Pages only appear above their size: 501 pods, of which most have nowhere to go.
        await world.add(node("n1"), *[pod(f"p{i:03}", "64", nodeName="far") for i in range(501)])
        await asyncio.wait_for(world.scheduler.ready.wait(), 60)
        world.faults.gone(form, path="/pods$", client="scheduler")
        world.faults.gone(Gone.STATUS, path="/pods$", client="scheduler")
        world.faults.drop_watches(path="/pods$")
        await world.api.delete(PODS, "p000", "default", grace_seconds=0)
        await world.add(pod("a"))
        await asyncio.sleep(60)
        assert world.scheduler.statistics().engine.pods == 501
        return {name: node for name, node in (await world.bound()).items() if node != "far"}

    assert in_world(use) == {"a": "n1"}


class Spoiling(Transport):
    """Adds one object that cannot be decoded to each list of a path."""

    def __init__(self, inner: Transport, path: str, item: dict[str, Any]) -> None:
        self._inner, self._path, self._item = inner, path, item

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        response = await self._inner.request(request, timeout=timeout)
        if request.method != "GET" or request.path != self._path or request.query.get("continue"):
            return response
        document = json.loads(response.body)
        document["items"].insert(0, self._item)
        return Response(200, json.dumps(document).encode(), response.headers)

    async def stream(self, request: Request) -> Stream:
        return await self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.slow
def test_one_undecodable_node_in_a_list_of_thousands() -> None:
    bad = {"metadata": {"name": "bad", "uid": "u", "resourceVersion": "1"}, "spec": {"taints": "none"}}

    async def use(world: World) -> dict[str, str]:
        await world.add(*[node(f"n{i}") for i in range(1000)], pod("a"))
        await asyncio.sleep(30)
        statistics = world.scheduler.statistics()
        assert statistics.informers["nodes"].undecodable == 1
        assert statistics.engine.nodes == 1001
        return await world.bound()

    bound = in_world(use, wrap=lambda door: Spoiling(door, "/api/v1/nodes", bad))
    assert bound["a"].startswith("n")


def test_groups_that_the_server_lacks_are_left_out() -> None:
    async def use(world: World) -> dict[str, str]:
        world.faults.answer(404, path="^/apis/(resource|storage).k8s.io")
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(10)
        watched = world.scheduler.statistics().informers
        assert "storageclasses.storage.k8s.io" not in watched
        assert "replicasets.apps" in watched
        return await world.bound()

    assert in_world(use) == {"a": "n1"}


def test_the_end_while_the_server_is_gone_takes_no_more_than_five_seconds() -> None:
    async def use(world: World) -> float:
        await world.add(node("n1"))
        await world.scheduler.ready.wait()
        held = world.faults.hold(path="/binding$")
        await world.add(pod("a"))
        await asyncio.sleep(1)
        assert held.waiting
        return await world.end()

    assert in_world(use) <= 5.0


def test_binds_under_way_at_the_end_are_still_sent() -> None:
    async def use(world: World) -> dict[str, str]:
        await world.add(node("n1"))
        await world.scheduler.ready.wait()
        world.faults.latency(before=1.0, path="/binding$")
        await world.add(*[pod(f"p{i}") for i in range(5)])
        await asyncio.sleep(0.5)
        await world.end()
        return await world.bound()

    assert set(in_world(use).values()) == {"n1"}


def test_events_are_sent_for_what_happened() -> None:
    async def use(world: World) -> list[str]:
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(5)
        events = (await world.api.list(kind("events.events.k8s.io"), "default"))["items"]
        return [event["note"] for event in events]

    assert in_world(use) == ["Successfully assigned default/a to n1"]
