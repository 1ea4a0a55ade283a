"""Field cases F4 and F5 on the whole system: watches that are too old, resume or repeat themselves.

That the API server itself says 410 in all three forms is in unit/localcluster/rest (test_watching,
test_listing); further forms are in test_watch_faults, test_scheduler_outage and unit/client/test_reflector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from pilotage.api.wire import Request
from pilotage.client.transport import Stream
from pilotage.framework.settings import Settings
from pilotage.runtime.config import default_settings
from pilotage.testing.faultkinds import Answer, Fault, Open
from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness
from pilotage.testing.streams import End

SCHEDULER = {"client": "scheduler"}
PODS = "/pods$"
ASYNC = default_settings()
SEQUENTIAL = default_settings(gates={"SchedulerAsyncAPICalls": False})
both = pytest.mark.parametrize("settings", [ASYNC, SEQUENTIAL], ids=["async", "sequential"])


def used(h: Harness, node: str) -> int:
    """Milli-CPU that the scheduler counts on the node."""
    table = h.engine.cluster.nodes
    rows = [int(row) for row in table.live_rows if table.name(row) == node]
    return sum(info.requests["cpu"] for row in rows for info in h.engine.cluster.pods_on(row))


# -- F4


@both
@pytest.mark.parametrize("form", list(Gone))
def test_f4_too_old_in_any_form_means_a_new_list_and_its_version(form: Gone, settings: Settings) -> None:
    with Harness(seed=7, settings=settings) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=4))
        h.create(*(h.pod(f"idle{i:03}", cpu=64, schedulerName="nobody") for i in range(520)))
        h.run_until_running("a")
        h.settle(3)
        h.faults.hold_watches(path=PODS, **SCHEDULER)
        h.delete("pods", "a", grace=0)
        h.create(h.pod("b", cpu=4))
        h.faults.gone(form, path=PODS, **SCHEDULER)
        begin = h.now
        h.server.compact()
        h.faults.drop_watches(path=PODS, **SCHEDULER)
        h.settle(3)
        h.run_until_running("b", timeout=30)
        lists = h.requests(verb="list", path=PODS, since=begin, **SCHEDULER)
        assert 2 <= len(lists) <= 4  # two pages, and again where the second one was too old
        for record in h.requests(verb="watch", **SCHEDULER):
            assert int(record.request.query["resourceVersion"]) > 0
        h.settle()
        h.check_converged()


@both
@pytest.mark.parametrize("status", [429, 503])
def test_f4_a_list_refused_with_retry_after_is_asked_again_no_sooner(status: int, settings: Settings) -> None:
    with Harness(seed=17, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        h.run_for(1)
        refusal = Answer(status, "busy", 7)
        h.faults.add(refusal, verb="list", path=PODS, times=3, **SCHEDULER)
        begin = h.now
        h.server.compact()
        h.create(h.pod("a", cpu=1))
        h.faults.gone(Gone.STATUS, path=PODS, **SCHEDULER)
        h.faults.drop_watches(path=PODS, **SCHEDULER)
        h.run_until_running("a", timeout=60)
        times = [record.time for record in h.requests(verb="list", path=PODS, since=begin, **SCHEDULER)]
        assert len(times) == 4
        assert all(later - earlier >= 7 for earlier, later in pairwise(times))
        h.settle()
        h.check_converged()


# -- F5


def test_f5_a_watch_resumes_at_the_lists_version_and_nothing_is_replayed() -> None:
    """Items are older than the list; the connection drops before any event."""
    with Harness(seed=8, scheduler=False, services=None) as h:
        h.create(h.node("z"), h.pod("a", cpu=1, schedulerName="nobody"))
        for number in range(40):
            h.label("pods", "a", step=str(number))
        h.start_scheduler()
        h.run_for(1)
        first = {r.path: r.request.query["resourceVersion"] for r in watches(h)}
        handled = len(h.recorder.attempts)
        begin = h.now
        h.faults.drop_watches(End.CUT, **SCHEDULER)
        h.run_for(5)
        again = {r.path: r.request.query["resourceVersion"] for r in watches(h, since=begin)}
        assert again == first
        newest = h.get("pods", "a")["metadata"]["resourceVersion"]
        assert (
            int(first["/api/v1/nodes"])
            >= int(newest)
            > int(h.get("nodes", "z")["metadata"]["resourceVersion"])
        )
        assert not h.requests(verb="list", since=begin, **SCHEDULER)
        assert len(h.recorder.attempts) == handled


def watches(h: Harness, since: float = 0.0) -> list[Any]:
    return h.requests(verb="watch", since=since, **SCHEDULER)


def test_f5_after_events_it_resumes_at_the_last_event_or_bookmark() -> None:
    with Harness(seed=9, services=None) as h:
        h.create(h.node("n1"), h.pod("a", cpu=64))
        h.run_for(1)
        newest = h.get("pods", "a")["metadata"]["resourceVersion"]
        begin = h.now
        h.faults.drop_watches(path=PODS, **SCHEDULER)
        h.run_for(2)
        assert [
            r.request.query["resourceVersion"] for r in watches(h, begin) if r.path.endswith("/pods")
        ] == [newest]
        for number in range(
            30
        ):  # changes of another kind move the version on; a bookmark tells the pods' watch
            h.label("nodes", "n1", step=str(number))
        h.run_for(120)
        begin = h.now
        h.faults.drop_watches(path=PODS, **SCHEDULER)
        h.run_for(2)
        resumed = [
            int(r.request.query["resourceVersion"]) for r in watches(h, begin) if r.path.endswith("/pods")
        ]
        assert len(resumed) == 1
        assert resumed[0] > int(newest)
        assert not h.requests(verb="list", since=begin, **SCHEDULER)


class Twice(Fault):
    """Each line of a watch arrives twice."""

    async def stream(self, request: Request, open_: Open) -> Stream:
        return Doubled(await open_())


class Doubled:
    def __init__(self, inner: Stream) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner = inner

    async def lines(self) -> AsyncIterator[bytes]:
        async for line in self._inner.lines():
            yield line
            yield line

    async def read(self) -> bytes:
        return await self._inner.read()

    async def close(self) -> None:
        await self._inner.close()


@both
def test_f5_an_event_that_comes_twice_changes_nothing(settings: Settings) -> None:
    ends = []
    for is_doubled in (False, True):
        with Harness(seed=10, settings=settings, scheduler=False) as h:
            if is_doubled:
                h.faults.add(Twice(), verb="watch", **SCHEDULER)
            h.start_scheduler()
            h.create(h.node("n1", cpu=4), *(h.pod(f"p{i}", cpu=1) for i in range(6)))
            h.run_for(5)
            h.label("pods", "p0", color="blue")
            h.delete("pods", "p1")
            h.run_for(60)
            h.check_converged()
            tries = Counter(attempt.key for _, attempt in h.recorder.attempts)
            ends.append((used(h, "n1"), h.engine.statistics().unschedulable, sum(tries.values())))
    assert ends[0] == ends[1]
    assert ends[0][:2] == (4000, 1)
