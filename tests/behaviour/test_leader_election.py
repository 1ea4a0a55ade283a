"""Two schedulers of one name over one server, in virtual time: exactly one decides (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from behaviour.world import NODES, PODS, node, pod
from pilotage.api.kinds import by_resource
from pilotage.api.wire import Request
from pilotage.client.api import ApiClient, ApiError
from pilotage.client.transport import TransportError
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.runtime.config import default_settings
from pilotage.runtime.config_validate import LeaderElection
from pilotage.runtime.leader_election import Elector, LeadershipLostError
from pilotage.runtime.leading import FencedTransport, lead
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.scheduler import Scheduler
from pilotage.testing import virtualtime
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport

LEASES = by_resource("leases.coordination.k8s.io")
EVENTS = by_resource("events.events.k8s.io")
assert LEASES is not None
assert EVENTS is not None
CONFIG = LeaderElection()
LEASE_PATH = "/leases"


class Replica:
    """One scheduler process of several, with faults between it and the server."""

    def __init__(self, name: str, pair: Pair, *, waits: bool = False) -> None:
        self.name = name
        self.faults = Faults()
        door = FaultyTransport(InProcessTransport.over(pair.transport.host), self.faults, name)
        self.elector = Elector(door, CONFIG, name, pair.clock)
        self.scheduler = Scheduler(
            FencedTransport(door, lambda: self.elector.is_leading),
            default_settings(),
            build_registry(),
            clock=pair.clock,
            identity=name,
        )
        self.stop, self.active = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(
            lead(
                self.elector,
                self.stop,
                self.active,
                lambda end: self.scheduler.run(end, self.active),
                waits=waits,
            )
        )

    def writes(self) -> int:
        """Requests that change something other than leases and their events."""
        return sum(
            1
            for one in self.faults.log.select()
            if one.request.method not in ("GET", "HEAD")
            and "/leases" not in one.request.path
            and "/events" not in one.request.path
        )

    async def kill(self) -> None:
        """As SIGKILL: nothing is released."""
        self.elector._renewed_at = float("-inf")
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def end(self) -> None:
        self.stop.set()
        await self.task


class Pair:
    def __init__(self, **options: bool) -> None:
        self.clock = virtualtime.VirtualClock(asyncio.get_running_loop())
        server = ApiServer(make_store(), Ids(b"seed"), self.clock.time())
        self.transport = InProcessTransport(server, self.clock)
        self.api = ApiClient(self.transport)
        self.a, self.b = Replica("a", self, **options), Replica("b", self, **options)

    async def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = (await self.api.get(LEASES, "kube-scheduler", "kube-system"))["spec"]
        return spec

    async def schedule(self, name: str) -> str:
        """Creates a pod and waits until it is bound."""
        await self.api.create(PODS, pod(name))
        return await self.bound(name)

    async def bound(self, name: str) -> str:
        while not (found := (await self.api.get(PODS, name, "default"))["spec"].get("nodeName", "")):
            await asyncio.sleep(0.25)
        return str(found)

    def leaders(self) -> list[str]:
        return [one.name for one in (self.a, self.b) if one.elector.is_leading]


def in_pair(use: Callable[[Pair], Awaitable[None]], **options: bool) -> None:
    async def main() -> None:
        pair = Pair(**options)
        await pair.api.create(NODES, node("n1"))
        await asyncio.wait_for(use(pair), 600)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    virtualtime.run(main())


def test_exactly_one_schedules_and_the_lease_goes_on_at_a_clean_end() -> None:
    async def use(pair: Pair) -> None:
        assert await pair.schedule("p1") == "n1"
        (leader,) = pair.leaders()
        first, second = (pair.a, pair.b) if leader == "a" else (pair.b, pair.a)
        assert first.writes() > 0
        assert second.writes() == 0
        assert second.scheduler.engine.statistics().nodes == 1  # it follows the cluster all the same
        spec = await pair.lease()
        assert spec["holderIdentity"] == leader
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
        begin = asyncio.get_running_loop().time()
        await first.end()
        assert (await pair.lease())["holderIdentity"] == ""
        assert await pair.schedule("p2") == "n1"
        assert asyncio.get_running_loop().time() - begin < 2 * CONFIG.retry_period
        assert pair.leaders() == [second.name]
        assert (await pair.lease())["leaseTransitions"] == 1
        notes = [one["note"] for one in (await pair.api.list(EVENTS, "kube-system"))["items"]]
        assert f"{first.name} became leader" in notes
        assert f"{first.name} stopped leading" in notes
        assert f"{second.name} became leader" in notes
        await second.end()

    in_pair(use)


def test_another_takes_over_when_the_leader_is_killed() -> None:
    async def use(pair: Pair) -> None:
        await pair.schedule("p1")
        (leader,) = pair.leaders()
        first, second = (pair.a, pair.b) if leader == "a" else (pair.b, pair.a)
        await first.kill()
        begin = asyncio.get_running_loop().time()
        await pair.schedule("p2")
        # It saw the last renewal at its next look: so much later than the lease's end it may be.
        assert asyncio.get_running_loop().time() - begin <= CONFIG.lease_duration + 1.2 * CONFIG.retry_period
        assert pair.leaders() == [second.name]
        await second.end()

    in_pair(use)


@pytest.mark.parametrize("waits", [False, True])
def test_a_leader_that_cannot_renew_stops_before_the_other_begins(waits: bool) -> None:
    async def use(pair: Pair) -> None:
        await pair.schedule("p1")
        (leader,) = pair.leaders()
        first, second = (pair.a, pair.b) if leader == "a" else (pair.b, pair.a)
        first.faults.answer(500, path=LEASE_PATH)
        begin = asyncio.get_running_loop().time()
        while first.elector.is_leading:
            await asyncio.sleep(0.1)
        stopped = asyncio.get_running_loop().time() - begin
        assert stopped <= CONFIG.renew_deadline + 0.1
        before = first.writes()
        assert not second.elector.is_leading
        await pair.api.create(PODS, pod("p2"))
        with pytest.raises(
            LeadershipLostError, match="kube-system/kube-scheduler could not be renewed in time"
        ):
            await first.task
        assert not second.active.is_set()
        await pair.bound("p2")
        assert first.writes() == before
        assert second.elector.is_leading
        assert (await pair.lease())["holderIdentity"] == second.name
        await second.end()

    in_pair(use, waits=waits)


def test_an_unanswered_renewal_is_read_again_not_lost() -> None:
    async def use(pair: Pair) -> None:
        await pair.schedule("p1")
        (leader,) = pair.leaders()
        first = pair.a if leader == "a" else pair.b
        first.faults.lose_answer(method="PUT", path=LEASE_PATH, times=2)
        await asyncio.sleep(60)
        assert pair.leaders() == [leader]
        await pair.a.end()
        await pair.b.end()

    in_pair(use)


def test_somebody_elses_lease_ends_the_leader_at_once() -> None:
    async def use(pair: Pair) -> None:
        await pair.schedule("p1")
        (leader,) = pair.leaders()
        first, second = (pair.a, pair.b) if leader == "a" else (pair.b, pair.a)
        await second.end()
        lease = await pair.api.get(LEASES, "kube-scheduler", "kube-system")
        lease["spec"]["holderIdentity"] = "thief"
        await pair.api.update(LEASES, lease, "kube-system")
        with pytest.raises(LeadershipLostError, match="is held by thief"):
            await asyncio.wait_for(first.task, 3 * CONFIG.retry_period)
        assert (await pair.lease())["holderIdentity"] == "thief"

    in_pair(use)


def test_the_fence_lets_reads_through_and_no_writes() -> None:
    async def main() -> None:
        clock = virtualtime.VirtualClock(asyncio.get_running_loop())
        server = ApiServer(make_store(), Ids(b"seed"), clock.time())
        is_open = True
        door = FencedTransport(InProcessTransport(server, clock), lambda: is_open)
        assert (await door.request(Request("GET", "/api/v1/nodes"))).status == 200
        await ApiClient(door).create(NODES, node("n1"))
        is_open = False
        assert (await door.request(Request("GET", "/api/v1/nodes"))).status == 200
        with pytest.raises(TransportError) as caught:
            await ApiClient(door).create(NODES, node("n2"))
        assert not caught.value.sent
        with pytest.raises(ApiError):
            await ApiClient(door).get(NODES, "n2")

    virtualtime.run(main())


def test_health_tells_of_a_lease_long_overdue() -> None:
    class Still:
        now = 1000.0

        def time(self) -> float:
            return self.now

    clock = Still()

    async def main() -> None:
        virtual = virtualtime.VirtualClock(asyncio.get_running_loop())
        server = ApiServer(make_store(), Ids(b"seed"), virtual.time())
        elector = Elector(InProcessTransport(server, virtual), CONFIG, "a", clock)
        assert elector.health() is None
        await elector.acquire()
        assert elector.is_leading
        clock.now += 30
        assert not elector.is_leading  # a machine that was asleep knows at once
        assert elector.health() is None
        clock.now += 10
        assert elector.health() == "the lease was not renewed for 25 s beyond its end"

    virtualtime.run(main())
