"""The driver: facts from reflectors into the core, effects out as tasks, decisions in slices.

Laws:
- One loop, one thread: the core is only called from here, never while it runs.
- Nothing is decided before every informer has told its first list, nor after the stop.
- Decisions come in slices of about 5 ms (under a clock that is not real: of a number of pods), with the
  loop's other work (watches, answers, timers) between them.
- All waiting is the running loop's, all times are `clock`'s: virtual time drives everything.
- At the end: no new attempts, steps cancelled, binds sent, everything awaited, within five seconds.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from pilotage.calls.queue import CallQueue
from pilotage.calls.reports import Statistics as CallStatistics
from pilotage.client.reflector import ReflectorStatistics
from pilotage.client.transport import Transport
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.runtime.call_types_loading import call_types
from pilotage.runtime.clock import Clock, RealClock
from pilotage.runtime.core import Core
from pilotage.runtime.dispatcher import Dispatcher
from pilotage.runtime.extenders import Extenders, OpenPoster
from pilotage.runtime.informers import Informers
from pilotage.runtime.pilotage_config import CallTuning
from pilotage.runtime.raw_objects import RawObjects
from pilotage.runtime.sequential import Awaited
from pilotage.runtime.steps import Asker, Steps
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import (
    Ask,
    Attempt,
    CancelStep,
    Deleted,
    Effect,
    Event,
    Log,
    PermitResolved,
    RunStep,
    Tick,
)
from pilotage.scheduling.statistics import EngineStatistics

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.005
SLICE_PODS = 50
DRAIN_SECONDS = 4.0
MIN_WAIT_SECONDS = 0.001
_DUE_SECONDS = 1e-6  # what epoch seconds in a float cannot tell apart

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Observer(Protocol):
    """Looks on: metrics, tests, the dashboard. Must neither wait nor raise."""

    def effect(self, effect: Effect, now: float) -> None: ...

    def handled(self, event: Event, seconds: float) -> None: ...

    def decided(self, seconds: float) -> None:
        """One pod's decision took so long."""


@dataclass(frozen=True, slots=True)
class SchedulerStatistics:
    engine: EngineStatistics
    calls: CallStatistics
    informers: Mapping[str, ReflectorStatistics]
    steps: int  # plugin steps and questions under way
    is_ready: bool


class Scheduler:
    """`identity` is who reports events. `ready` is set once deciding has begun."""

    def __init__(
        self,
        transport: Transport,
        settings: Settings,
        registry: Registry,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        identity: str = "pilotage",
        observers: Iterable[Observer] = (),
        asker: Asker | None = None,
        freeze_gc: bool = False,
        tuning: CallTuning | None = None,
        open_poster: OpenPoster | None = None,
    ) -> None:
        """`open_poster`: the way to an extender, HTTP as a rule. `asker`: for questions to anybody else.

        Raises what building the profiles raises (ProfileError)."""
        self.clock: Clock = clock or RealClock()
        self.ready = asyncio.Event()
        self._raw = RawObjects(settings.extenders)
        self.extenders = Extenders(settings.extenders, self._raw, self.clock.time, open_poster)
        self.engine = Engine(settings, registry, seed, send=self.extenders.ask)
        tuning = tuning or CallTuning()
        self.calls = CallQueue(call_types(identity, tuning.types), tuning.lanes)
        self.core = Core(self.engine, self.calls)
        self._awaited = Awaited(self.calls, settings.gates)
        self.is_stopping = False
        self._active: asyncio.Event | None = None
        self._observers = tuple(observers)
        self._freeze_gc = freeze_gc
        self._slice_seconds = SLICE_SECONDS if isinstance(self.clock, RealClock) else None
        # Set when something happened that the deciding task should look at.
        self._wake = asyncio.Event()
        self._informers = Informers(transport, self.handle, seed=seed, decoder=self._raw.decoder)
        self._steps = Steps(self.handle, self.clock.time, self.extenders.before(asker))
        self._dispatcher = Dispatcher(
            self.core,
            transport,
            time=self.clock.time,
            on_effects=self._carry_out,
            qps=settings.qps,
            burst=settings.burst,
            workers=tuning.workers,
            lanes=tuning.lanes,
        )

    def add_observer(self, observer: Observer) -> None:
        self._observers = (*self._observers, observer)

    @property
    def is_synced(self) -> bool:
        """Every informer has told its first list; whoever is not the leader has no more than that."""
        return self._informers.synced.is_set()

    def statistics(self) -> SchedulerStatistics:
        return SchedulerStatistics(
            self.engine.statistics(),
            self.calls.statistics(self.clock.time()),
            self._informers.statistics(),
            len(self._steps),
            self.ready.is_set(),
        )

    def call_limits(self) -> dict[str, Any]:
        """The rate and shares of API calls as they stand, as JSON values."""
        return self._dispatcher.describe()

    def resolve_permit(self, uid: str, plugin: str, *, allowed: bool, reason: str = "") -> None:
        """Allows or rejects a pod that `plugin` keeps waiting at Permit."""
        self.handle(PermitResolved(uid, plugin, allowed, reason))

    def handle(self, event: Event) -> None:
        """Takes in one fact, now. Only from the scheduler's own loop."""
        start = perf_counter()
        if isinstance(event, Deleted):
            self._raw.gone(event.object)
        self._carry_out(self.core.handle(event, self.clock.time()))
        seconds = perf_counter() - start
        for observer in self._observers:
            observer.handled(event, seconds)

    async def run(self, stop: asyncio.Event, active: asyncio.Event | None = None) -> None:
        """Until `stop` is set. Raises only for bugs: a part that ended by itself ends the whole.

        Until `active` is set (None: from the start) it follows the cluster and decides and writes nothing.
        """
        tasks = asyncio.get_running_loop()
        self._active = active
        if active is not None and not active.is_set():
            self._dispatcher.hold()
        informers = tasks.create_task(self._informers.run(), name="informers")
        deciding = tasks.create_task(self._decide(), name="deciding")
        stopping = tasks.create_task(stop.wait(), name="waiting for the stop")
        try:
            await asyncio.wait((informers, deciding, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._shut_down(informers, deciding, stopping)
        for task in (informers, deciding):
            if not task.cancelled():
                await task

    async def _shut_down(
        self, informers: asyncio.Task[None], deciding: asyncio.Task[None], stopping: asyncio.Task[bool]
    ) -> None:
        self.is_stopping = True
        await _end(deciding, stopping)
        await self._steps.close()
        await self.extenders.close()
        await self._dispatcher.close(DRAIN_SECONDS)
        await _end(informers)
        self.ready.clear()

    # -- deciding

    async def _decide(self) -> None:
        await self._informers.synced.wait()
        if self._active is not None:
            await self._active.wait()
            self._dispatcher.resume()
        if self._freeze_gc:
            # What the first lists brought stays: the collector need not look at it again and again.
            gc.collect()
            gc.freeze()
        logger.info("all informers synced: scheduling begins")
        self.ready.set()
        while True:
            self._wake.clear()
            self._tick_if_due()
            self._slice()
            if self._may_decide:
                await asyncio.sleep(0)
            else:
                await self._wait()

    def _slice(self) -> None:
        """Decides pods until the slice is used up or none is left."""
        begin = perf_counter()
        for _ in range(SLICE_PODS):
            if not self._may_decide:
                return
            start = perf_counter()
            self._awaited.begin()
            effects = self.core.schedule(self.clock.time(), 1)
            self._awaited.end()
            end = perf_counter()
            for observer in self._observers:
                observer.decided(end - start)
            self._carry_out(effects)
            if self._slice_seconds is not None and end - begin >= self._slice_seconds:
                return

    @property
    def _may_decide(self) -> bool:
        return self.engine.has_work and not self._awaited.is_open

    def _tick_if_due(self) -> None:
        wakeup = self.core.next_wakeup()
        now = self.clock.time()
        if wakeup is not None and wakeup <= now + _DUE_SECONDS:
            self._carry_out(self.core.handle(Tick(), max(now, wakeup)))

    async def _wait(self) -> None:
        """Until something happened or the next deadline of the core."""
        wakeup = self.core.next_wakeup()
        if wakeup is None:
            await self._wake.wait()
            return
        delay = max(wakeup - self.clock.time(), MIN_WAIT_SECONDS)
        timer = asyncio.get_running_loop().call_later(delay, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    # -- effects

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        now = self.clock.time()
        for effect in effects:
            match effect:
                case RunStep():
                    self._steps.run(effect)
                case CancelStep():
                    self._steps.cancel(effect.step)
                case Ask():
                    self._steps.ask(effect)
                case Log():
                    logger.log(_LEVELS[effect.level], "%s", effect.text)
                case Attempt():
                    _log_attempt(effect)
            for observer in self._observers:
                observer.effect(effect, now)
        self._wake.set()
        self._dispatcher.wake()


async def _end(*tasks: asyncio.Task[object]) -> None:
    """Cancels and awaits; what a task raised is looked at by whoever started it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _log_attempt(attempt: Attempt) -> None:
    if not logger.isEnabledFor(logging.DEBUG):
        return
    end = f"on {attempt.node}" if attempt.node else attempt.message
    logger.debug("pod %s: attempt %d: %s %s", attempt.key, attempt.attempts, attempt.result, end)
