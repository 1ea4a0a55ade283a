"""Time for the edge. Only reading it: waiting is always asyncio's, so that a virtual loop drives it."""

from __future__ import annotations

import time
from typing import Protocol

_JUMP_SECONDS = 1.0


class Clock(Protocol):
    def time(self) -> float:
        """Seconds since the epoch; never goes back."""


class RealClock:
    """The machine's time without its steps back: a wall clock set back must not stop every timer.

    A step forward of more than a second (set forward, machine was asleep) is followed.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def time(self) -> float:
        now = time.monotonic() + self._offset
        ahead = time.time() - now
        if ahead > _JUMP_SECONDS:
            self._offset += ahead
            now += ahead
        return now
