"""Listens to a scheduler on behalf of a test: attempts, effects and what services complained about."""

from __future__ import annotations

from collections.abc import Callable

from pilotage.scheduling.messages import Attempt, Effect, Event, Log


class Recorder:
    """An `Observer` of `runtime.scheduler`; outlives restarts."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self.attempts: list[tuple[float, Attempt]] = []
        self.notes: list[str] = []

    def effect(self, effect: Effect, now: float) -> None:
        del now
        if isinstance(effect, Attempt):
            self.attempts.append((self._time(), effect))
        elif isinstance(effect, Log):
            self.note(f"{effect.level}: {effect.text}")

    def handled(self, event: Event, seconds: float) -> None:
        del event, seconds

    def decided(self, seconds: float) -> None:
        del seconds

    def note(self, text: str) -> None:
        self.notes.append(f"{self._time():.3f} {text}")

    def attempts_of(self, key: str) -> list[tuple[float, Attempt]]:
        return [(time, attempt) for time, attempt in self.attempts if attempt.key == key]
