"""One limiter for all calls: the configured rate, what of it each lane may use, and less for the low lanes
while the server cannot cope (A12). Pure.

Laws:
- All requests together keep to `qps` and `burst` (clientConnection), as client-go means them.
- Tokens and workers are reserved by importance: what status writes and events leave is there when a bind
  comes. A bind itself is held back by the rate alone.
- Refusals for load and slow answers shrink the shares of the lanes, events first, then status writes, then
  nominations and volumes; no share falls below `FLOOR`, and all come back as the server recovers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pilotage.calls.lanes import DEFAULT_LIMITS, Allowance, LaneLimits
from pilotage.calls.types import Lane, Result
from pilotage.runtime.limiter import TokenBucket
from pilotage.runtime.serverhealth import ServerHealth

FLOOR = 0.02
# What shares are parts of where no rate is configured: requests a second.
UNCONFIGURED_QPS, UNCONFIGURED_BURST = 500.0, 500
# share = min(1, patience * health squared): the higher, the longer a lane keeps its full rate.
PATIENCE: Mapping[Lane, float] = {Lane.VOLUME: 4.0, Lane.NOMINATION: 3.0, Lane.STATUS: 1.5, Lane.EVENT: 1.0}
# Parts of burst and workers that a lane leaves to those above it. Events leave so much that a write a moment
# late still finds the tokens it saved up: without asynchronous calls the next pod waits for it.
RESERVES: Mapping[Lane, float] = {
    Lane.VOLUME: 0.1,
    Lane.NOMINATION: 0.15,
    Lane.STATUS: 0.2,
    Lane.EVENT: 0.5,
}
# A share this near to 1 is 1: noise shall not pace a lane.
_FULL = 0.97


class CallLimiter:
    """`qps` of 0 or less: no rate, save for lanes that are shrunk."""

    def __init__(
        self, qps: float, burst: int, workers: int, limits: Mapping[Lane, LaneLimits] = DEFAULT_LIMITS
    ) -> None:
        self.bucket = TokenBucket(qps, burst)
        self.health = ServerHealth()
        self.workers = max(1, workers)
        self._limits = limits
        self._kept_workers = {lane: _part(self.workers, part) for lane, part in RESERVES.items()}
        self._kept_tokens = {lane: _part(self.bucket.burst, part) for lane, part in RESERVES.items()}
        self._full = (qps, burst) if qps > 0 else (UNCONFIGURED_QPS, UNCONFIGURED_BURST)
        self._paces = {lane: TokenBucket(*self._full) for lane in PATIENCE}

    def saw(self, result: Result, seconds: float, now: float) -> None:
        """An answer, or that none came, `seconds` after the request was sent."""
        self.health.saw(result, seconds, now)
        qps, burst = self._full
        for lane, share in self._shrunk(now).items():
            self._paces[lane].change(qps * share, int(burst * share), now)

    def spent(self, lanes: Collection[Lane], now: float) -> None:
        """Requests of these lanes were sent."""
        self.bucket.spend(len(lanes), now)
        for lane in lanes:
            if lane in self._shrunk(now):
                self._paces[lane].spend(1, now)

    def share(self, lane: Lane, now: float) -> float:
        """The part of the full rate that a lane may use, in [FLOOR, 1]."""
        return self._shrunk(now).get(lane, 1.0)

    def allowance(self, in_flight: Mapping[Lane, int], now: float) -> Allowance:
        """What may go now; `in_flight`: requests out, by lane."""
        free = self.workers - sum(in_flight.values())
        tokens = self.bucket.whole(now)
        if tokens is None:
            room, reserve = free, self._kept_workers
        else:
            room = min(free, tokens)
            # Both parts must stay: of the free workers and of the tokens.
            reserve = {
                lane: room - min(free - self._kept_workers[lane], tokens - kept)
                for lane, kept in self._kept_tokens.items()
            }
        quota = {lane: self._quota(lane, share, in_flight, now) for lane, share in self._shrunk(now).items()}
        return Allowance(max(0, room), reserve, quota)

    def seconds_until(self, lane: Lane, now: float) -> float:
        """How long until a request of `lane` has its token; 0: it is there (or none is needed)."""
        wait = self.bucket.seconds_until(self._kept_tokens.get(lane, 0) + 1, now)
        if lane in self._shrunk(now):
            wait = max(wait, self._paces[lane].seconds_until(1, now))
        return wait

    def never_waits(self, now: float) -> bool:
        """Whether no lane waits for tokens at present, only for workers."""
        return self.bucket.is_unlimited and not self._shrunk(now)

    def describe(self, now: float) -> dict[str, Any]:
        """For `/debug/calls`: JSON values."""
        shares = {lane.name.lower(): round(self.share(lane, now), 3) for lane in Lane}
        return {
            "qps": self.bucket.qps,
            "burst": self.bucket.burst,
            "tokens": self.bucket.whole(now),
            "accepted": round(self.health.accepted(now), 3),
            "pace": round(self.health.pace(now), 3),
            "shares": shares,
        }

    def _shrunk(self, now: float) -> Mapping[Lane, float]:
        """The lanes that may not use the full rate, with their shares."""
        if self.health.is_spotless:
            return {}
        level = self.health.level(now) ** 2
        shares = {lane: patience * level for lane, patience in PATIENCE.items()}
        return {lane: max(FLOOR, share) for lane, share in shares.items() if share < _FULL}

    def _quota(self, lane: Lane, share: float, in_flight: Mapping[Lane, int], now: float) -> int:
        """What a lane with a shrunk share may send: as its pace has it, and with fewer out at once."""
        free = max(1, round(self._limits[lane].in_flight * share)) - in_flight.get(lane, 0)
        return max(0, min(free, self._paces[lane].whole(now) or 0))


def _part(total: int, part: float) -> int:
    """At least one, where that leaves one."""
    return min(total - 1, max(1, round(total * part)))
