"""One token bucket for all requests of a client, as client-go's QPS and burst mean it. Pure."""

from __future__ import annotations

import math

# Epoch seconds as floats are exact to about 0.2 us: a token that is there but for this counts, and no wait
# is so short that the clock may not move; so waiting for a token always ends.
_ROUNDING = 1e-3
_SHORTEST_WAIT = 1e-4


class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up. A rate of 0 or less: no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self.qps = qps
        self.burst = max(1, burst)
        # Tokens there were at `_at`.
        self._tokens = float(self.burst)
        self._at: float | None = None

    @property
    def is_unlimited(self) -> bool:
        return self.qps <= 0

    def whole(self, now: float) -> int | None:
        """Requests that may go at once; None: any number."""
        if self.is_unlimited:
            return None
        return math.floor(self._level(now) + _ROUNDING)

    def spend(self, count: int, now: float) -> None:
        if not self.is_unlimited:
            self._tokens, self._at = self._level(now) - count, now

    def change(self, qps: float, burst: int, now: float) -> None:
        """Another rate from now on; what was saved up stays, as far as the new burst allows."""
        if not self.is_unlimited and qps > 0:
            self._tokens, self._at = min(self._level(now), float(max(1, burst))), now
            self.qps, self.burst = qps, max(1, burst)

    def seconds_until(self, count: int, now: float) -> float:
        """How long until `count` tokens are there (never more than the burst)."""
        if self.is_unlimited:
            return 0.0
        missing = min(count, self.burst) - self._level(now)
        return 0.0 if missing <= _ROUNDING else max(missing / self.qps, _SHORTEST_WAIT)

    def _level(self, now: float) -> float:
        if self._at is None or now <= self._at:
            return self._tokens
        return min(float(self.burst), self._tokens + (now - self._at) * self.qps)
