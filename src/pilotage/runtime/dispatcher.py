"""Sends what the call queue hands out, over any Transport, with bounded workers and a rate limit.

Laws:
- A request is taken from the queue only when a worker and a token are there for it, so that until the
  last moment newer wishes can replace it and more urgent ones overtake it.
- All lanes share one limiter, events too; it reserves for the urgent ones and learns from every answer
  (`limiter_adaptive`).
- Each request taken ends in exactly one `finish_call`, whatever happened to it.
- One asyncio task per request in flight and one timer; no thread. All waiting goes through the running
  loop, all times through `time`, so that it works under virtual time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from pilotage.calls.lanes import ALL_LANES, DEFAULT_LIMITS, Allowance, LaneLimits
from pilotage.calls.reports import Dispatch
from pilotage.calls.types import Lane, NoAnswer, Result
from pilotage.client.transport import Transport, TransportError
from pilotage.runtime.limiter_adaptive import CallLimiter
from pilotage.scheduling.messages import Effect

log = logging.getLogger("pilotage.dispatcher")

WORKERS = 64
SHUTTING_DOWN = "the scheduler is shutting down"


class CallSource(Protocol):
    """Where requests come from: `runtime.core.Core`."""

    def take_calls(self, now: float, allowance: Allowance) -> tuple[Sequence[Dispatch], Sequence[Effect]]: ...

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
        lanes: Mapping[Lane, LaneLimits] = DEFAULT_LIMITS,
    ) -> None:
        self._source = source
        self._transport = transport
        self._time = time
        self._on_effects = on_effects
        self._limiter = CallLimiter(qps, burst, workers, lanes)
        # One task per request; kept until it has ended for good.
        self._tasks: set[asyncio.Task[None]] = set()
        # Requests whose answer is awaited, by lane: exactly the occupied workers.
        self._out: dict[Lane, int] = dict.fromkeys(Lane, 0)
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
        return sum(self._out.values())

    def describe(self) -> dict[str, Any]:
        """The limiter as it stands, for `/debug/calls`: JSON values."""
        return {**self._limiter.describe(self._time()), "in_flight": self.in_flight}

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
            log.warning("%d API calls were still under way when the scheduler stopped", self.in_flight)
        self._is_closed = True
        self._stop_timers()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._on_effects(self._source.shutdown_calls(SHUTTING_DOWN, self._time()))

    async def _wait_idle(self) -> None:
        while self.in_flight or self._soon or self._source.has_ready_calls() or self._source.calls_wakeup():
            self._idle.clear()
            await self._idle.wait()

    def _pump(self) -> None:
        """Takes and starts whatever may go now, and sets the timer for the rest."""
        self._soon = None
        if self._is_closed or self._is_held:
            return
        now = self._time()
        dispatches, effects = self._source.take_calls(now, self._limiter.allowance(self._out, now))
        self._limiter.spent([dispatch.lane for dispatch in dispatches], now)
        for dispatch in dispatches:
            self._start(dispatch)
        self._set_timer(now)
        self._idle.set()
        if effects:
            self._on_effects(effects)

    def _start(self, dispatch: Dispatch) -> None:
        self._out[dispatch.lane] += 1
        task = asyncio.get_running_loop().create_task(self._carry_out(dispatch))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _set_timer(self, now: float) -> None:
        """The next moment at which more may go: a token comes, or a delayed call is due."""
        self._stop_timers()
        waits: list[float] = []
        if not self._limiter.never_waits(now):
            ready = [lane for lane in ALL_LANES if self._source.has_ready_calls((lane,))]
            waits += [self._limiter.seconds_until(lane, now) for lane in ready]
        due = self._source.calls_wakeup()
        if due is not None:
            waits.append(due - now)
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
        sent_at = self._time()
        result = await self._answer(dispatch)
        now = self._time()
        self._limiter.saw(result, now - sent_at, now)
        effects = self._source.finish_call(dispatch.id, result, now)
        self._out[dispatch.lane] -= 1
        self.wake()
        self._idle.set()
        if effects:
            self._on_effects(effects)

    async def _answer(self, dispatch: Dispatch) -> Result:
        try:
            return await self._transport.request(dispatch.request, timeout=dispatch.timeout)
        except TransportError as error:
            return NoAnswer(error.sent, str(error))
        except Exception as error:  # a transport's bug must not lose the call; its effect is unknown
            log.exception("sending %s for %s failed", dispatch.call_type, dispatch.key.name)
            return NoAnswer(True, f"{type(error).__name__}: {error}")
