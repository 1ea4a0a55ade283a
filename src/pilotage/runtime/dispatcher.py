"""Sends what the call queue hands out, over any Transport, with bounded workers and a rate limit.

Laws:
- A request is taken from the queue only when a worker and a token are there for it, so that until the
  last moment newer wishes can replace it and more urgent ones overtake it.
- Of workers and tokens a share stays free for binds: they wait behind nothing but other binds. All lanes
  share one limiter but events, which have their own of the same rate.
- Each request taken ends in exactly one `finish_call`, whatever happened to it.
- One asyncio task per request in flight and one timer; no thread. All waiting goes through the running
  loop, all times through `time`, so that it works under virtual time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from pilotage.calls.reports import Dispatch
from pilotage.calls.types import Lane, NoAnswer, Result
from pilotage.client.transport import Transport, TransportError
from pilotage.runtime.limiter import TokenBucket
from pilotage.scheduling.messages import Effect

log = logging.getLogger("pilotage.dispatcher")

WORKERS = 64
WRITES = tuple(lane for lane in Lane if lane is not Lane.EVENT)
EVENTS = (Lane.EVENT,)
SHUTTING_DOWN = "the scheduler is shutting down"


class CallSource(Protocol):
    """Where requests come from: `runtime.core.Core`."""

    def take_calls(
        self, now: float, room: int, spare: int = 0, lanes: Collection[Lane] = ...
    ) -> tuple[Sequence[Dispatch], Sequence[Effect]]: ...

    def finish_call(self, dispatch: int, result: Result, now: float) -> Sequence[Effect]: ...

    def drain_calls(self, why: str, now: float) -> Sequence[Effect]: ...

    def shutdown_calls(self, why: str, now: float) -> Sequence[Effect]: ...

    def calls_wakeup(self) -> float | None: ...

    def has_ready_calls(self, lanes: Collection[Lane] = ...) -> bool: ...


class Dispatcher:
    """`time`: epoch seconds. `on_effects` gets what ended calls cause; it must not wait."""

    def __init__(
        self,
        source: CallSource,
        transport: Transport,
        *,
        time: Callable[[], float],
        on_effects: Callable[[Sequence[Effect]], None],
        qps: float = 50.0,
        burst: int = 100,
        workers: int = WORKERS,
    ) -> None:
        self._source = source
        self._transport = transport
        self._time = time
        self._on_effects = on_effects
        # Events have a limit of their own: neither they nor the rest wait for each other's tokens.
        self._buckets = {WRITES: TokenBucket(qps, burst), EVENTS: TokenBucket(qps, burst)}
        self._workers = max(1, workers)
        # One task per request; kept until it has ended for good.
        self._tasks: set[asyncio.Task[None]] = set()
        # Dispatches whose answer is awaited: exactly the occupied workers.
        self._busy: set[int] = set()
        # A pump that is due in this turn of the loop, and the timer of the next one.
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._is_closed = False
        self._is_held = False

    def hold(self) -> None:
        """Sends nothing until `resume`: another replica leads."""
        self._is_held = True

    def resume(self) -> None:
        self._is_held = False
        self.wake()

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    def wake(self) -> None:
        """Something may be ready. Cheap, and may be called as often as one likes."""
        if self._soon is None and not self._is_closed:
            self._soon = asyncio.get_running_loop().call_soon(self._pump)

    async def close(self, deadline: float = 5.0) -> None:
        """Sends the binds that wait, cancels the rest, and ends within `deadline` seconds."""
        if self._is_closed:
            return
        self._on_effects(self._source.drain_calls(SHUTTING_DOWN, self._time()))
        self.resume()
        try:
            await asyncio.wait_for(self._wait_idle(), deadline)
        except TimeoutError:
            log.warning("%d API calls were still under way when the scheduler stopped", len(self._busy))
        self._is_closed = True
        self._stop_timers()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._on_effects(self._source.shutdown_calls(SHUTTING_DOWN, self._time()))

    async def _wait_idle(self) -> None:
        while self._busy or self._soon or self._source.has_ready_calls() or self._source.calls_wakeup():
            self._idle.clear()
            await self._idle.wait()

    def _pump(self) -> None:
        """Takes and starts whatever may go now, and sets the timer for the rest."""
        self._soon = None
        if self._is_closed or self._is_held:
            return
        now = self._time()
        effects: list[Effect] = []
        for lanes, bucket in self._buckets.items():
            room, spare = self._room(bucket, now)
            dispatches, caused = self._source.take_calls(now, room, spare, lanes)
            bucket.spend(len(dispatches), now)
            effects += caused
            for dispatch in dispatches:
                self._start(dispatch)
        self._set_timer(now)
        self._idle.set()
        if effects:
            self._on_effects(effects)

    def _start(self, dispatch: Dispatch) -> None:
        self._busy.add(dispatch.id)
        task = asyncio.get_running_loop().create_task(self._carry_out(dispatch))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _room(self, bucket: TokenBucket, now: float) -> tuple[int, int]:
        """Requests that may go now, and how many of them are kept for binds."""
        free = self._workers - len(self._busy)
        tokens = bucket.whole(now)
        worker_share = min(self._workers - 1, max(1, self._workers // 8))
        if tokens is None:
            return free, worker_share
        token_share = min(bucket.burst - 1, max(1, bucket.burst // 5))
        room = max(0, min(free, tokens))
        # Both shares must stay: of the free workers and of the tokens.
        return room, max(0, room - min(free - worker_share, tokens - token_share))

    def _set_timer(self, now: float) -> None:
        """The next moment at which more may go: a token comes, or a delayed call is due."""
        waits: list[float] = []
        due = self._source.calls_wakeup()
        if due is not None:
            waits.append(due - now)
        for lanes, bucket in self._buckets.items():
            if not bucket.is_unlimited and self._source.has_ready_calls(lanes):
                waits.append(bucket.seconds_until((bucket.whole(now) or 0) + 1, now))
        self._stop_timers()
        # A wait of 0 is for a worker: the end of its request wakes us.
        later = [seconds for seconds in waits if seconds > 0]
        if later:
            self._timer = asyncio.get_running_loop().call_later(min(later), self.wake)

    def _stop_timers(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "carrying out an API call failed", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _carry_out(self, dispatch: Dispatch) -> None:
        """One request; its end is one `finish_call`. Only cancellation at close escapes."""
        result: Result
        try:
            result = await self._transport.request(dispatch.request, timeout=dispatch.timeout)
        except TransportError as error:
            result = NoAnswer(error.sent, str(error))
        except Exception as error:  # a transport's bug must not lose the call; its effect is unknown
            log.exception("sending %s for %s failed", dispatch.call_type, dispatch.key.name)
            result = NoAnswer(True, f"{type(error).__name__}: {error}")
        effects = self._source.finish_call(dispatch.id, result, self._time())
        self._busy.discard(dispatch.id)
        self.wake()
        self._idle.set()
        if effects:
            self._on_effects(effects)
