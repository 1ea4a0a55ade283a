"""Counters and histograms that cost little to move, shown to Prometheus through one collector.

Why: the client library's own objects take a lock and several calls per observation, and add a `_created`
series each; decisions come by the thousand per second. One thread (the loop's) moves these figures and
reads them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric

Labels = tuple[str, ...]
L = TypeVar("L", bound=Labels)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of `count` buckets, the first one `start`; +Inf is implied.

    Multiplied one by one: the last digits are those that other Prometheus clients print.
    """
    return tuple(accumulate([factor] * (count - 1), lambda bound, by: bound * by, initial=float(start)))


class Counter:
    """`name` without `_total`."""

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self.name, self.text, self.labels = name, text, labels
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *labels: str, by: float = 1.0) -> None:
        self.values[labels] = self.values.get(labels, 0.0) + by

    def family(self) -> Metric:
        family = CounterMetricFamily(self.name, self.text, labels=self.labels)
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        return family


class Histogram:
    def __init__(self, name: str, text: str, bounds: tuple[float, ...], *labels: str) -> None:
        self.name, self.text, self.bounds, self.labels = name, text, bounds, labels
        # Labels -> counts per bucket (not cumulative, the last one +Inf) and the sum.
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._counts[()] = [0] * (len(bounds) + 1)
            self._sums[()] = 0.0

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self.bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        return sum(self._counts.get(labels, ()))

    def family(self) -> Metric:
        family = HistogramMetricFamily(self.name, self.text, labels=self.labels)
        for labels, counts in self._counts.items():
            family.add_metric(labels, list(self._cumulative(counts)), self._sums[labels])
        return family

    def _cumulative(self, counts: list[int]) -> Iterator[tuple[str, float]]:
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
            total += count
            yield "+Inf" if bound == float("inf") else repr(bound), float(total)


class Figures:
    """Base of a set of figures: attributes that are counters or histograms are shown, in their order."""

    def families(self) -> Iterator[Metric]:
        for figure in vars(self).values():
            if isinstance(figure, (Counter, Histogram)):
                yield figure.family()


def gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """A gauge with one label, from figures read at the moment of the scrape."""
    return gauges(name, text, (label,), {(value,): figure for value, figure in values.items()})


def gauges(name: str, text: str, labels: Labels, values: Mapping[L, float]) -> Metric:
    """The same with several labels (or none: values of `()`)."""
    return _family(GaugeMetricFamily(name, text, labels=labels), values)


def counters(name: str, text: str, labels: Labels, values: Mapping[L, float]) -> Metric:
    """Counts that somebody else keeps; `name` without `_total`."""
    return _family(CounterMetricFamily(name, text, labels=labels), values)


def _family(family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[L, float]) -> Metric:
    for value, figure in values.items():
        family.add_metric(value, figure)
    return family
