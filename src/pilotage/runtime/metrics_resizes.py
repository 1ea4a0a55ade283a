"""Figures of deferred resizes, ours: no row of kube-scheduler tells of them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from pilotage.runtime.figures import Counter, Figures, Histogram, exponential, gauges
from pilotage.scheduling.messages import Effect, ResizeEnded, ResizeTried
from pilotage.scheduling.statistics import EngineStatistics

_DEFERRED_SECONDS = exponential(0.1, 2, 16)
_P = "pilotage_"


class ResizeFigures(Figures):
    def __init__(self) -> None:
        self.attempts = Counter(
            f"{_P}resize_attempts", "Cycles of deferred resizes, by what they found.", "outcome", "profile"
        )
        self.victims = Histogram(
            f"{_P}resize_preemption_victims",
            "Pods chosen to be removed, per preemption for a resize.",
            exponential(1, 2, 7),
        )
        self.deferred_seconds = Histogram(
            f"{_P}resize_deferred_duration_seconds",
            "From the moment a resize was seen deferred to the moment it was not, by how it ended.",
            _DEFERRED_SECONDS,
            "resolution",
            "profile",
        )

    def effect(self, effect: Effect) -> None:
        match effect:
            case ResizeTried():
                self.attempts.add(effect.outcome, effect.profile)
                if effect.victims:
                    self.victims.observe(float(effect.victims))
            case ResizeEnded():
                self.deferred_seconds.observe(effect.seconds, effect.resolution, effect.profile)


def resize_gauges(now: EngineStatistics) -> Iterator[Metric]:
    """What the engine holds at the moment of the scrape."""
    waiting = {(): float(now.deferred_resizes)}
    yield gauges(f"{_P}deferred_resizes", "Deferred resizes in the queue.", (), waiting)
