"""kube-scheduler's metrics, read from effects as they pass and from `statistics()` at each scrape.

Law: nothing here is called from inside a decision, and no decision reads anything here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from pilotage.framework.calls import CallResult
from pilotage.runtime.core import CallEnded
from pilotage.runtime.figures import Counter, Histogram, exponential, gauge
from pilotage.scheduling.messages import Attempt, Effect, Event, Queued
from pilotage.scheduling.statistics import EngineStatistics

_ATTEMPT_SECONDS = exponential(0.001, 2, 15)
_PLUGIN_SECONDS = exponential(0.00001, 1.5, 20)
_POINT_SECONDS = exponential(0.0001, 2, 12)
_MAX_SLI_ATTEMPTS = 15
_EXECUTED = {CallResult.DONE: "success", CallResult.FAILED: "error"}


class Metrics:
    """An observer of the driver. `statistics` is asked at each scrape; `pending_calls` by call type."""

    def __init__(
        self,
        statistics: Callable[[], EngineStatistics],
        pending_calls: Callable[[], dict[str, int]],
        *,
        version: str = "",
    ) -> None:
        self._statistics = statistics
        self._pending_calls = pending_calls
        self._version = version
        self._define()

    def _define(self) -> None:
        p = "scheduler_"
        result_profile = ("result", "profile")
        self.attempts = Counter(f"{p}schedule_attempts", "Attempts by result.", *result_profile)
        self.attempt_seconds = Histogram(
            f"{p}scheduling_attempt_duration_seconds",
            "Attempts from popping the pod to its end, binding included.",
            _ATTEMPT_SECONDS,
            *result_profile,
        )
        self.algorithm_seconds = Histogram(
            f"{p}scheduling_algorithm_duration_seconds", "Decisions alone.", _ATTEMPT_SECONDS
        )
        self.event_seconds = Histogram(
            f"{p}event_handling_duration_seconds",
            "Taking in one fact.",
            exponential(0.0001, 2, 12),
            "event",
        )
        self.sli_seconds = Histogram(
            f"{p}pod_scheduling_sli_duration_seconds",
            "Pods from their first attempt's readiness to being bound, by number of attempts.",
            exponential(0.01, 2, 20),
            "attempts",
        )
        self.pod_attempts = Histogram(
            f"{p}pod_scheduling_attempts", "Attempts that bound pods needed.", exponential(1, 2, 5)
        )
        self.after_flush = Counter(
            f"{p}pod_scheduled_after_flush", "Pods bound after the periodic flush and no event woke them."
        )
        self.incoming = Counter(f"{p}queue_incoming_pods", "Pods that entered a queue.", "queue", "event")
        self.calls = Counter(f"{p}async_api_call_execution", "Calls that were sent.", "call_type", "result")
        self.call_seconds = Histogram(
            f"{p}async_api_call_execution_duration_seconds",
            "Calls from the first request to the end.",
            _ATTEMPT_SECONDS,
            "call_type",
            "result",
        )
        self.plugin_seconds = Histogram(
            f"{p}plugin_execution_duration_seconds",
            "Plugin methods.",
            _PLUGIN_SECONDS,
            "plugin",
            "extension_point",
            "status",
        )
        self.evaluations = Counter(
            f"{p}plugin_evaluation", "Plugin methods called.", "plugin", "extension_point", "profile"
        )

    # What the driver tells.

    def effect(self, effect: Effect, now: float) -> None:
        match effect:
            case Attempt():
                self._attempt(effect, now)
            case Queued():
                self.incoming.add(effect.queue, effect.event)
            case CallEnded():
                self._call(effect)

    def handled(self, event: Event, seconds: float) -> None:
        self.event_seconds.observe(seconds, _label(event))

    def decided(self, seconds: float) -> None:
        self.algorithm_seconds.observe(seconds)

    def plugin_ran(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugin_seconds.observe(seconds, plugin, point, status)

    def _attempt(self, attempt: Attempt, now: float) -> None:
        self.attempts.add(attempt.result, attempt.profile)
        if attempt.started:
            self.attempt_seconds.observe(max(0.0, now - attempt.started), attempt.result, attempt.profile)
        if attempt.result != "scheduled":
            return
        self.pod_attempts.observe(float(attempt.attempts))
        self.sli_seconds.observe(attempt.age, _attempts_label(attempt.attempts))
        if attempt.after_flush:
            self.after_flush.add()

    def _call(self, effect: CallEnded) -> None:
        finished = effect.finished
        result = _EXECUTED.get(finished.outcome.result)
        if result is None or finished.sent is None:
            return
        self.calls.add(finished.call_type, result)
        self.call_seconds.observe(max(0.0, finished.ended - finished.sent), finished.call_type, result)

    # What Prometheus asks.

    def collect(self) -> Iterator[Metric]:
        for figure in vars(self).values():
            if isinstance(figure, (Counter, Histogram)):
                yield figure.family()
        yield from self._gauges(self._statistics())

    def _gauges(self, now: EngineStatistics) -> Iterator[Metric]:
        p = "scheduler_"
        queues = {
            "active": now.active,
            "backoff": now.backoff,
            "unschedulable": now.unschedulable,
            "gated": now.gated,
        }
        yield gauge(f"{p}pending_pods", "Pods waiting, by queue.", "queue", queues)
        yield gauge(f"{p}inflight_events", "Events kept for pods being tried.", "event", now.in_flight_events)
        cache = {"nodes": now.nodes, "pods": now.pods, "assumed_pods": now.assumed_pods}
        yield gauge(f"{p}cache_size", "Objects believed to exist.", "type", cache)
        yield gauge(f"{p}goroutines", "Work under way.", "operation", {"binding": now.binding})
        yield gauge(f"{p}pending_async_api_calls", "Calls waiting.", "call_type", self._pending_calls())
        rejected = GaugeMetricFamily(
            f"{p}unschedulable_pods", "Pods that a plugin keeps waiting.", labels=["plugin", "profile"]
        )
        for (profile, plugin), count in now.rejections.items():
            rejected.add_metric([plugin, profile], count)
        yield rejected
        info = GaugeMetricFamily("kubernetes_build_info", "Always 1.", labels=["git_version"])
        info.add_metric([self._version], 1)
        yield info

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


def _attempts_label(attempts: int) -> str:
    return f"{_MAX_SLI_ATTEMPTS}+" if attempts >= _MAX_SLI_ATTEMPTS else str(attempts)


def _label(event: Event) -> str:
    resource = getattr(event, "resource", "")
    return f"{resource}/{type(event).__name__}" if resource else type(event).__name__
