"""asyncio under a clock that jumps: a test of five minutes takes milliseconds and never sleeps.

Laws:
- Time moves only when no callback is ready, and then exactly to the next timer.
- No sockets, no threads: `run_in_executor` runs the function at once, in place.
- A run that would wait for ever raises `WaitsForEverError` and says who waits where; one that spins
  without time passing raises `LivelockError`; one that passes `max_seconds` raises `OutOfVirtualTimeError`.
- Two runs of one program see the same times and the same order of callbacks.
"""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Coroutine
from math import ulp
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_700_000_000.0  # 2023-11-14T22:13:20Z: where virtual time starts
CALLBACKS_PER_INSTANT = 1_000_000
INSTANT_SECONDS = 0.001


class VirtualTimeError(RuntimeError):
    """Base of the ways in which a run under virtual time can be stuck."""


class WaitsForEverError(VirtualTimeError):
    """Nothing is ready and no timer is set: no callback will ever run again."""


class OutOfVirtualTimeError(VirtualTimeError):
    """The run passed its limit of virtual seconds."""


class LivelockError(VirtualTimeError):
    """Too many callbacks, in all or without time passing."""


class _Jump:
    """Stands where a selector would: instead of waiting for IO it moves the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        self._loop._idle(timeout)
        return []


class VirtualLoop(BaseEventLoop):
    """An event loop whose `time()` starts at 0 and jumps to the next timer when nothing is ready."""

    _ready: Any
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(
        self,
        *,
        max_seconds: float | None = None,
        max_callbacks: int | None = None,
        max_callbacks_per_instant: int = CALLBACKS_PER_INSTANT,
    ) -> None:
        super().__init__()
        self._now = 0.0
        # Timers within the resolution fire early, and whoever then sees that it is not yet time would
        # spin: here none fires before its time, to the last bit.
        self._clock_resolution = ulp(self._now)
        self._selector = _Jump(self)
        self._max_seconds = max_seconds
        self._max_callbacks = max_callbacks
        self._max_per_instant = max_callbacks_per_instant
        self.callbacks = 0
        self._instant = 0.0  # when counting began; timers a hair apart count as one instant
        self._callbacks_at_instant = 0
        # Asked whenever nothing is ready, before time moves; True stops the loop.
        self.stop_when: Callable[[], bool] | None = None

    def time(self) -> float:
        return self._now

    def run_in_executor(  # type: ignore[override]  # typeshed's generic has no thread-free form
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # whatever the function raises belongs to whoever awaits it
            future.set_exception(error)
        return future

    def lift_limits(self) -> None:
        """Forget the limits of time and of callbacks; spinning without time passing stays an error."""
        self._max_seconds = self._max_callbacks = None
        self._max_per_instant = CALLBACKS_PER_INSTANT
        self._callbacks_at_instant = 0

    def _idle(self, timeout: float | None) -> None:
        if timeout != 0 and self.stop_when is not None and self.stop_when():
            self.stop()
        elif timeout is None:
            raise WaitsForEverError(f"nothing left to happen at t={self._now:g} s\n{describe_tasks(self)}")
        elif timeout > 0:
            self._jump()
        self._count(len(self._ready))

    def _jump(self) -> None:
        due = self._scheduled[0].when()
        if self._max_seconds is not None and due > self._max_seconds:
            raise OutOfVirtualTimeError(f"limit of {self._max_seconds:g} virtual seconds passed")
        self._now = max(self._now, due)
        self._clock_resolution = ulp(self._now)
        if self._now - self._instant >= INSTANT_SECONDS:
            self._instant = self._now
            self._callbacks_at_instant = 0

    def _count(self, ready: int) -> None:
        self.callbacks += ready
        self._callbacks_at_instant += ready
        if self._callbacks_at_instant > self._max_per_instant:
            raise LivelockError(
                f"{self._callbacks_at_instant} callbacks at t={self._now:g} s\n{describe_tasks(self)}"
            )
        if self._max_callbacks is not None and self.callbacks > self._max_callbacks:
            raise LivelockError(f"limit of {self._max_callbacks} callbacks passed at t={self._now:g} s")

    # What BaseEventLoop asks of a loop with IO.
    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """One line per unfinished task: its name and the line on which it waits."""
    lines = []
    for task in sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()):
        stack = task.get_stack(limit=1)
        where = f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "not started"
        lines.append(f"  {task.get_name()} waits at {where}")
    return "\n".join(lines) or "  (no task)"


class VirtualClock:
    """`runtime.clock.Clock` over a virtual loop: seconds since the epoch, from a fixed start."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: float = EPOCH) -> None:
        self._loop = loop
        self.start = start

    def time(self) -> float:
        return self.start + self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T], *, max_seconds: float | None = 86_400.0) -> T:
    """Like `asyncio.run`, under virtual time. Whatever is still running at the end is cancelled."""
    loop = VirtualLoop(max_seconds=max_seconds)
    try:
        return loop.run_until_complete(main)
    finally:
        close(loop)


def close(loop: VirtualLoop) -> None:
    """Cancel what still runs, let it end, close the loop."""
    loop.lift_limits()
    tasks = asyncio.all_tasks(loop)
    for task in sorted(tasks, key=lambda task: task.get_name()):
        task.cancel()
    try:
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
