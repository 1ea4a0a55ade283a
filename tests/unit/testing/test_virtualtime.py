"""The virtual loop: time jumps, order is kept, stuck runs say so."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from pilotage.testing import virtualtime
from pilotage.testing.virtualtime import (
    EPOCH,
    LivelockError,
    OutOfVirtualTimeError,
    VirtualClock,
    VirtualLoop,
)


def test_a_day_passes_at_once_and_lands_exactly() -> None:
    async def main() -> float:
        await asyncio.sleep(0.1)
        await asyncio.sleep(80_000)
        return asyncio.get_running_loop().time()

    started = time.perf_counter()
    assert virtualtime.run(main()) == 80_000.1
    assert time.perf_counter() - started < 1


def test_timers_fire_in_order_of_time() -> None:
    seen: list[str] = []

    async def note(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append(f"{name}@{asyncio.get_running_loop().time():g}")

    async def main() -> None:
        await asyncio.gather(note("c", 3), note("a", 1), note("b", 1), note("z", 0))

    virtualtime.run(main())
    assert seen == ["z@0", "a@1", "b@1", "c@3"]


def test_waiting_for_ever_is_an_error_that_names_the_waiter() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(virtualtime.WaitsForEverError, match=r"test_virtualtime\.py"):
        virtualtime.run(main())


def test_the_limit_of_virtual_seconds() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(OutOfVirtualTimeError):
        virtualtime.run(main(), max_seconds=10)


def test_spinning_without_time_is_a_livelock() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    loop = VirtualLoop(max_callbacks_per_instant=1000)
    with pytest.raises(LivelockError):
        loop.run_until_complete(main())
    virtualtime.close(loop)


def test_the_limit_of_callbacks() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(1)

    loop = VirtualLoop(max_callbacks=100)
    with pytest.raises(LivelockError):
        loop.run_until_complete(main())
    virtualtime.close(loop)


def test_timeouts_and_wait_for_work() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(60)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 2)
        return asyncio.get_running_loop().time()

    assert virtualtime.run(main()) == 7


def test_executor_runs_in_place_and_errors_return() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)
        return await asyncio.to_thread(lambda: 7)

    assert virtualtime.run(main()) == 7


def test_the_clock_is_the_epoch_plus_the_loop() -> None:
    async def main() -> float:
        clock = VirtualClock(asyncio.get_running_loop())
        await clock.sleep(2.5)
        return clock.time()

    assert virtualtime.run(main()) == EPOCH + 2.5


def test_run_cancels_what_is_left() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            ended.append("cancelled")

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        assert not task.done()

    virtualtime.run(main())
    assert ended == ["cancelled"]


def test_no_timer_fires_before_its_time_to_the_last_bit() -> None:
    """Two that wait for a time a bit apart, and look again when it is too early, must not spin."""

    async def wait_until(due: float) -> float:
        loop = asyncio.get_running_loop()
        turns = 0
        while loop.time() < due:
            turns += 1
            assert turns < 10, "spinning"
            woken = asyncio.Event()
            loop.call_at(due, woken.set)
            await woken.wait()
        return loop.time()

    async def main() -> list[float]:
        await asyncio.sleep(0.05)
        times = [0.55 + 0.1, 0.15 + 0.5, math.nextafter(0.65, 1), math.nextafter(0.65, 0)]
        assert len(set(times)) > 2
        return sorted(await asyncio.gather(*(wait_until(time) for time in times)))

    assert virtualtime.run(main()) == sorted(
        [0.55 + 0.1, 0.15 + 0.5, math.nextafter(0.65, 1), math.nextafter(0.65, 0)]
    )
