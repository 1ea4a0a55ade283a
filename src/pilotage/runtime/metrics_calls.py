"""Figures of API calls: kube-scheduler's rows, the call queue as a work queue, and what only we have."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from pilotage.calls.admission import MERGED
from pilotage.calls.reports import Finished, Statistics
from pilotage.calls.types import Lane
from pilotage.framework.calls import CallResult
from pilotage.runtime.figures import Counter, Figures, Histogram, counters, exponential, gauge
from pilotage.runtime.metrics_attempts import ATTEMPT_SECONDS

_P = "scheduler_"
_EXECUTED = {CallResult.DONE: "success", CallResult.FAILED: "error"}
_WORK_SECONDS = exponential(1e-8, 10, 12)
_WAIT_SECONDS = exponential(0.001, 2, 20)


class CallFigures(Figures):
    def __init__(self) -> None:
        self.calls = Counter(f"{_P}async_api_call_execution", "Calls that were sent.", "call_type", "result")
        self.call_seconds = Histogram(
            f"{_P}async_api_call_execution_duration_seconds",
            "Calls from the first request to the end.",
            ATTEMPT_SECONDS,
            "call_type",
            "result",
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds", "Calls until their first request.", _WORK_SECONDS, "name"
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds", "Calls from then to their end.", _WORK_SECONDS, "name"
        )
        self.lane_waits = Histogram(
            "pilotage_call_wait_seconds",
            "Calls that were sent: from the wish to the first request.",
            _WAIT_SECONDS,
            "lane",
            "call_type",
        )
        self.unsent = Counter(
            "pilotage_calls_unsent",
            "Calls that ended without being written, by why.",
            "call_type",
            "lane",
            "why",
        )

    def ended(self, finished: Finished) -> None:
        why = _why_unsent(finished)
        if why and finished.lane is not None:
            self.unsent.add(finished.call_type, finished.lane.name.lower(), why)
        if finished.sent is None:
            return
        name, seconds = finished.call_type, max(0.0, finished.ended - finished.sent)
        self.waited.observe(max(0.0, finished.sent - finished.offered), name)
        self.worked.observe(seconds, name)
        if finished.lane is not None:
            wait = max(0.0, finished.sent - finished.offered)
            self.lane_waits.observe(wait, finished.lane.name.lower(), name)
        result = _EXECUTED.get(finished.outcome.result)
        if result is not None:
            self.calls.add(name, result)
            self.call_seconds.observe(seconds, name, result)


def _why_unsent(finished: Finished) -> str:
    """`merged`, `overwritten`, `skipped`, `cancelled`, `dropped`; "" for calls done or failed."""
    if finished.outcome == MERGED:
        return "merged"
    result = finished.outcome.result
    return "" if result in _EXECUTED else result.value


def call_gauges(now: Statistics) -> Iterator[Metric]:
    """What the call queue holds at the moment of the scrape, and its counts since the start."""
    pending = {name: now.pending.get(name, 0) + now.in_flight.get(name, 0) for name in now.offered}
    yield gauge(f"{_P}pending_async_api_calls", "Calls not ended yet.", "call_type", pending)
    waiting = {name: now.pending.get(name, 0) for name in now.offered}
    yield gauge("workqueue_depth", "Calls waiting, by type.", "name", waiting)
    offered = {(name,): float(n) for name, n in now.offered.items()}
    yield counters("workqueue_adds", "Calls wished, by type.", ("name",), offered)
    requests = {(name,): float(n) for name, n in now.requests.items()}
    yield counters("pilotage_call_requests", "Requests sent for calls.", ("call_type",), requests)
    retried = {
        (n, lane.name.lower(), why.value): float(count) for (n, lane, why), count in now.retried.items()
    }
    text = "Requests repeated, by why: refused, unanswered, or the object had changed."
    yield counters("pilotage_call_retries", text, ("call_type", "lane", "why"), retried)
    ended = {(name, result.value): float(n) for (name, result), n in now.ended.items()}
    text = "Calls by how they ended; dropped ones were too many or waited too long."
    yield counters("pilotage_calls_ended", text, ("call_type", "result"), ended)
    lanes = {lane.name.lower(): now.lanes.get(lane, 0) for lane in Lane}
    yield gauge("pilotage_calls_waiting", "Calls waiting, by lane.", "lane", lanes)
    oldest = {lane.name.lower(): now.oldest.get(lane, 0.0) for lane in Lane}
    yield gauge("pilotage_calls_oldest_seconds", "How long a lane's oldest call waits.", "lane", oldest)
