"""Where the parts of the engine put their effects while one stimulus is handled.

Laws: every effect carries the number of its stimulus; tickets, steps and asks share one counter and are
never reused; nothing is read back from here by a decision except the time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pilotage.framework.calls import Call
from pilotage.scheduling.messages import (
    Ask,
    Attempt,
    BindingEnded,
    Cancel,
    CancelStep,
    Effect,
    Log,
    PreemptionEnded,
    PreemptionTried,
    Queued,
    ResizeEnded,
    ResizeTried,
    RunStep,
    Submit,
)


class Outbox:
    def __init__(self) -> None:
        self.now = 0.0  # time of the present stimulus, seconds since the epoch
        self.stimulus = 0
        self._effects: list[Effect] = []
        self._last_id = 0

    def begin(self, now: float) -> None:
        """A new stimulus. Time never runs backwards here, whatever the clock at the edge does."""
        self.now = max(self.now, now)
        self.stimulus += 1

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def submit(self, call: Call, *, awaited: bool = False) -> int:
        """Returns the ticket that `CallFinished` will carry."""
        ticket = self._new_id()
        self._effects.append(Submit(self.stimulus, ticket, call, awaited))
        return ticket

    def cancel(self, uid: str, why: str) -> None:
        self._effects.append(Cancel(self.stimulus, uid, why))

    def run_step(self, plugin: str, point: str, uid: str, start: Callable[[], Awaitable[Any]]) -> int:
        step = self._new_id()
        self._effects.append(RunStep(self.stimulus, step, plugin, point, uid, start))
        return step

    def cancel_step(self, step: int) -> None:
        self._effects.append(CancelStep(self.stimulus, step))

    def ask(self, request: Any, deadline: float) -> int:
        ask = self._new_id()
        self._effects.append(Ask(self.stimulus, ask, request, deadline))
        return ask

    def attempt(self, uid: str, key: str, profile: str, result: str, attempts: int, **details: Any) -> None:
        self._effects.append(Attempt(self.stimulus, uid, key, profile, result, attempts, **details))

    def binding_ended(self, uid: str, profile: str, points: Sequence[tuple[str, str, float]]) -> None:
        self._effects.append(BindingEnded(self.stimulus, uid, profile, tuple(points)))

    def queued(self, uid: str, key: str, queue: str, event: str) -> None:
        self._effects.append(Queued(self.stimulus, uid, key, queue, event))

    def preemption_tried(self, uid: str, profile: str, victims: int | None) -> None:
        self._effects.append(PreemptionTried(self.stimulus, uid, profile, victims))

    def preemption_ended(self, uid: str, seconds: float, is_ok: bool) -> None:
        self._effects.append(PreemptionEnded(self.stimulus, uid, seconds, is_ok))

    def resize_tried(self, uid: str, key: str, profile: str, outcome: str, victims: int) -> None:
        self._effects.append(ResizeTried(self.stimulus, uid, key, profile, outcome, victims))

    def resize_ended(self, uid: str, key: str, profile: str, resolution: str, seconds: float) -> None:
        self._effects.append(ResizeEnded(self.stimulus, uid, key, profile, resolution, seconds))

    def log(self, level: str, text: str) -> None:
        self._effects.append(Log(self.stimulus, level, text))
