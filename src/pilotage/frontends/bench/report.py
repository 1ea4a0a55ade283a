"""A run as figures, each with the aim that it has to meet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pilotage.frontends.bench.objects import BAD
from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.scenario import Aim, Baseline, Storm, aims_of, baseline_of
from pilotage.frontends.bench.traffic import Traffic

OURS = "Pilotage"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a watch showed. `bind_*`: seconds from creation to binding, over the good pods that were bound;
    percentiles are interpolated. `last_condition`: seconds from the first pod's creation.
    """

    good_bound: int
    bind_p50: float
    bind_p90: float
    bind_p99: float
    bind_max: float
    conditions_missing: int
    last_condition: float
    binds_lost: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What the scheduler sent. `patches_*`: status patches per bad pod; `requests` by kind; `refused`: those
    without success, by kind and status."""

    binds: int
    binds_sent_twice: int
    patches_mean: float
    patches_most: int
    too_many_requests: int
    requests: Mapping[str, int]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    aim: Aim
    value: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Report:
    """`sent`: None for a scheduler into which nobody can look."""

    storm: Storm
    scheduler: str
    place: str
    figures: Figures
    sent: Sent | None
    verdicts: tuple[Verdict, ...]
    baseline: Baseline | None = field(default=None)

    @property
    def has_passed(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)


def make_report(
    storm: Storm, times: PodTimes, traffic: Traffic | None, *, place: str, scheduler: str = OURS
) -> Report:
    figures = make_figures(storm, times)
    sent = None if traffic is None else make_sent(storm, traffic)
    verdicts = (_verdict(aim, figures, sent) for aim in aims_of(storm))
    told = tuple(verdict for verdict in verdicts if verdict is not None)
    return Report(storm, scheduler, place, figures, sent, told, baseline_of(storm))


def make_figures(storm: Storm, times: PodTimes) -> Figures:
    binds = times.bind_seconds()
    p50, p90, p99 = (float(value) for value in np.percentile(binds or [0.0], (50, 90, 99)))
    return Figures(
        good_bound=len(binds),
        bind_p50=p50,
        bind_p90=p90,
        bind_p99=p99,
        bind_max=max(binds, default=0.0),
        conditions_missing=storm.bad - len(times.judged),
        last_condition=times.last_condition(),
        binds_lost=storm.good - len(binds),
    )


def make_sent(storm: Storm, traffic: Traffic) -> Sent:
    patches = [number for name, number in traffic.patches.items() if name.startswith(BAD)]
    return Sent(
        binds=sum(traffic.binds.values()),
        binds_sent_twice=sum(number > 1 for number in traffic.binds.values()),
        patches_mean=sum(patches) / storm.bad if storm.bad else 0.0,
        patches_most=max(patches, default=0),
        too_many_requests=traffic.too_many,
        requests=traffic.requests,
        refused=traffic.refused,
    )


def _verdict(aim: Aim, figures: Figures, sent: Sent | None) -> Verdict | None:
    """None for what nobody knows. A time without a single bind is no time that was kept."""
    source = figures if hasattr(figures, aim.figure) else sent
    if source is None:
        return None
    value = float(getattr(source, aim.figure))
    is_measured = figures.good_bound > 0 or not aim.figure.startswith("bind_")
    return Verdict(aim, value, is_measured and aim.holds(value))
