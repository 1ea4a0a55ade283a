"""Who is next: slots by lane and arrival, with limits per lane and a turn for lanes that were passed over.

Laws:
- A key stands here at most once, in one lane, either ready or due later; removing it is O(1).
- Within a lane the earlier arrival goes first, whatever happened to its calls meanwhile.
- The most urgent lane with ready work and free capacity goes first; a lane passed over `PATIENCE` times
  in a row gets the next turn, so that a stream of binds slows status writes down and never stops them.
- What is reserved for a lane goes to others only in such a turn, in the place of its own request: so it is
  there whenever a call comes that finds none of its lane before it. Events get no turn while a bind waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pilotage.calls.types import Lane

# The less urgent, the longer a lane waits for its turn.
PATIENCE: Mapping[Lane, int] = {
    Lane.BIND: 1,
    Lane.VOLUME: 2,
    Lane.NOMINATION: 4,
    Lane.STATUS: 8,
    Lane.EVENT: 64,
}
ALL_LANES: Collection[Lane] = tuple(Lane)  # the most urgent first
_SLACK = 64  # stale heap entries that are always tolerated


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """`in_flight`: requests at once. `cap`: waiting calls; `max_age`: seconds a call may wait (None: any)."""

    in_flight: int
    cap: int | None = None
    max_age: float | None = None


DEFAULT_LIMITS: Mapping[Lane, LaneLimits] = {
    Lane.BIND: LaneLimits(48),
    Lane.VOLUME: LaneLimits(16),
    Lane.NOMINATION: LaneLimits(8),
    Lane.STATUS: LaneLimits(8),
    Lane.EVENT: LaneLimits(4, cap=5000, max_age=300.0),
}


@dataclass(slots=True)
class Allowance:
    """Requests that may go now: `room` in all; a lane stops where no more than its `reserve` is left of it.

    `quota`: lanes that may send at most so many. Spent as requests are taken.
    """

    room: int
    reserve: Mapping[Lane, int] = field(default_factory=dict)
    quota: dict[Lane, int] = field(default_factory=dict)

    def has_quota(self, lane: Lane) -> bool:
        return self.quota.get(lane, 1) > 0

    def allows(self, lane: Lane) -> bool:
        return self.room > self.reserve.get(lane, 0) and self.has_quota(lane)

    def spend(self, lane: Lane) -> None:
        self.room -= 1
        if lane in self.quota:
            self.quota[lane] -= 1


@dataclass(slots=True)
class Place:
    lane: Lane
    sequence: int
    due: float  # 0 when ready


@dataclass(slots=True)
class LaneBook:
    limits: Mapping[Lane, LaneLimits] = field(default_factory=lambda: DEFAULT_LIMITS)
    # A key is here exactly when its slot is queued.
    _places: dict[Hashable, Place] = field(default_factory=dict)
    # Heaps by arrival (ready) and by due time (later); entries that `_places` contradicts are stale.
    _ready: dict[Lane, list[tuple[int, Hashable]]] = field(default_factory=lambda: {k: [] for k in Lane})
    _later: list[tuple[float, int, Hashable]] = field(default_factory=list)
    # Number of keys per lane, ready or later.
    _count: dict[Lane, int] = field(default_factory=lambda: dict.fromkeys(Lane, 0))
    # Requests out per lane.
    in_flight: dict[Lane, int] = field(default_factory=lambda: dict.fromkeys(Lane, 0))
    # How often in a row a lane with ready work saw another one served.
    _passed: dict[Lane, int] = field(default_factory=lambda: dict.fromkeys(Lane, 0))

    def place(self, key: Hashable, lane: Lane, sequence: int, due: float, now: float) -> None:
        place = Place(lane, sequence, due if due > now else 0.0)
        if self._places.get(key) == place:
            return
        self.discard(key)
        self._places[key] = place
        self._count[lane] += 1
        self._push(key, place)

    def discard(self, key: Hashable) -> None:
        place = self._places.pop(key, None)
        if place is not None:
            self._count[place.lane] -= 1
            self._compact(place.lane)

    def mature(self, now: float) -> None:
        """What is due by now becomes ready."""
        while self._later and self._later[0][0] <= now:
            due, sequence, key = heapq.heappop(self._later)
            place = self._places.get(key)
            if place is not None and (place.due, place.sequence) == (due, sequence):
                place.due = 0.0
                self._push(key, place)

    def next_due(self) -> float | None:
        while self._later:
            due, sequence, key = self._later[0]
            place = self._places.get(key)
            if place is not None and (place.due, place.sequence) == (due, sequence):
                return due
            heapq.heappop(self._later)
        return None

    def choose(self, allowance: Allowance) -> Hashable | None:
        """Takes out the next key, None when none may go."""
        if allowance.room <= 0:
            return None
        waiting = [lane for lane in ALL_LANES if self._is_open(lane) and self.first(lane) is not None]
        chosen = self._choose_lane(waiting, allowance)
        if chosen is None:
            return None
        for lane in waiting:
            self._passed[lane] = 0 if lane is chosen else self._passed[lane] + 1
        key = self.first(chosen)
        self.discard(key)
        return key

    def _choose_lane(self, waiting: Sequence[Lane], allowance: Allowance) -> Lane | None:
        allowed = [lane for lane in waiting if allowance.allows(lane)]
        if not allowed:
            return None
        # A turn takes the place of a request that may go anyway: no reserve gets smaller by it.
        overdue = [
            lane
            for lane in waiting
            if self._passed[lane] >= PATIENCE[lane]
            and allowance.has_quota(lane)
            and not (lane is Lane.EVENT and Lane.BIND in waiting)
        ]
        return overdue[-1] if overdue else allowed[0]

    def first(self, lane: Lane) -> Hashable | None:
        """The ready key of a lane that arrived first."""
        heap = self._ready[lane]
        while heap:
            sequence, key = heap[0]
            if self._is_ready(key, lane, sequence):
                return key
            heapq.heappop(heap)
        return None

    def has_ready(self, lanes: Collection[Lane] = ALL_LANES) -> bool:
        """Whether a request of `lanes` could go out if there were room for it."""
        return any(self._is_open(lane) and self.first(lane) is not None for lane in lanes)

    def count(self, lane: Lane) -> int:
        return self._count[lane]

    def keys(self) -> Iterator[Hashable]:
        return iter(self._places)

    def check(self) -> None:
        counted = dict.fromkeys(Lane, 0)
        later = set(self._later)
        ready = {lane: set(heap) for lane, heap in self._ready.items()}
        for key, place in self._places.items():
            counted[place.lane] += 1
            found = (place.sequence, key) in ready[place.lane]
            if place.due:
                found = (place.due, place.sequence, key) in later
            assert found, f"{key} is in no heap"
        assert counted == self._count, f"counts {self._count}, found {counted}"
        assert all(n >= 0 for n in self.in_flight.values()), self.in_flight

    def _is_open(self, lane: Lane) -> bool:
        return self.in_flight[lane] < self.limits[lane].in_flight

    def _is_ready(self, key: Hashable, lane: Lane, sequence: int) -> bool:
        place = self._places.get(key)
        return place is not None and place.lane is lane and place.sequence == sequence and not place.due

    def _push(self, key: Hashable, place: Place) -> None:
        if place.due:
            heapq.heappush(self._later, (place.due, place.sequence, key))
        else:
            heapq.heappush(self._ready[place.lane], (place.sequence, key))

    def _compact(self, lane: Lane) -> None:
        """Keeps stale entries fewer than live ones, so that removal is O(1) over time."""
        live = len(self._places)
        heap = self._ready[lane]
        if len(heap) > 2 * live + _SLACK:
            places = self._places.items()
            self._ready[lane] = [(p.sequence, k) for k, p in places if p.lane is lane and not p.due]
            heapq.heapify(self._ready[lane])
        if len(self._later) > 2 * live + _SLACK:
            self._later = [(p.due, p.sequence, k) for k, p in self._places.items() if p.due]
            heapq.heapify(self._later)
