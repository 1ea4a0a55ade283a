"""The runner: one reconcile per key at a time, retries, own writes read at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from pilotage.api.wire import Request, Response
from pilotage.client.api import ApiClient
from pilotage.client.transport import Stream, TransportError
from pilotage.localcluster.controllers.plan import NOTHING, Create, Delete, Plan, RetryLater, plan
from pilotage.localcluster.controllers.runner import Runner
from pilotage.localcluster.objects import Cache, Moved
from pilotage.testing import virtualtime
from pilotage.testing.virtualtime import VirtualClock


class Server:
    """Answers with what `answers` says, else creates; takes a second for each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, Request]] = []
        self.answers: list[Response | TransportError] = []

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        del timeout
        self.seen.append((asyncio.get_running_loop().time(), request))
        await asyncio.sleep(1)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, TransportError):
                raise answer
            return answer
        body = msgspec.json.decode(request.body or b"{}")
        meta = {"uid": "u", "resourceVersion": "7", **body.get("metadata", {})}
        return Response(201, msgspec.json.encode({**body, "metadata": meta}))

    async def stream(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class One:
    """Answers each key with the next plan; remembers when it was asked."""

    name = "one"
    settle = 0.0

    def __init__(self, *plans: Plan | Exception) -> None:
        self.plans = list(plans)
        self.asked: list[tuple[float, str]] = []

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        del cache
        return (moved.object.key,)

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        del cache, now
        self.asked.append((asyncio.get_running_loop().time(), key))
        answer = self.plans.pop(0) if self.plans else NOTHING
        if isinstance(answer, Exception):
            raise answer
        return answer


class Case:
    def __init__(self, controller: One) -> None:
        self.server, self.cache, self.controller = Server(), Cache(), controller
        self.moved: list[Moved] = []
        self.problems: list[str] = []
        self.runner = Runner(
            controller,
            self.cache,
            ApiClient(self.server),
            VirtualClock(asyncio.get_running_loop()),
            on_moved=self.moved.append,
            on_problem=self.problems.append,
        )
        self.task = asyncio.get_running_loop().create_task(self.runner.run())


def run(controller: One, test: Callable[[Case], Awaitable[None]]) -> None:
    async def main() -> None:
        case = Case(controller)
        await test(case)
        assert not case.task.done()

    virtualtime.run(main(), max_seconds=1000)


def create(name: str = "a") -> Create:
    return Create("pods", "default", {"metadata": {"name": name, "namespace": "default"}})


def times(case: Case) -> list[float]:
    return [round(time, 3) for time, _ in case.controller.asked]


def test_requeue_after_looks_again() -> None:
    async def test(c: Case) -> None:
        c.runner.add("k", 2.0)
        c.runner.add("k", 1.0)
        c.runner.add("k", 5.0)
        await asyncio.sleep(20)
        assert times(c) == [1.0, 4.0]

    run(One(Plan((), 3.0), NOTHING), test)


def test_what_changes_while_writes_run_is_looked_at_afterwards() -> None:
    async def test(c: Case) -> None:
        c.runner.add("k", 0.0)
        await asyncio.sleep(0.5)
        c.runner.add("k", 0.0)
        c.runner.add("other", 0.0)
        await asyncio.sleep(5)
        assert c.controller.asked == [(0.0, "k"), (0.5, "other"), (1.0, "k")]

    run(One(plan([create()])), test)


def test_answers_are_in_the_cache_before_the_next_look() -> None:
    async def test(c: Case) -> None:
        c.runner.add("k", 0.0)
        await asyncio.sleep(2)
        found = c.cache.get("pods", "default/a")
        assert found is not None
        assert [moved.new for moved in c.moved] == [found]

    run(One(plan([create()])), test)


def test_a_delete_takes_the_object_out_of_the_cache() -> None:
    async def test(c: Case) -> None:
        c.runner.add("k", 0.0)
        await asyncio.sleep(2)
        c.server.answers = [Response(200, b'{"kind":"Status","status":"Success"}')]
        c.runner.add("k", 0.0)
        await asyncio.sleep(2)
        assert c.cache.get("pods", "default/a") is None

    run(One(plan([create()]), plan([Delete("pods", "default", "a", "u")])), test)


def test_failures_back_off_and_are_told() -> None:
    async def test(c: Case) -> None:
        c.server.answers = [Response(500, b"sick"), TransportError("reset", sent=True), Response(503, b"")]
        c.runner.add("k", 0.0)
        await asyncio.sleep(30)
        gaps = [b - a for a, b in zip(times(c), times(c)[1:], strict=False)]
        assert len(gaps) == 3
        assert all(gap > 1.05 for gap in gaps)
        assert len(c.problems) == 3

    run(One(*[plan([create()])] * 4), test)


def test_deletes_of_what_is_gone_are_settled() -> None:
    async def test(c: Case) -> None:
        c.server.answers = [Response(404, b"")]
        c.runner.add("k", 0.0)
        await asyncio.sleep(30)
        assert (times(c), c.problems) == ([0.0], [])

    run(One(plan([Delete("pods", "default", "a", "u")])), test)


def test_a_bug_in_a_reconcile_delays_its_key_only() -> None:
    async def test(c: Case) -> None:
        c.runner.add("bad", 0.0)
        await asyncio.sleep(0.01)
        c.runner.add("good", 0.0)
        await asyncio.sleep(5)
        assert [key for _, key in c.controller.asked] == ["bad", "good", "bad"]
        assert "ZeroDivisionError" in c.problems[0]

    run(One(ZeroDivisionError("oops")), test)


class NotYet:
    resource = ""

    async def apply(self, client: ApiClient) -> Mapping[str, Any] | None:
        raise RetryLater


def test_retry_later_is_no_problem() -> None:
    async def test(c: Case) -> None:
        c.runner.add("k", 0.0)
        await asyncio.sleep(5)
        assert (times(c), c.problems) == ([0.0, 1.0], [])

    run(One(plan([NotYet()])), test)
