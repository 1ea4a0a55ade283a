"""examples/status_operator: a controller without a scheduler, against the embedded server (A10, A17)."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotage.api.kinds import find
from pilotage.client.api import ApiClient
from pilotage.framework.calls import CallResult
from pilotage.runtime.calling import Calls
from pilotage.testing.harness import Harness

EXAMPLE = Path(__file__).parents[2] / "examples" / "status_operator"
Tree = dict[str, Any]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(EXAMPLE)
    import status_operator

    yield status_operator
    sys.modules.pop("status_operator", None)


@pytest.fixture
def h() -> Iterator[Harness]:
    found = Harness(seed=1, services=None, scheduler=False)
    yield found
    found.close()


def create_services(h: Harness, number: int) -> None:
    ports = [{"port": 80}]
    for n in range(number):
        meta = {"name": f"s{n}", "namespace": "default", "labels": {"of": "test"}}
        body: Tree = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}}
        h.create(body)


@asynccontextmanager
async def operating(h: Harness, example: Any, **options: Any) -> AsyncIterator[Any]:
    transport = h.server.transport(h.faults, "operator")
    async with Calls(transport, [example.ServiceLoad()], time=h.clock.time, **options) as calls:
        operator = example.Operator(calls, "of=test", on_problem=lambda text: None)
        watching = asyncio.create_task(operator.reflector.run())
        await operator.reflector.synced.wait()
        try:
            yield operator, calls
            await calls.wait_idle()
            calls.check_invariants()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def shown(h: Harness, name: str) -> dict[str, Tree]:
    conditions = h.get("services", name).get("status", {}).get("conditions", [])
    return {one["type"]: one for one in conditions}


def writes(h: Harness) -> int:
    return len(h.requests(client="operator", verb="patch"))


def test_a_storm_of_wishes_is_few_requests_and_the_newest_lands(h: Harness, example: Any) -> None:
    create_services(h, 300)
    newest: dict[str, int] = {}

    async def main() -> None:
        rng = random.Random(7)
        async with operating(h, example) as (operator, calls):
            uids = list(operator.services)
            for _ in range(500):
                for uid in rng.sample(uids, 60):
                    newest[uid] = rng.randrange(101)
                    operator.measured(uid, newest[uid])
                await asyncio.sleep(0.02)
            assert len(calls.pending()) <= 2 * len(uids)
            await calls.wait_idle()
            assert calls.statistics().offered["service_load"] == 30_000

    h.do(main())
    for n in range(300):
        uid = h.get("services", f"s{n}")["metadata"]["uid"]
        assert shown(h, f"s{n}")["example.com/Load"]["message"] == f"load is {newest[uid]} %"
    # 10 s at 50 a second after a burst of 100, and at most one more for each Service.
    assert 300 <= writes(h) <= 100 + 50 * 10 + 300


def test_changes_of_others_are_kept(h: Harness, example: Any) -> None:
    create_services(h, 1)

    async def main() -> None:
        async with operating(h, example) as (operator, _):
            (uid,) = operator.services
            hold = h.faults.latency(0.5, client="operator", verb="patch", times=1)
            answer = operator.measured(uid, 90)
            await asyncio.sleep(0.1)
            other = {"type": "other.example/Ready", "status": "True", "reason": "Ok", "message": "up"}
            other["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            await change(h, {"status": {"conditions": [other]}}, "status")
            await change(h, {"metadata": {"labels": {"by": "hand"}}})
            assert (await answer).result is CallResult.DONE
            assert hold.hits == 1

    h.do(main())
    found = shown(h, "s0")
    assert found["other.example/Ready"]["message"] == "up"
    assert (found["example.com/Load"]["status"], found["example.com/Load"]["reason"]) == (
        "True",
        "Overloaded",
    )
    assert h.get("services", "s0")["metadata"]["labels"] == {"of": "test", "by": "hand"}
    assert len(h.requests(client="operator", verb="patch", status=409)) == 1


def test_refusals_and_lost_answers_lose_no_wish(h: Harness, example: Any) -> None:
    create_services(h, 20)
    h.faults.too_many_requests(client="operator", verb="patch", times=15)
    h.faults.lose_answer(client="operator", verb="patch", skip=15, times=5)

    async def main() -> None:
        async with operating(h, example) as (operator, _):
            answers = [operator.measured(uid, n) for n, uid in enumerate(operator.services)]
            assert {(await one).is_ok for one in answers} == {True}

    h.do(main())
    messages = {shown(h, f"s{n}")["example.com/Load"]["message"] for n in range(20)}
    assert messages == {f"load is {n} %" for n in range(20)}


def test_an_equal_load_is_not_written_and_a_deleted_service_is_forgotten(h: Harness, example: Any) -> None:
    create_services(h, 2)

    async def main() -> None:
        async with operating(h, example) as (operator, calls):
            one, gone = operator.services
            await operator.measured(one, 50)
            assert (await operator.measured(one, 50)).result is CallResult.SKIPPED
            assert writes(h) == 1
            await change(h, None)
            await asyncio.sleep(0.1)
            assert len(operator.services) == 1
            assert calls._source.newest.get(gone) is None

    h.do(main())


async def change(h: Harness, body: Tree | None, subresource: str = "") -> None:
    """By somebody else."""
    client = ApiClient(h.server.transport(h.faults, "other"))
    kind = find("services")
    assert kind is not None
    if body is None:
        await client.delete(kind, "s1", "default")
    else:
        await client.patch(kind, "s0", body, "default", subresource=subresource)
