"""The dispatcher under virtual time: bounds, rates, shares for binds, errors, closing (A1, A8, A12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from callkit import EPOCH, bind, event, ok, patch, pod
from pilotage.api.wire import Request, Response
from pilotage.calls.defaults import default_call_types
from pilotage.calls.queue import CallQueue
from pilotage.client.transport import Stream, TransportError
from pilotage.framework.calls import Call, CallResult
from pilotage.runtime.core import Core
from pilotage.runtime.dispatcher import Dispatcher
from pilotage.scheduling.messages import CallFinished, Effect, Event, Submit, Upserted
from pilotage.testing.virtualtime import run

Behaviour = Callable[[Request], Coroutine[Any, Any, Response]]


class Engine:
    def __init__(self) -> None:
        self.planned: list[Effect] = []
        self.results: dict[int, CallResult] = {}

    def handle(self, event: Event, now: float) -> Sequence[Effect]:
        if isinstance(event, CallFinished):
            assert event.ticket not in self.results
            self.results[event.ticket] = event.outcome.result
        return ()

    def schedule(self, now: float, limit: int) -> Sequence[Effect]:
        planned, self.planned = self.planned, []
        return planned

    def next_wakeup(self) -> float | None:
        return None


class FakeTransport:
    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.sent: list[tuple[float, str]] = []
        self.now_out = self.most_out = 0

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        self.sent.append((asyncio.get_running_loop().time(), request.path.split("/")[6]))
        self.now_out += 1
        self.most_out = max(self.most_out, self.now_out)
        try:
            return await self.behaviour(request)
        finally:
            self.now_out -= 1

    async def stream(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Bench:
    """Must be made inside a running loop."""

    def __init__(self, behaviour: Behaviour, **limits: Any) -> None:
        self.engine = Engine()
        self.core = Core(self.engine, CallQueue(default_call_types("host")))
        self.transport = FakeTransport(behaviour)
        self.dispatcher = Dispatcher(
            self.core, self.transport, time=self.time, on_effects=lambda effects: None, **limits
        )
        self.tickets = 0

    def time(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()

    def submit(self, *calls: Call) -> None:
        for call in calls:
            self.core.handle(Upserted("pods", pod(call.key.name)), self.time())
            self.tickets += 1
            self.engine.planned.append(Submit(0, self.tickets, call, True))
        self.core.schedule(self.time(), 1)
        self.dispatcher.wake()

    async def quiet(self) -> None:
        while not self.core.calls.is_idle:
            await asyncio.sleep(0.05)
        self.core.check_invariants()

    def moment(self, name: str) -> float:
        return next(at for at, sent in self.transport.sent if sent == name)


async def at_once(_request: Request) -> Response:
    return ok()


def slow(seconds: float) -> Behaviour:
    async def behaviour(_request: Request) -> Response:
        await asyncio.sleep(seconds)
        return ok()

    return behaviour


def test_calls_are_carried_out() -> None:
    async def main() -> None:
        bench = Bench(at_once)
        bench.submit(bind("a"), patch(name="b"))
        await bench.quiet()
        assert bench.engine.results == {1: CallResult.DONE, 2: CallResult.DONE}

    run(main())


def test_a1_bind_leaves_within_2_s_past_200_patches_at_5_qps() -> None:
    async def main() -> None:
        bench = Bench(at_once, qps=5, burst=5)
        bench.submit(*(patch(name=f"p{n}") for n in range(200)))
        await asyncio.sleep(10)
        ready = asyncio.get_running_loop().time()
        bench.submit(bind("good"))
        await bench.quiet()
        assert bench.moment("good") - ready < 0.25
        assert bench.transport.sent[-1][0] <= 60
        assert set(bench.engine.results.values()) == {CallResult.DONE}

    run(main())


def test_rate_is_kept() -> None:
    async def main() -> None:
        bench = Bench(at_once, qps=10, burst=4)
        bench.submit(*(bind(f"b{n}") for n in range(44)))
        await bench.quiet()
        times = [at for at, _ in bench.transport.sent]
        assert times[3] == 0.0
        assert times[4] > 0.0
        assert times[-1] == pytest.approx(4.0, abs=0.1)

    run(main())


def test_g5_events_take_nothing_of_the_binds_rate_and_all_lanes_keep_to_one() -> None:
    async def main() -> None:
        bench = Bench(at_once, qps=10, burst=1)
        bench.submit(*(event(f"e{n}") for n in range(50)), *(bind(f"b{n}") for n in range(50)))
        await bench.quiet()
        assert bench.moment("b49") == pytest.approx(4.9, abs=0.1)
        assert bench.transport.sent[-1][0] == pytest.approx(9.9, abs=0.1)

    run(main())


def test_a12_a_stream_of_binds_slows_status_writes_and_never_stops_them() -> None:
    async def main() -> None:
        bench = Bench(at_once, qps=10, burst=10)
        bench.submit(*(bind(f"b{n}") for n in range(90)), *(patch(name=f"p{n}") for n in range(5)))
        await bench.quiet()
        assert bench.moment("p0") < 2
        assert bench.moment("p4") < bench.moment("b89")

    run(main())


def test_a12_refusals_leave_the_rate_to_the_binds() -> None:
    """Half of all requests are refused: events shrink most, status writes less, binds not at all."""
    count = 0
    sent: dict[str, int] = {}

    async def busy(request: Request) -> Response:
        nonlocal count
        count += 1
        lane = "event" if "events" in request.path else request.path.rpartition("/")[2]
        sent[lane] = sent.get(lane, 0) + 1
        return ok() if count % 2 else Response(429, b"{}", {"retry-after": "1"})

    async def main() -> None:
        bench = Bench(busy, qps=100, burst=10)
        bench.submit(*(patch(name=f"p{n}") for n in range(3000)), *(event(f"e{n}") for n in range(3000)))
        await asyncio.sleep(10)
        sent.clear()
        started = asyncio.get_running_loop().time()
        for n in range(20):
            bench.submit(bind(f"b{n}"))
            await asyncio.sleep(0.5)
        first_tries = [bench.moment(f"b{n}") - started - n / 2 for n in range(20)]
        assert max(first_tries) < 0.05
        assert 10 * 100 * 0.2 < sent["status"] < 10 * 100 * 0.6
        assert 0 < sent["event"] < sent["status"]
        shares = bench.dispatcher.describe()["shares"]
        assert shares["event"] < shares["status"] < shares["nomination"] <= shares["bind"] == 1
        await bench.dispatcher.close(5)
        assert all(bench.engine.results[6000 + n] is CallResult.DONE for n in range(1, 20))

    run(main())


def test_workers_are_bounded_and_a_share_stays_for_binds() -> None:
    async def main() -> None:
        bench = Bench(slow(10), qps=0, workers=6)
        bench.submit(*(patch(name=f"p{n}") for n in range(20)))
        await asyncio.sleep(1)
        assert bench.dispatcher.in_flight == 5
        bench.submit(bind("a"), bind("b"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert bench.dispatcher.in_flight == 6
        await bench.quiet()
        assert bench.moment("a") == 1.0
        assert bench.transport.most_out == 6

    run(main())


def test_lost_answers_refusals_and_bugs_of_a_transport_lose_no_call() -> None:
    tries: dict[str, int] = {}

    async def flaky(request: Request) -> Response:
        name = request.path.split("/")[6]
        tries[name] = tries.get(name, 0) + 1
        if tries[name] > 1:
            return ok(pod(name, 2, node="n1")) if request.method == "GET" else ok()
        if name == "bug":
            raise KeyError("oh")
        raise TransportError("gone", sent=name == "lost")

    async def main() -> None:
        bench = Bench(flaky)
        bench.submit(bind("lost"), bind("refused"), bind("bug"))
        await bench.quiet()
        assert set(bench.engine.results.values()) == {CallResult.DONE}
        assert [s for _, s in bench.transport.sent].count("lost") == 2

    run(main())


def test_retry_after_is_waited_for_without_polling() -> None:
    count = 0

    async def busy(_request: Request) -> Response:
        nonlocal count
        count += 1
        return Response(429, b"{}", {"retry-after": "30"}) if count == 1 else ok()

    async def main() -> None:
        bench = Bench(busy)
        bench.submit(bind())
        await bench.quiet()
        assert [at for at, _ in bench.transport.sent] == [0.0, 30.0]

    run(main())


def test_close_sends_binds_cancels_the_rest_and_tells_everybody() -> None:
    async def main() -> None:
        bench = Bench(slow(1), qps=1, burst=1)
        bench.submit(*(patch(name=f"p{n}") for n in range(5)), bind("a"), bind("b"))
        await asyncio.sleep(0.5)
        await bench.dispatcher.close(5)
        assert asyncio.get_running_loop().time() < 5.6
        assert [bench.engine.results[n] for n in (6, 7)] == [CallResult.DONE] * 2
        assert [bench.engine.results[n] for n in range(1, 6)].count(CallResult.CANCELLED) == 5
        await bench.dispatcher.close(5)

    run(main())


def test_a8_close_ends_within_its_deadline_though_the_server_holds_everything() -> None:
    async def main() -> None:
        bench = Bench(slow(3600))
        bench.submit(*(patch(name=f"p{n}") for n in range(50)), bind("a"))
        await asyncio.sleep(1)
        await bench.dispatcher.close(5)
        assert asyncio.get_running_loop().time() == pytest.approx(6)
        assert set(bench.engine.results.values()) == {CallResult.CANCELLED}
        assert len(bench.engine.results) == 51
        bench.dispatcher.wake()

    run(main())


def test_a12_a_storm_of_status_writes_slows_events_down_and_never_stops_them() -> None:
    async def main() -> None:
        bench = Bench(at_once, qps=5, burst=5)
        bench.submit(*(patch(name=f"p{n}") for n in range(400)), *(event(f"e{n}") for n in range(20)))
        await asyncio.sleep(60)
        sent = [name for at, name in bench.transport.sent if at > 1]
        assert 2 <= sum(name.startswith("e") for name in sent) <= 10
        bench.submit(bind("good"))
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(1)
        assert bench.moment("good") - begin < 0.25
        await bench.dispatcher.close(1)

    run(main())
