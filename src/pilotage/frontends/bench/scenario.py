"""The storm: many pods that can never fit, then a few that must not wait behind their status writes.

Laws: a `Storm` is a whole description of a run, faults and limits included, and travels as JSON; aims depend
on it alone. The aims of the default preset are those of async API calls; without the gate a cycle waits for
its writes by design, and a good pod for the cycles before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pilotage.framework.gates import ASYNC_API_CALLS

STORM, A1 = "storm", "a1"


@dataclass(frozen=True, slots=True)
class Storm:
    """Times in seconds; `rate`: good pods a second, 0: all at once; `reject`: share of calls answered 429."""

    preset: str = STORM
    nodes: int = 50
    bad: int = 2000
    good: int = 60
    rate: float = 5.0
    delay: float = 5.0
    qps: float = 50.0
    burst: int = 100
    latency: float = 0.0
    reject: float = 0.0
    seed: int = 0
    node_cpu: str = "4"
    bad_cpu: str = "8"
    good_cpu: str = "100m"
    gates: Mapping[str, bool] = field(default_factory=dict)  # those that differ from their defaults

    @property
    def is_async(self) -> bool:
        return self.gates.get(ASYNC_API_CALLS, True)

    @property
    def is_faulty(self) -> bool:
        return bool(self.latency or self.reject)

    @property
    def creation_seconds(self) -> float:
        """How long the good pods take to be created."""
        return self.good / self.rate if self.rate else 0.0


PRESETS: Mapping[str, Storm] = {
    STORM: Storm(),
    A1: Storm(A1, nodes=1, bad=200, good=1, rate=0.0, delay=0.0, qps=5.0, burst=5, good_cpu="1"),
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """Seconds that kube-scheduler v1.36 took for the default preset on 2 cores."""

    p50: float
    p99: float


_BASELINES = {True: Baseline(22.1, 27.4), False: Baseline(26.2, 31.4)}


def baseline_of(storm: Storm) -> Baseline | None:
    """Only for the very scenario that was measured there."""
    like_default = replace(storm, gates={}, seed=0) == PRESETS[STORM]
    return _BASELINES[storm.is_async] if like_default else None


@dataclass(frozen=True, slots=True)
class Aim:
    """`figure` of the report must be less than `limit` (`inclusive`: or equal)."""

    figure: str
    limit: float
    inclusive: bool = False

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.inclusive else value < self.limit


def aims_of(storm: Storm) -> list[Aim]:
    """What must hold for exit status 0; every good pod is bound, once, in any case."""
    counts = [Aim("binds_lost", 0, inclusive=True), Aim("binds_sent_twice", 0, inclusive=True)]
    return [*_times(storm), *counts]


def _times(storm: Storm) -> Iterator[Aim]:
    conditions = Aim("conditions_missing", 0, inclusive=True)
    if storm.preset == A1 and not storm.is_faulty:
        if storm.is_async:
            yield Aim("bind_max", 2.0, inclusive=True)
        yield conditions
        yield Aim("last_condition", 60.0, inclusive=True)
        return
    if storm.is_async:
        yield from _latencies(storm)
    if not storm.reject:
        yield conditions


def _latencies(storm: Storm) -> Iterator[Aim]:
    if storm.reject:
        yield Aim("bind_p50", 3.0)
        yield Aim("bind_p99", 10.0)
    else:
        yield Aim("bind_p99", 2.0 if storm.latency else 1.0)
