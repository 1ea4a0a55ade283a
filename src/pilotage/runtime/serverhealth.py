"""How well the API server copes with our requests, from its answers of the last seconds. Pure.

Law: one figure in [0, 1]. It falls with the share of answers that were refusals for load (429, 5xx, none at
all) and with answers that take longer than usual, and comes back by itself: old answers count less and less.
"""

from __future__ import annotations

import math

from pilotage.api.wire import Response
from pilotage.calls.types import NoAnswer, Result

MEMORY = 5.0  # seconds after which an answer counts 1/e
# Good answers that are always counted with the rest: a single refusal of a quiet client says little.
PRIOR = 5.0
# How fast "usual" follows: slowly, and a latency below this is never called slow.
USUAL_MEMORY, UNREMARKABLE = 60.0, 0.1
SLOW = 2.0  # times the usual
NEGLIGIBLE = 1e-3  # refusals, by their weight
LEAST_WEIGHT = 0.02  # of one answer in what is recent


class ServerHealth:
    def __init__(self) -> None:
        # Sums in which each answer counts exp(-age / MEMORY).
        self._good = self._all = 0.0
        # Nothing was refused and nothing was slow within living memory.
        self.is_spotless = True
        self._at: float | None = None
        # Weighted means of seconds per answer; None before the first one.
        self._recent: float | None = None
        self._usual: float | None = None

    def saw(self, result: Result, seconds: float, now: float) -> None:
        """An answer, or that none came, `seconds` after the request."""
        elapsed = self._fade(now)
        self._all += 1.0
        if not is_refusal(result):
            self._good += 1.0
        # Of answers that come together each has its weight; what is usual is learnt by time alone.
        self._recent = _towards(self._recent, seconds, max(elapsed, LEAST_WEIGHT * MEMORY), MEMORY)
        self._usual = _towards(self._usual, max(seconds, UNREMARKABLE), elapsed, USUAL_MEMORY)
        self.is_spotless = self._all - self._good < NEGLIGIBLE and self._recent <= SLOW * self._usual

    def accepted(self, now: float) -> float:
        """The share of requests that the server took."""
        fading = self._fading(now)
        return (self._good * fading + PRIOR) / (self._all * fading + PRIOR)

    def pace(self, now: float) -> float:
        """1 while answers come as fast as usual, less the longer they take."""
        if self._recent is None or self._usual is None:
            return 1.0
        seconds = self._usual + (self._recent - self._usual) * self._fading(now)
        return min(1.0, SLOW * self._usual / max(seconds, UNREMARKABLE))

    def level(self, now: float) -> float:
        return self.accepted(now) * self.pace(now)

    def _fade(self, now: float) -> float:
        """Makes the sums those of `now`; returns the seconds since the last answer."""
        fading = self._fading(now)
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._good, self._all = self._good * fading, self._all * fading
        self._at = now if self._at is None else max(now, self._at)
        return elapsed

    def _fading(self, now: float) -> float:
        return 1.0 if self._at is None else math.exp(-max(0.0, now - self._at) / MEMORY)


def is_refusal(result: Result) -> bool:
    """Whether the answer speaks of a server that cannot cope, rather than of what was asked."""
    if isinstance(result, NoAnswer):
        return True
    return isinstance(result, Response) and (result.status in (408, 429) or result.status >= 500)


def _towards(mean: float | None, seconds: float, elapsed: float, memory: float) -> float:
    """A mean over about `memory` seconds, `elapsed` seconds after it was last looked at."""
    return seconds if mean is None else mean + (seconds - mean) * (1.0 - math.exp(-elapsed / memory))
