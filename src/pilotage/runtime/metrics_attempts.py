"""Figures of attempts, queues, bindings and preemption: counted from effects, gauges from `statistics()`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from pilotage.runtime.figures import Counter, Figures, Histogram, exponential, gauge, gauges
from pilotage.scheduling.messages import (
    Attempt,
    BindingEnded,
    Effect,
    PreemptionEnded,
    PreemptionTried,
    Queued,
)
from pilotage.scheduling.statistics import EngineStatistics

ATTEMPT_SECONDS = exponential(0.001, 2, 15)
POINT_SECONDS = exponential(0.0001, 2, 12)
_LONG_SECONDS = exponential(0.01, 2, 20)
_MAX_SLI_ATTEMPTS = 15
_P = "scheduler_"


class AttemptFigures(Figures):
    def __init__(self) -> None:
        result_profile = ("result", "profile")
        self.attempts = Counter(
            f"{_P}schedule_attempts", "Attempts to schedule a pod, by how they ended.", *result_profile
        )
        self.attempt_seconds = Histogram(
            f"{_P}scheduling_attempt_duration_seconds",
            "From popping the pod to the end of its attempt, binding included.",
            ATTEMPT_SECONDS,
            *result_profile,
        )
        self.algorithm_seconds = Histogram(
            f"{_P}scheduling_algorithm_duration_seconds", "Decisions alone.", ATTEMPT_SECONDS
        )
        self.sli_seconds = Histogram(
            f"{_P}pod_scheduling_sli_duration_seconds",
            "From a pod's first entry into the active queue to its bind, by number of attempts.",
            _LONG_SECONDS,
            "attempts",
        )
        self.pod_attempts = Histogram(
            f"{_P}pod_scheduling_attempts", "Attempts that bound pods needed.", exponential(1, 2, 5)
        )
        self.after_flush = Counter(
            f"{_P}pod_scheduled_after_flush", "Pods bound after the periodic flush, woken by no event."
        )
        self.incoming = Counter(
            f"{_P}queue_incoming_pods", "Pods that entered a queue, by what moved them.", "queue", "event"
        )
        self._define_the_rest()

    def _define_the_rest(self) -> None:
        self.permit_wait = Histogram(
            f"{_P}permit_wait_duration_seconds", "Pods kept waiting by Permit.", ATTEMPT_SECONDS, "result"
        )
        self.preemption_attempts = Counter(
            f"{_P}preemption_attempts", "Times that PostFilter looked for pods to remove."
        )
        self.victims = Histogram(
            f"{_P}preemption_victims", "Pods chosen to be removed, per preemption.", exponential(1, 2, 7)
        )
        self.preemption_seconds = Histogram(
            f"{_P}preemption_goroutines_duration_seconds",
            "From the choice of victims to the end of their evictions.",
            _LONG_SECONDS,
            "result",
        )
        self.preemptions = Counter(
            f"{_P}preemption_goroutines_execution", "Preemptions whose evictions ended.", "result"
        )

    def effect(self, effect: Effect, now: float) -> None:
        match effect:
            case Attempt():
                self._attempt(effect, now)
            case Queued():
                self.incoming.add(effect.queue, effect.event)
            case BindingEnded():
                self._binding(effect)
            case PreemptionTried():
                self.preemption_attempts.add()
                if effect.victims is not None:
                    self.victims.observe(float(effect.victims))
            case PreemptionEnded():
                result = "success" if effect.is_ok else "error"
                self.preemptions.add(result)
                self.preemption_seconds.observe(effect.seconds, result)

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

    def _binding(self, ended: BindingEnded) -> None:
        for point, status, seconds in ended.points:
            if point == "WaitOnPermit":
                self.permit_wait.observe(seconds, status)


def queue_gauges(now: EngineStatistics) -> Iterator[Metric]:
    """What the engine holds at the moment of the scrape."""
    queues = {
        "active": now.active,
        "backoff": now.backoff,
        "unschedulable": now.unschedulable,
        "gated": now.gated,
    }
    yield gauge(f"{_P}pending_pods", "Pods waiting, by queue.", "queue", queues)
    yield gauge(
        f"{_P}inflight_events",
        "Events kept for pods that are being tried, these pods as PodPopped.",
        "event",
        now.in_flight_events,
    )
    cache = {"nodes": now.nodes, "pods": now.pods, "assumed_pods": now.assumed_pods}
    yield gauge(f"{_P}cache_size", "Objects believed to exist.", "type", cache)
    work = {"binding": now.binding, "prioritizing_extender": now.asks}
    yield gauge(f"{_P}goroutines", "Work under way.", "operation", work)
    rejected = {(plugin, profile): float(n) for (profile, plugin), n in now.rejections.items()}
    text = "Pods that a plugin keeps waiting."
    yield gauges(f"{_P}unschedulable_pods", text, ("plugin", "profile"), rejected)


def _attempts_label(attempts: int) -> str:
    return f"{_MAX_SLI_ATTEMPTS}+" if attempts >= _MAX_SLI_ATTEMPTS else str(attempts)
