"""The metrics of kube-scheduler as facts: name, type, labels, buckets, and whether we have the row yet."""

from __future__ import annotations

from typing import NamedTuple

Buckets = tuple[float, float, int]  # start, factor, count


class Row(NamedTuple):
    """`name` without the prefix `scheduler_`. `open`: what it counts is not built."""

    name: str
    type: str
    labels: tuple[str, ...] = ()
    buckets: Buckets | None = None
    open: bool = False


C, H, G = "counter", "histogram", "gauge"
_ATTEMPT, _POINT, _PLUGIN, _LONG = (0.001, 2, 15), (0.0001, 2, 12), (0.00001, 1.5, 20), (0.01, 2, 20)
_HINT_SECONDS = (0.00001, 2, 12)

ROWS = (
    Row("schedule_attempts_total", C, ("result", "profile")),
    Row("scheduling_attempt_duration_seconds", H, ("result", "profile"), _ATTEMPT),
    Row("scheduling_algorithm_duration_seconds", H, (), _ATTEMPT),
    Row("event_handling_duration_seconds", H, ("event",), _POINT),
    Row("preemption_victims", H, (), (1, 2, 7)),
    Row("preemption_attempts_total", C),
    Row("pending_pods", G, ("queue",)),
    Row("inflight_events", G, ("event",)),
    Row("goroutines", G, ("operation",)),
    Row("pod_scheduling_sli_duration_seconds", H, ("attempts",), _LONG),
    Row("pod_scheduling_attempts", H, (), (1, 2, 5)),
    Row("pod_scheduled_after_flush_total", C),
    Row("framework_extension_point_duration_seconds", H, ("extension_point", "status", "profile"), _POINT),
    Row("plugin_execution_duration_seconds", H, ("plugin", "extension_point", "status"), _PLUGIN),
    Row("plugin_evaluation_total", C, ("plugin", "extension_point", "profile")),
    Row("queueing_hint_execution_duration_seconds", H, ("plugin", "event", "hint"), _PLUGIN),
    Row("queue_incoming_pods_total", C, ("queue", "event")),
    Row("permit_wait_duration_seconds", H, ("result",), _ATTEMPT),
    Row("cache_size", G, ("type",)),
    Row("unschedulable_pods", G, ("plugin", "profile")),
    Row("preemption_goroutines_duration_seconds", H, ("result",), _LONG),
    Row("preemption_goroutines_execution_total", C, ("result",)),
    Row("batch_attempts_total", C, ("profile", "result"), open=True),
    Row("batch_cache_flushed_total", C, ("profile", "reason"), open=True),
    Row("get_node_hint_duration_seconds", H, ("hinted", "profile"), _HINT_SECONDS, open=True),
    Row("store_schedule_results_duration_seconds", H, ("profile",), _HINT_SECONDS, open=True),
    Row("async_api_call_execution_total", C, ("call_type", "result")),
    Row("async_api_call_execution_duration_seconds", H, ("call_type", "result"), _ATTEMPT),
    Row("pending_async_api_calls", G, ("call_type",)),
    Row("resourceclaim_creates_total", C, ("status",), open=True),
    Row("podgroup_schedule_attempts_total", C, ("result", "profile"), open=True),
    Row("podgroup_scheduling_attempt_duration_seconds", H, ("result", "profile"), _ATTEMPT, open=True),
    Row("podgroup_scheduling_algorithm_duration_seconds", H, (), _ATTEMPT, open=True),
    Row("dra_bindingconditions_allocations_total", C, open=True),
    Row("dra_bindingconditions_wait_duration_seconds", H, (), (0.1, 2, 14), open=True),
    Row("volume_binder_cache_requests_total", C, ("operation",), open=True),
    Row("volume_scheduling_stage_error_total", C, ("operation",)),
)

# Rows that other components of a cluster have too, with their whole names.
COMMON = (
    Row("rest_client_requests_total", C, ("code", "method", "host")),
    Row("rest_client_request_duration_seconds", H, ("verb", "host")),
    Row("rest_client_request_size_bytes", H, ("verb", "host")),
    Row("rest_client_response_size_bytes", H, ("verb", "host")),
    Row("workqueue_depth", G, ("name",)),
    Row("workqueue_adds_total", C, ("name",)),
    Row("workqueue_queue_duration_seconds", H, ("name",), (1e-8, 10, 12)),
    Row("workqueue_work_duration_seconds", H, ("name",), (1e-8, 10, 12)),
    Row("leader_election_master_status", G, ("name",)),
    Row("kubernetes_feature_enabled", G, ("name", "stage")),
    Row("kubernetes_healthcheck", G, ("name", "type")),
    Row("kubernetes_healthchecks_total", C, ("name", "type", "status")),
    Row("kubernetes_build_info", G, ("git_version",)),
)

# What only this scheduler has.
OWN = (
    Row("pilotage_calls_ended_total", C, ("call_type", "result")),
    Row("pilotage_call_requests_total", C, ("call_type",)),
    Row("pilotage_call_wait_seconds", H, ("lane", "call_type"), (0.001, 2.0, 20)),
    Row("pilotage_calls_unsent_total", C, ("call_type", "lane", "why")),
    Row("pilotage_call_retries_total", C, ("call_type", "lane", "why")),
    Row("pilotage_calls_waiting", G, ("lane",)),
    Row("pilotage_calls_oldest_seconds", G, ("lane",)),
    Row("pilotage_resize_attempts_total", C, ("outcome", "profile")),
    Row("pilotage_resize_preemption_victims", H, (), (1.0, 2.0, 7)),
    Row("pilotage_resize_deferred_duration_seconds", H, ("resolution", "profile"), (0.1, 2.0, 16)),
    Row("pilotage_deferred_resizes", G),
)


def bounds(buckets: Buckets) -> list[float]:
    start, factor, count = buckets
    return [start * factor**n for n in range(count)]
