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
# Parts of burst and workers that a lane leaves to those above it.
RESERVES: Mapping[Lane, float] = {
    Lane.VOLUME: 0.1,
    Lane.NOMINATION: 0.15,
    Lane.STATUS: 0.2,
    Lane.EVENT: 0.25,
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
        self._full = (qps, burst) if qps > 0 else (UNCONFIGURED_QPS, UNCONFIGURED_BURST)
        self._paces = {lane: TokenBucket(*self._full) for lane in PATIENCE}

    def saw(self, result: Result, seconds: float, now: float) -> None:
        """An answer, or that none came, `seconds` after the request was sent."""
        self.health.saw(result, seconds, now)
        qps, burst = self._full
        for lane, pace in self._paces.items():
            share = self.share(lane, now)
            pace.change(qps * share, int(burst * share), now)

    def spent(self, lanes: Collection[Lane], now: float) -> None:
        """Requests of these lanes were sent."""
        self.bucket.spend(len(lanes), now)
        for lane in lanes:
            if lane in self._paces:
                self._paces[lane].spend(1, now)

    def share(self, lane: Lane, now: float) -> float:
        """The part of the full rate that a lane may use, in [FLOOR, 1]."""
        if lane not in PATIENCE:
            return 1.0
        share = PATIENCE[lane] * self.health.level(now) ** 2
        return 1.0 if share >= _FULL else max(FLOOR, share)

    def allowance(self, in_flight: Mapping[Lane, int], now: float) -> Allowance:
        """What may go now; `in_flight`: requests out, by lane."""
        free = self.workers - sum(in_flight.values())
        tokens = self.bucket.whole(now)
        room = free if tokens is None else min(free, tokens)
        reserve = {lane: room - self._beyond(lane, free, tokens) for lane in PATIENCE}
        quota = {lane: self._quota(lane, in_flight.get(lane, 0), now) for lane in self._shrunk(now)}
        return Allowance(max(0, room), reserve, quota)

    def seconds_until(self, lane: Lane, now: float) -> float:
        """How long until a request of `lane` has its token; 0: it is there (or none is needed)."""
        wait = self.bucket.seconds_until(self._kept(lane) + 1, now)
        if self.share(lane, now) < 1.0:
            wait = max(wait, self._paces[lane].seconds_until(1, now))
        return wait

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

    def _beyond(self, lane: Lane, free: int, tokens: int | None) -> int:
        """Requests that a lane could send without touching what is reserved from it."""
        of_workers = free - _part(self.workers, RESERVES[lane])
        return of_workers if tokens is None else min(of_workers, tokens - self._kept(lane))

    def _kept(self, lane: Lane) -> int:
        return _part(self.bucket.burst, RESERVES[lane]) if lane in RESERVES else 0

    def _shrunk(self, now: float) -> list[Lane]:
        return [lane for lane in PATIENCE if self.share(lane, now) < 1.0]

    def _quota(self, lane: Lane, out: int, now: float) -> int:
        """What a lane with a shrunk share may send: as its pace has it, and with fewer out at once."""
        at_once = max(1, round(self._limits[lane].in_flight * self.share(lane, now)))
        return max(0, min(at_once - out, self._paces[lane].whole(now) or 0))


def _part(total: int, part: float) -> int:
    """At least one, where that leaves one."""
    return min(total - 1, max(1, round(total * part)))
