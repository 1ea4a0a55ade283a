"""kube-scheduler's metrics: effects counted as they pass, `statistics()` read at each scrape, plugins timed
from outside.

Laws: nothing here is called from inside a decision, and no decision reads anything here; the rows and their
labels are those of docs/reference/metrics.md, which a test compares with what is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from pilotage.calls.reports import Statistics
from pilotage.framework.registry import Registry
from pilotage.runtime.core import CallEnded
from pilotage.runtime.figures import Figures
from pilotage.runtime.metrics_attempts import AttemptFigures, queue_gauges
from pilotage.runtime.metrics_calls import CallFigures, call_gauges
from pilotage.runtime.metrics_events import EventFigures
from pilotage.runtime.metrics_plugins import PluginFigures
from pilotage.runtime.metrics_process import ProcessFigures
from pilotage.runtime.metrics_resizes import ResizeFigures, resize_gauges
from pilotage.runtime.metrics_rest import RestFigures
from pilotage.runtime.scheduler import Scheduler
from pilotage.runtime.timing import TimedRegistry, time_hints, time_points
from pilotage.scheduling.messages import BindingEnded, Effect, Event


class Metrics:
    """An observer of the driver. `attach` it to a scheduler; what it counted outlives that one."""

    def __init__(self, *, version: str = "", gates: Mapping[str, bool] | None = None) -> None:
        """`gates`: feature gates in force; those left out have their defaults."""
        self.attempts = AttemptFigures()
        self.plugins = PluginFigures()
        self.calls = CallFigures()
        self.resizes = ResizeFigures()
        self.events = EventFigures()
        self.rest = RestFigures()
        self.process = ProcessFigures(version, gates or {})
        self._scheduler: Scheduler | None = None

    def timed(self, registry: Registry) -> Registry:
        """The registry to build the scheduler with, so that single plugins are measured too."""
        return TimedRegistry(registry, self.plugins.plugin_ran)

    def attach(self, scheduler: Scheduler) -> None:
        """Observes from now on; the gauges are this scheduler's."""
        self._scheduler = scheduler
        scheduler.add_observer(self)
        for profile in scheduler.engine.profiles.values():
            time_points(profile, self.plugins)
        scheduler.engine.ask_hints_through(time_hints(self.plugins.hint_ran))

    # What the driver tells.

    def effect(self, effect: Effect, now: float) -> None:
        if isinstance(effect, CallEnded):
            self.calls.ended(effect.finished)
            return
        self.attempts.effect(effect, now)
        self.resizes.effect(effect)
        if isinstance(effect, BindingEnded):
            self.plugins.binding(effect)

    def handled(self, event: Event, seconds: float) -> None:
        self.events.handled(event, seconds)

    def decided(self, seconds: float) -> None:
        self.attempts.algorithm_seconds.observe(seconds)

    # What Prometheus asks.

    def collect(self) -> Iterator[Metric]:
        sets: tuple[Figures, ...] = (
            self.attempts,
            self.plugins,
            self.calls,
            self.resizes,
            self.events,
            self.rest,
            self.process,
        )
        for figures in sets:
            yield from figures.families()
        yield from self.process.gauges()
        if self._scheduler is not None:
            statistics = self._scheduler.engine.statistics()
            yield from queue_gauges(statistics)
            yield from resize_gauges(statistics)
            yield from call_gauges(self._call_statistics(self._scheduler))

    def _call_statistics(self, scheduler: Scheduler) -> Statistics:
        return scheduler.calls.statistics(scheduler.clock.time())

    def registry(self) -> CollectorRegistry:
        """With the process' own figures."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """The text format that Prometheus reads."""
    return generate_latest(registry)
