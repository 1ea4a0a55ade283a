"""The in-process transport and the host under it: watches wake, end and are dropped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pilotage.api.wire import Request
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store

MAPS = "/api/v1/namespaces/default/configmaps"


class HandClock:
    now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


def make() -> InProcessTransport:
    clock = HandClock()
    return InProcessTransport(ApiServer(make_store(), Ids(b"x"), clock.time()), clock)


def create(name: str) -> Request:
    return Request("POST", MAPS, body=json.dumps({"metadata": {"name": name}}).encode())


async def first_line(stream: Any) -> Any:
    async for line in stream.lines():
        return json.loads(line)
    return None


def test_requests_are_answered() -> None:
    async def session() -> None:
        transport = make()
        assert (await transport.request(create("a"))).status == 201
        assert (await transport.request(create("a"))).status == 409
        await transport.close()

    asyncio.run(session())


def test_a_waiting_watch_is_woken_by_another_client() -> None:
    async def session() -> None:
        transport = make()
        other = InProcessTransport.over(transport.host)
        stream = await transport.stream(Request("GET", MAPS, {"watch": "1"}))
        assert stream.status == 200
        reading = asyncio.create_task(first_line(stream))
        await asyncio.sleep(0)
        await other.request(create("a"))
        event = await asyncio.wait_for(reading, 5)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        await stream.close()
        assert transport.host.server.watches() == []

    asyncio.run(session())


@pytest.mark.parametrize("resource", [None, "configmaps"])
def test_dropped_watches_end_without_a_word(resource: str | None) -> None:
    async def session() -> None:
        transport = make()
        stream = await transport.stream(Request("GET", MAPS, {"watch": "1"}))
        reading = asyncio.create_task(first_line(stream))
        await asyncio.sleep(0)
        transport.host.drop_watches("pods")
        await asyncio.sleep(0)
        assert not reading.done()
        transport.host.drop_watches(resource)
        assert await asyncio.wait_for(reading, 5) is None
        assert transport.host.server.watches() == []

    asyncio.run(session())


def test_closing_while_somebody_reads_ends_the_reader() -> None:
    async def session() -> None:
        transport = make()
        stream = await transport.stream(Request("GET", MAPS, {"watch": "1"}))
        reading = asyncio.create_task(first_line(stream))
        await asyncio.sleep(0)
        await stream.close()
        assert await asyncio.wait_for(reading, 5) is None

    asyncio.run(session())


def test_a_watch_that_is_over_ends() -> None:
    async def session() -> None:
        transport = make()
        stream = await transport.stream(Request("GET", MAPS, {"watch": "1", "timeoutSeconds": "1"}))
        transport.host.clock.now += 1  # type: ignore[attr-defined]
        assert await stream.read() == b""

    asyncio.run(session())


def test_a_refused_watch_is_a_plain_answer() -> None:
    async def session() -> None:
        transport = make()
        stream = await transport.stream(Request("GET", MAPS, {"watch": "1", "resourceVersion": "x"}))
        assert stream.status == 400
        assert json.loads(await stream.read())["kind"] == "Status"
        assert (await first_line(stream))["code"] == 400
        await stream.close()

    asyncio.run(session())
