"""The best of several candidates, by kube-scheduler's ordered criteria; the first of those that are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilotage.plugins.preemption.dry_run import Candidate

_OFFSET = 2**31  # makes priorities positive, so that fewer victims sum up to less


def best_candidate(candidates: Sequence[Candidate], now: float, *, spares_resizes: bool = False) -> Candidate:
    """A node without victims wins at once. `now` stands for start times that are not known.

    `spares_resizes`: where nothing else decides, a victim that is being resized is avoided.

    Raises ValueError when there is none.
    """
    for candidate in candidates:
        if not candidate.victims:
            return candidate
    left: Sequence[Candidate] = candidates
    for criterion in (*CRITERIA, _resizes) if spares_resizes else CRITERIA:
        left = _lowest(left, [criterion(candidate, now) for candidate in left])
        if len(left) == 1:
            break
    if not left:
        raise ValueError("no candidate to choose from")
    return left[0]


def _lowest(candidates: Sequence[Candidate], values: Sequence[float]) -> Sequence[Candidate]:
    lowest = min(values, default=0)
    return [candidate for candidate, value in zip(candidates, values, strict=True) if value == lowest]


def _violations(candidate: Candidate, _now: float) -> float:
    return candidate.violations


def _highest_priority(candidate: Candidate, _now: float) -> float:
    return candidate.victims[0].priority


def _sum_of_priorities(candidate: Candidate, _now: float) -> float:
    return sum(victim.priority + _OFFSET for victim in candidate.victims)


def _number(candidate: Candidate, _now: float) -> float:
    return len(candidate.victims)


def _earliest_start(candidate: Candidate, now: float) -> float:
    """The later the better: among the victims of the highest priority, who has run longest."""
    if len(candidate.victims) == 1:
        start = candidate.victims[0].start_time
        return -now if start is None else -start
    highest = candidate.victims[0].priority
    starts = [victim.start_time for victim in candidate.victims if victim.priority == highest]
    return -min(now if start is None else start for start in starts)


def _resizes(candidate: Candidate, _now: float) -> float:
    return any(victim.is_resizing for victim in candidate.victims)


CRITERIA: tuple[Callable[[Candidate, float], float], ...] = (
    _violations,
    _highest_priority,
    _sum_of_priorities,
    _number,
    _earliest_start,
)
"""The lowest value wins; the next one decides among those that are equal."""
