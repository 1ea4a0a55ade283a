"""Faults over a fake transport: what a client sees, what the server saw, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import msgspec
import pytest

from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, TransportError
from pilotage.testing import virtualtime
from pilotage.testing.faults import Faults, Gone
from pilotage.testing.faultytransport import FaultyTransport
from pilotage.testing.requestlog import verb_of
from pilotage.testing.streams import End

PODS = "/api/v1/namespaces/default/pods"
BIND = Request("POST", f"{PODS}/a/binding", body=b"{}")
WATCH = Request("GET", "/api/v1/pods", {"watch": "true", "resourceVersion": "7"})


class FakeStream:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, period: float) -> None:
        self.period = period
        self.is_closed = False

    async def lines(self) -> AsyncIterator[bytes]:
        for number in range(1, 1000):
            await asyncio.sleep(self.period)
            yield b"%d" % number

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        self.is_closed = True


class FakeServer:
    """Counts what reached it; its watches give one line a second."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.streams: list[FakeStream] = []

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        del timeout
        self.seen.append(request)
        return Response(201, b"{}")

    async def stream(self, request: Request) -> Stream:
        del request
        self.streams.append(FakeStream(1.0))
        return self.streams[-1]

    async def close(self) -> None:
        pass


class Case:
    def __init__(self) -> None:
        self.server = FakeServer()
        self.faults = Faults()
        self.client = FaultyTransport(self.server, self.faults, "scheduler")


def case(test: Callable[[Case], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        await test(Case())

    def run() -> None:
        virtualtime.run(main(), max_seconds=1000)

    run.__name__ = test.__name__
    return run


def now() -> float:
    return asyncio.get_running_loop().time()


@case
async def test_without_rules_everything_passes_and_is_logged(c: Case) -> None:
    assert (await c.client.request(BIND)).status == 201
    [record] = c.faults.log.select(client="scheduler", verb="create", path="/binding$")
    assert (record.status, record.time, record.faults) == (201, 0.0, [])


@case
async def test_answer_skips_and_counts(c: Case) -> None:
    rule = c.faults.answer(503, path="/binding$", skip=1, times=2)
    assert [(await c.client.request(BIND)).status for _ in range(5)] == [201, 503, 503, 201, 201]
    assert rule.hits == 2
    assert len(c.server.seen) == 3


@case
async def test_429_carries_retry_after_in_header_and_status(c: Case) -> None:
    c.faults.too_many_requests(retry_after=3, method="POST")
    response = await c.client.request(BIND)
    status = msgspec.json.decode(response.body)
    assert response.headers["retry-after"] == "3"
    assert (status["reason"], status["details"]) == ("TooManyRequests", {"retryAfterSeconds": 3})


@case
async def test_latency_composes_with_an_answer(c: Case) -> None:
    c.faults.latency(before=2)
    c.faults.answer(500)
    assert (await c.client.request(BIND)).status == 500
    assert now() == 2
    assert c.faults.log.records[0].faults == ["Latency", "Answer"]


@case
async def test_latency_past_the_clients_timeout_leaves_the_effect_unknown(c: Case) -> None:
    c.faults.latency(after=60)
    with pytest.raises(TransportError) as caught:
        await c.client.request(BIND, timeout=10)
    assert caught.value.sent
    assert (now(), len(c.server.seen)) == (10, 1)


@case
async def test_hold_keeps_calls_in_order_until_released(c: Case) -> None:
    hold = c.faults.hold(path="/binding$")
    tasks = [asyncio.create_task(c.client.request(BIND)) for _ in range(3)]
    await asyncio.sleep(5)
    assert (len(hold.waiting), len(c.server.seen)) == (3, 0)
    hold.release(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert tasks[0].done()
    assert len(c.server.seen) == 1
    hold.release()
    await asyncio.gather(*tasks)
    assert (await c.client.request(BIND)).status == 201
    assert hold.waiting == []


@case
async def test_a_held_call_may_land_after_its_client_gave_up(c: Case) -> None:
    hold = c.faults.hold(path="/binding$", lands_anyway=True)
    with pytest.raises(TransportError):
        await c.client.request(BIND, timeout=1)
    assert c.server.seen == []
    hold.release()
    await asyncio.sleep(1)
    assert len(c.server.seen) == 1


@case
async def test_hold_after_the_write(c: Case) -> None:
    hold = c.faults.hold(after_write=True)
    task = asyncio.create_task(c.client.request(BIND))
    await asyncio.sleep(1)
    assert (len(c.server.seen), task.done()) == (1, False)
    hold.release()
    assert (await task).status == 201


@pytest.mark.parametrize(("after_write", "seen"), [(True, 1), (False, 0)])
def test_lost_answers(after_write: bool, seen: int) -> None:
    @case
    async def run(c: Case) -> None:
        c.faults.lose_answer(after_write=after_write, times=1)
        with pytest.raises(TransportError) as caught:
            await c.client.request(BIND)
        assert caught.value.sent
        assert len(c.server.seen) == seen
        assert (await c.client.request(BIND)).status == 201

    run()


@case
async def test_unreachable_for_a_while_refuses_and_breaks_watches(c: Case) -> None:
    stream = await c.client.stream(WATCH)
    lines = stream.lines()
    assert await anext(lines) == b"1"
    c.faults.unreachable_for(10)
    with pytest.raises(TransportError):
        await anext(lines)
    with pytest.raises(TransportError) as caught:
        await c.client.request(BIND)
    assert not caught.value.sent
    await asyncio.sleep(10)
    assert (await c.client.request(BIND)).status == 201
    assert c.server.streams[0].is_closed


@case
async def test_dropped_watch_politely(c: Case) -> None:
    stream = await c.client.stream(WATCH)
    lines = stream.lines()
    assert await anext(lines) == b"1"
    assert c.faults.drop_watches(path="/pods$", end=End.CLOSED) == 1
    assert [line async for line in lines] == []
    assert c.faults.drop_watches() == 0


@case
async def test_watch_cut_after_some_events(c: Case) -> None:
    c.faults.cut_watch_after(2)
    lines = (await c.client.stream(WATCH)).lines()
    assert [await anext(lines), await anext(lines)] == [b"1", b"2"]
    with pytest.raises(TransportError):
        await anext(lines)


@case
async def test_stale_watch_keeps_order_when_the_delay_ends(c: Case) -> None:
    stream = await c.client.stream(WATCH)
    lines = stream.lines()
    assert await anext(lines) == b"1"
    rule = c.faults.delay_watches(5, path="/pods$")
    assert await anext(lines) == b"2"
    assert now() == 7
    rule.remove()
    c.faults.clear()
    assert [await anext(lines), await anext(lines)] == [b"3", b"4"]


@case
async def test_late_lines_keep_their_order_when_due_at_once(c: Case) -> None:
    c.faults.delay_watches(5)
    stream = await c.client.stream(WATCH)
    lines = stream.lines()
    first = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(3.5)
    c.faults.clear()  # lines 1 to 3 are on their way, later ones may not overtake them
    await asyncio.sleep(20)
    assert await first == b"1"
    assert [await anext(lines) for _ in range(9)] == [b"%d" % number for number in range(2, 11)]


@case
async def test_held_watch(c: Case) -> None:
    stream = await c.client.stream(WATCH)
    lines = stream.lines()
    assert await anext(lines) == b"1"
    held = c.faults.hold_watches(path="/pods$")
    nxt = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(10)
    assert not nxt.done()
    held.release()
    assert await nxt == b"2"
    assert await anext(lines) == b"3"


@case
async def test_gone_in_three_forms(c: Case) -> None:
    for form in Gone:
        c.faults.gone(form)
    refused = await c.client.stream(WATCH)
    assert refused.status == 410
    assert msgspec.json.decode(await refused.read())["reason"] == "Expired"
    inside = await c.client.stream(WATCH)
    assert inside.status == 200
    [line] = [line async for line in inside.lines()]
    event = msgspec.json.decode(line)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    first = Request("GET", "/api/v1/pods", {"limit": "500"})
    assert (await c.client.request(first)).status == 201
    second = Request("GET", "/api/v1/pods", {"limit": "500", "continue": "token"})
    assert (await c.client.request(second)).status == 410
    assert (await c.client.request(second)).status == 201


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        ("GET", "/api/v1/pods", {}, "list"),
        ("GET", "/api/v1/pods", {"watch": "1"}, "watch"),
        ("GET", f"{PODS}/a", {}, "get"),
        ("GET", "/api/v1/namespaces", {}, "list"),
        ("GET", "/api/v1/namespaces/x", {}, "get"),
        ("GET", "/api/v1/nodes/x", {}, "get"),
        ("POST", PODS, {}, "create"),
        ("POST", f"{PODS}/a/eviction", {}, "create"),
        ("PUT", "/apis/apps/v1/namespaces/x/deployments/y", {}, "update"),
        ("PATCH", f"{PODS}/a/status", {}, "patch"),
        ("DELETE", f"{PODS}/a", {}, "delete"),
        ("DELETE", "/apis/apps/v1/namespaces/x/deployments", {}, "deletecollection"),
    ],
)
def test_verbs(method: str, path: str, query: dict[str, str], verb: str) -> None:
    assert verb_of(Request(method, path, query)) == verb


def test_a_misspelt_selection_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be selected by retry_after"):
        Faults(lambda: 0.0).answer(429, retry_after=1)  # type: ignore[call-arg]
