"""Faults over real HTTP: our own client through the proxy, before the embedded server in process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import yaml

from pilotage.api.kinds import by_resource
from pilotage.client.api import ApiClient
from pilotage.client.credentials import load
from pilotage.client.errors import ApiError
from pilotage.client.http import HttpTransport
from pilotage.client.transport import TransportError
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.runtime.clock import RealClock
from pilotage.testing.builders import node
from pilotage.testing.faults import Gone
from pilotage.testing.proxy import FaultProxy

pytestmark = pytest.mark.network
NODES = by_resource("nodes")
assert NODES is not None


def over_http(test: Callable[[FaultProxy, ApiClient], Awaitable[None]]) -> Callable[[object], None]:
    async def main(folder: object) -> None:
        clock = RealClock()
        server = ApiServer(make_store(), Ids(b"proxy"), clock.time())
        async with FaultProxy(InProcessTransport(server, clock)) as proxy:
            path = f"{folder}/kubeconfig"
            with open(path, "w") as file:
                yaml.safe_dump(proxy.kubeconfig(), file)
            transport = HttpTransport(load(path))
            try:
                await asyncio.wait_for(test(proxy, ApiClient(transport)), 20)
            finally:
                await transport.close()

    def run(tmp_path: object) -> None:
        asyncio.run(main(tmp_path))

    run.__name__ = test.__name__
    return run


@over_http
async def test_requests_and_bodies_pass_both_ways(proxy: FaultProxy, api: ApiClient) -> None:
    for number in range(3):
        await api.create(NODES, node(f"n{number}"))
    found = await api.list(NODES, label_selector="kubernetes.io/hostname in (n0, n2)", limit=1)
    assert [item["metadata"]["name"] for item in found["items"]] == ["n0", "n2"]
    with pytest.raises(ApiError, match="not found"):
        await api.get(NODES, "nobody")
    assert len(proxy.faults.log.select(verb="list", status=200)) >= 2


@over_http
async def test_429_503_and_lost_answers(proxy: FaultProxy, api: ApiClient) -> None:
    proxy.faults.too_many_requests(7, method="POST", times=1)
    with pytest.raises(ApiError) as caught:
        await api.create(NODES, node("n1"))
    assert (caught.value.status, caught.value.retry_after) == (429, 7)
    proxy.faults.answer(503, method="POST", times=1)
    with pytest.raises(ApiError, match="503"):
        await api.create(NODES, node("n1"))
    proxy.faults.lose_answer(method="POST", times=1)
    with pytest.raises(TransportError) as lost:
        await api.create(NODES, node("n1"))
    assert lost.value.sent
    assert (await api.get(NODES, "n1"))["metadata"]["name"] == "n1"


@over_http
async def test_watches_flow_break_and_are_too_old(proxy: FaultProxy, api: ApiClient) -> None:
    version = (await api.list(NODES))["metadata"]["resourceVersion"]
    watch = api.watch(NODES, resource_version=version)
    first = asyncio.ensure_future(anext(watch))
    await api.create(NODES, node("n1"))
    kind, seen = await first
    assert (kind, seen["metadata"]["name"]) == ("ADDED", "n1")
    second = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert proxy.faults.drop_watches() == 1
    with pytest.raises(TransportError):
        await second
    for form in (Gone.STATUS, Gone.EVENT):
        proxy.faults.gone(form)
        with pytest.raises(ApiError) as caught:
            await anext(api.watch(NODES, resource_version=version))
        assert caught.value.is_expired


@over_http
async def test_a_server_that_goes_away_and_comes_back(proxy: FaultProxy, api: ApiClient) -> None:
    await api.create(NODES, node("n1"))
    await proxy.go_away()
    with pytest.raises(TransportError):
        await api.get(NODES, "n1")  # on the connection that broke
    with pytest.raises(TransportError) as caught:
        await api.get(NODES, "n1")
    assert not caught.value.sent
    await proxy.come_back()
    assert (await api.get(NODES, "n1"))["metadata"]["name"] == "n1"
