"""A run as figures, each with the aim that it has to meet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.scenario import Aim, Baseline, Storm, aims_of, baseline_of
from pilotage.frontends.bench.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Figures:
    """`bind_*`: seconds from creation to binding, over the good pods that were bound; percentiles are
    interpolated.

    `last_condition`: seconds from the first pod's creation. `patches_*`: status patches sent per bad pod.
    """

    good_bound: int
    bind_p50: float
    bind_p90: float
    bind_p99: float
    bind_max: float
    conditions_missing: int
    last_condition: float
    patches_mean: float
    patches_most: int
    binds_sent: int
    binds_lost: int
    binds_sent_twice: int
    too_many_requests: int


@dataclass(frozen=True, slots=True)
class Verdict:
    aim: Aim
    value: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Report:
    """`requests`: of the scheduler, by kind; `refused`: those without success, by kind and status."""

    storm: Storm
    place: str
    figures: Figures
    requests: Mapping[str, int]
    refused: Mapping[str, int]
    verdicts: tuple[Verdict, ...]
    baseline: Baseline | None = field(default=None)

    @property
    def has_passed(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)


def make_report(storm: Storm, times: PodTimes, traffic: Traffic, *, place: str) -> Report:
    figures = make_figures(storm, times, traffic)
    verdicts = tuple(_verdict(aim, figures, times) for aim in aims_of(storm))
    return Report(storm, place, figures, traffic.requests, traffic.refused, verdicts, baseline_of(storm))


def make_figures(storm: Storm, times: PodTimes, traffic: Traffic) -> Figures:
    binds, judged = times.bind_seconds(), len(times.judged)
    p50, p90, p99 = (float(value) for value in np.percentile(binds or [0.0], (50, 90, 99)))
    bad_patches = [count for name, count in traffic.patches.items() if name not in times.nodes]
    return Figures(
        good_bound=len(binds),
        bind_p50=p50,
        bind_p90=p90,
        bind_p99=p99,
        bind_max=max(binds, default=0.0),
        conditions_missing=storm.bad - judged,
        last_condition=times.last_condition(),
        patches_mean=sum(bad_patches) / storm.bad if storm.bad else 0.0,
        patches_most=max(bad_patches, default=0),
        binds_sent=sum(traffic.binds.values()),
        binds_lost=storm.good - len(binds),
        binds_sent_twice=sum(number > 1 for number in traffic.binds.values()),
        too_many_requests=traffic.too_many,
    )


def _verdict(aim: Aim, figures: Figures, times: PodTimes) -> Verdict:
    """A time without a single bind is no time that was kept."""
    value = float(getattr(figures, aim.figure))
    is_measured = bool(times.bound) or not aim.figure.startswith("bind_")
    return Verdict(aim, value, is_measured and aim.holds(value))
