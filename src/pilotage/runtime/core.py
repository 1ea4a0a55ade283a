"""Engine and call queue as one state machine: pure glue, no waiting, no clock.

Laws:
- What the engine submits goes to the call queue; how it ended returns to the engine as `CallFinished`
  in the same turn, for every awaited ticket exactly once.
- Objects pass the call queue before they reach the engine, so that decisions see the newest state with
  the changes that are still on their way; where such a change failed, the engine sees the object again
  without it.
- The object that a write returned reaches the engine at once; older versions from informers do not.
- Out come only effects that somebody outside must carry out or look at, and requests to send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pilotage.api.meta import KubeObject
from pilotage.calls.lanes import ALL_LANES, Allowance
from pilotage.calls.queue import CallQueue
from pilotage.calls.reports import Dispatch, Finished
from pilotage.calls.types import Lane, Result
from pilotage.framework.calls import CallResult
from pilotage.runtime.newest import NewestObjects
from pilotage.scheduling.messages import (
    CallFinished,
    Cancel,
    Deleted,
    Effect,
    Event,
    Log,
    Submit,
    Tick,
    Upserted,
)

MAX_TURNS = 100_000


class EngineLike(Protocol):
    """What the glue needs of `scheduling.engine.Engine`."""

    def handle(self, event: Event, now: float) -> Sequence[Effect]: ...

    def schedule(self, now: float, limit: int) -> Sequence[Effect]: ...

    def next_wakeup(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class CallEnded(Effect):
    """A call ended; for metrics and logs only."""

    finished: Finished


class EndlessTurnError(RuntimeError):
    """A bug: engine and call queue answer each other without end."""


class Core:
    def __init__(self, engine: EngineLike, calls: CallQueue, newest: NewestObjects | None = None) -> None:
        self.engine = engine
        self.calls = calls
        self._newest = newest if newest is not None else NewestObjects()

    def handle(self, event: Event, now: float) -> list[Effect]:
        """A fact. Returns what is left to do outside."""
        match event:
            case Upserted():
                return self._upserted(event, now)
            case Deleted():
                return self._deleted(event, now)
            case Tick():
                ended = self._ended(self.calls.expire(now), now)
                return ended + self._carry(self.engine.handle(event, now), now)
        return self._carry(self.engine.handle(event, now), now)

    def schedule(self, now: float, limit: int) -> list[Effect]:
        """Decides up to `limit` pods."""
        return self._carry(self.engine.schedule(now, limit), now)

    def next_wakeup(self) -> float | None:
        """Epoch seconds of the earliest deadline of engine or call queue: send `Tick` then."""
        times = [t for t in (self.engine.next_wakeup(), self.calls.next_wakeup()) if t is not None]
        return min(times, default=None)

    def take_calls(self, now: float, allowance: Allowance) -> tuple[list[Dispatch], list[Effect]]:
        """Requests to send now, see `CallQueue.take`, and effects of calls that ended instead."""
        taken = self.calls.take(now, allowance)
        return taken, self._ended(self.calls.collect(), now)

    def finish_call(self, dispatch: int, result: Result, now: float) -> list[Effect]:
        """The answer to a dispatch, or that none came."""
        return self._ended(self.calls.finish(dispatch, result, now), now)

    def calls_wakeup(self) -> float | None:
        """When a delayed call is due."""
        return self.calls.next_wakeup()

    def has_ready_calls(self, lanes: Collection[Lane] = ALL_LANES) -> bool:
        """Whether a request of `lanes` could go out at once if there were room for it."""
        return self.calls.has_ready(lanes)

    def drain_calls(self, why: str, now: float) -> list[Effect]:
        """No new calls; all that wait are cancelled, binds excepted."""
        return self._ended(self.calls.drain(why, now), now)

    def shutdown_calls(self, why: str, now: float) -> list[Effect]:
        """Cancels every call, also those in flight."""
        return self._ended(self.calls.shutdown(why, now), now)

    def check_invariants(self) -> None:
        self.calls.check_invariants()

    def _upserted(self, event: Upserted, now: float) -> list[Effect]:
        if not self._newest.seen(event.resource, event.object):
            return []
        synced = self.calls.sync(event.resource, event.object, now)
        if synced.object is not event.object:
            event = Upserted(event.resource, synced.object)
        effects = self._carry(self.engine.handle(event, now), now)
        return effects + self._ended(synced.finished, now)

    def _deleted(self, event: Deleted, now: float) -> list[Effect]:
        uid = event.object.metadata.uid
        self._newest.gone(uid)
        effects = self._carry(self.engine.handle(event, now), now)
        return effects + self._ended(self.calls.cancel(uid, "the object was deleted", now), now)

    def _carry(self, effects: Iterable[Effect], now: float) -> list[Effect]:
        """Carries out what concerns calls, to the end; returns the rest in order."""
        out: list[Effect] = []
        todo = deque(effects)
        for _ in range(MAX_TURNS):
            if not todo:
                return out
            effect = todo.popleft()
            match effect:
                case Submit(ticket=ticket, call=call, awaited=awaited):
                    base = self._newest.get(call.key.uid)
                    ended = self.calls.offer(call, now, ticket if awaited else None, base)
                    self._tell(ended, effect.stimulus, now, out, todo)
                case Cancel(uid=uid, why=why):
                    self._tell(self.calls.cancel(uid, why, now), effect.stimulus, now, out, todo)
                case _:
                    out.append(effect)
        raise EndlessTurnError(f"more than {MAX_TURNS} effects in one turn; the last was {effect}")

    def _ended(self, ended: Iterable[Finished], now: float) -> list[Effect]:
        out: list[Effect] = []
        todo: deque[Effect] = deque()
        self._tell(ended, 0, now, out, todo)
        return out + self._carry(todo, now)

    def _tell(
        self, ended: Iterable[Finished], stimulus: int, now: float, out: list[Effect], todo: deque[Effect]
    ) -> None:
        """Reports ended calls: to the log, and to the engine whatever it must know of them."""
        open_ends = deque(ended)
        while open_ends:
            one = open_ends.popleft()
            out.append(CallEnded(stimulus, one))
            out.extend(_lost(one, stimulus))
            changed = self._changed_by(one)
            if changed is not None:
                synced = self.calls.sync(one.key.resource, changed, now)
                open_ends.extend(synced.finished)
                todo.extend(self.engine.handle(Upserted(one.key.resource, synced.object), now))
            if one.ticket is not None:
                todo.extend(self.engine.handle(CallFinished(one.ticket, one.outcome), now))

    def _changed_by(self, one: Finished) -> KubeObject | None:
        """The object that decisions must see anew: as written, or without the change that failed."""
        if one.object is not None and self._newest.written(one.key.resource, one.object):
            return one.object
        return self._newest.get(one.restore.metadata.uid) if one.restore is not None else None


def _lost(one: Finished, stimulus: int) -> list[Effect]:
    """A failure that nobody waits for is at least logged."""
    if one.ticket is not None or one.outcome.result is not CallResult.FAILED:
        return []
    where = f"{one.key.namespace}/{one.key.name}".lstrip("/")
    outcome = one.outcome
    text = f"{one.call_type} for {one.key.resource} {where} failed: {outcome.error or 'no answer'}"
    return [Log(stimulus, "warning", text + (f" (HTTP {outcome.status})" if outcome.status else ""))]
