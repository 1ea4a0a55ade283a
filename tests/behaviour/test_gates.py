"""Feature gates that change how the scheduler works (A15)."""

from __future__ import annotations

import asyncio

import pytest

from behaviour.world import PODS, World, in_world, node, pod
from pilotage.api.kinds import by_resource

PRIORITIES = by_resource("priorityclasses.scheduling.k8s.io")
assert PRIORITIES is not None
OFF = {"SchedulerAsyncAPICalls": False}
SLOW = 5.0


async def attempts_with_slow_patches(world: World) -> list[float]:
    """When each of three hopeless pods was tried first; a status patch takes five seconds."""
    times: list[float] = []
    world.faults.latency(after=SLOW, method="PATCH", path="/status$")
    for name in ("a", "b", "c"):
        await world.add(pod(name, cpu="64"))
    begin = asyncio.get_running_loop().time()
    while len(world.seen.attempts) < 3:
        before = len(world.seen.attempts)
        await asyncio.sleep(0.05)
        now = asyncio.get_running_loop().time() - begin
        times += [now] * (len(world.seen.attempts) - before)
    return times


def test_with_asynchronous_calls_no_pod_waits_for_anothers_patch() -> None:
    async def use(world: World) -> None:
        await world.scheduler.ready.wait()
        await world.add(node("n1"))
        assert max(await attempts_with_slow_patches(world)) < 1.0

    in_world(use)


def test_without_them_the_next_pod_waits_for_the_patch() -> None:
    async def use(world: World) -> None:
        await world.scheduler.ready.wait()
        await world.add(node("n1"))
        first, second, third = await attempts_with_slow_patches(world)
        assert first < 1.0
        assert 0.9 * SLOW < second - first < 1.1 * SLOW
        assert 0.9 * SLOW < third - second < 1.1 * SLOW

    in_world(use, gates=OFF)


def test_without_them_binding_stays_concurrent() -> None:
    async def use(world: World) -> None:
        await world.add(node("n1", cpu="16"))
        world.faults.latency(before=SLOW, method="POST", path="/binding$")
        begin = asyncio.get_running_loop().time()
        for number in range(8):
            await world.add(pod(f"p{number}"))
        while not all((await world.bound()).values()):
            await asyncio.sleep(0.25)
        assert asyncio.get_running_loop().time() - begin < 2 * SLOW

    in_world(use, gates=OFF)


@pytest.mark.parametrize("gates", [{}, OFF, {"SchedulerAsyncPreemption": False}])
def test_the_same_pods_end_up_placed(gates: dict[str, bool]) -> None:
    """Preemption, waiting pods and binds, with slow patches and refusals."""

    async def use(world: World) -> None:
        world.faults.latency(after=0.5, method="PATCH", path="/status$")
        world.faults.answer(429, path="/status$", times=2)
        await world.api.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
        await world.add(node("n1", cpu="2"), node("n2", cpu="2"))
        for number in range(4):
            await world.add(pod(f"low{number}", cpu="1", terminationGracePeriodSeconds=0))
        while not all((await world.bound()).values()):
            await asyncio.sleep(0.25)
        await world.add(pod("big", cpu="64"), pod("high", cpu="2", priorityClassName="high"))
        async with asyncio.timeout(120):
            while not (await world.bound())["high"]:
                await asyncio.sleep(0.25)
        bound = await world.bound()
        assert sum(1 for name in bound if name.startswith("low")) == 2
        big = await world.api.get(PODS, "big", "default")
        assert big["status"]["conditions"][0]["reason"] == "Unschedulable"

    in_world(use, gates=gates)
