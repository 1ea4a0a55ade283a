"""/metrics against kube-scheduler's rows, after a run in which everything that is counted has happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from metricrows import COMMON, OWN, ROWS, Row, bounds
from pilotage.framework.calls import CallResult
from pilotage.framework.plugin import PermitResult, Plugin
from pilotage.framework.status import SUCCESS, Status, unschedulable, wait
from pilotage.plugins import default_registry
from pilotage.runtime.metrics import Metrics, exposition
from pilotage.testing.harness import Harness

Families = Mapping[str, Metric]
PROFILE = "default-scheduler"


class Slow(Plugin):
    """Permit waits for pods labelled so; Reserve fails, Filter raises."""

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        if has(pod, "raise"):
            raise RuntimeError("a fault")
        return SUCCESS

    def permit(self, cycle: Any, pod: Any, node: str) -> PermitResult:
        return PermitResult(wait(), 3.0) if has(pod, "wait") else PermitResult(SUCCESS)

    def reserve(self, cycle: Any, pod: Any, node: str) -> Status:
        return unschedulable("not reserved") if has(pod, "unreserved") else SUCCESS

    def unreserve(self, cycle: Any, pod: Any, node: str) -> None: ...


def has(pod: Any, label: str) -> bool:
    return label in (pod.pod.metadata.labels or {})


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Harness, Metrics]]:
    """A run in virtual time, and what was measured."""
    metrics = Metrics(version="1.2.3", gates={"SchedulerAsyncAPICalls": False})
    registry = default_registry()
    registry.register("Slow", Slow)
    plugins = {"multiPoint": {"enabled": [{"name": "Slow"}]}}
    profiles = [{"schedulerName": PROFILE, "plugins": plugins}]
    settings = {"profiles": profiles}
    with Harness(seed=1, registry=metrics.timed(registry), settings=settings, scheduler=False) as h:
        h.start_scheduler()
        metrics.attach(h.scheduler)
        metrics.process.leading = lambda: {"kube-scheduler": True}
        metrics.process.checked("ping", "healthz", True)
        happen(h)
        yield h, metrics


def happen(h: Harness) -> None:
    h.create(h.node("n1", cpu=4), h.pod("a", cpu=1), h.pod("b", cpu=1))
    h.run_until_running("a", "b")
    h.create(h.pod("wait", labels={"wait": "yes"}, cpu="100m"), h.pod("raise", labels={"raise": "yes"}))
    h.create(h.pod("unreserved", labels={"unreserved": "yes"}), h.pod("never", cpu=1000))
    h.run_for(5)
    h.create(h.pod("urgent", cpu=3, priority=1000))
    h.run_until_running("urgent", timeout=90)
    h.delete("pods", "never", grace=0)
    h.create(h.pod("more", cpu=1000))
    h.create(h.node("n2", cpu=2))
    h.run_for(3)
    resize_waits(h)
    h.create(h.pod("last", labels={"wait": "yes"}))
    h.run_for(1)  # it is in flight while Permit waits


def resize_waits(h: Harness) -> None:
    """A resize is deferred for a second, on a node that nothing else comes to."""
    h.create(h.node("n9", unschedulable=True, kubelet=False), h.pod("resized", cpu=1, schedulerName=PROFILE))
    h.bind("resized", "n9")
    for status in ("True", "False"):
        condition = {"type": "PodResizePending", "status": status, "reason": "Deferred"}
        h.patch("pods", "resized", {"status": {"conditions": [condition]}}, subresource="status")
        h.run_for(1)


@pytest.fixture(scope="module")
def families(world: tuple[Harness, Metrics]) -> Families:
    return parsed(world[1])


def parsed(metrics: Metrics) -> Families:
    text = exposition(metrics.registry()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def family_of(families: Families, row: Row, prefix: str = "") -> Metric:
    name = prefix + row.name
    return families[name.removesuffix("_total") if row.type == "counter" else name]


def labels_of(family: Metric) -> set[frozenset[str]]:
    return {frozenset(sample.labels) - {"le"} for sample in family.samples}


def check(family: Metric, row: Row, name: str) -> None:
    assert family.type == row.type
    assert all(sample.name.startswith(name) for sample in family.samples)
    if family.samples:
        assert labels_of(family) == {frozenset(row.labels)}
    if row.buckets is not None:
        found = [s.labels["le"] for s in family.samples if s.name.endswith("_bucket")]
        uppers = sorted({float(bound) for bound in found})
        assert uppers == pytest.approx([*bounds(row.buckets), float("inf")]), row.name


@pytest.mark.parametrize("row", [row for row in ROWS if not row.open], ids=lambda row: row.name)
def test_rows_of_kube_scheduler(families: Families, row: Row) -> None:
    family = family_of(families, row, "scheduler_")
    check(family, row, f"scheduler_{row.name}")
    assert family.samples or row.name == "volume_scheduling_stage_error_total", "it did not happen"


@pytest.mark.parametrize("row", [row for row in ROWS if row.open], ids=lambda row: row.name)
def test_open_rows_are_not_shown(families: Families, row: Row) -> None:
    """A row that stays at nothing would look as if nothing had happened."""
    assert f"scheduler_{row.name}".removesuffix("_total") not in families


@pytest.mark.parametrize("row", [*COMMON, *OWN], ids=lambda row: row.name)
def test_other_rows(families: Families, row: Row) -> None:
    check(family_of(families, row), row, row.name)


def test_no_row_is_undocumented(families: Families) -> None:
    known = {f"scheduler_{row.name}" for row in ROWS} | {row.name for row in (*COMMON, *OWN)}
    known = {name.removesuffix("_total") for name in known}
    ours = {name for name in families if not name.startswith(("process_", "python_"))}
    assert ours <= known


def value(families: Families, name: str, suffix: str = "", **labels: str) -> float:
    family = families[f"scheduler_{name}"]
    found = [s.value for s in family.samples if s.name.endswith(suffix) and s.labels == labels]
    assert len(found) == 1, (name, labels, [s.labels for s in family.samples])
    return float(found[0])


def test_what_happened_is_counted(families: Families, world: tuple[Harness, Metrics]) -> None:
    h, _ = world
    attempts = [attempt for _, attempt in h.recorder.attempts]
    for result in ("scheduled", "unschedulable", "error"):
        count = sum(1 for attempt in attempts if attempt.result == result)
        assert count > 0
        assert value(families, "schedule_attempts", result=result, profile=PROFILE) == count
    assert value(families, "preemption_attempts") >= 2
    assert value(families, "preemption_victims", "_count") >= 1
    assert value(families, "preemption_goroutines_execution", result="success") >= 1
    waits = value(families, "permit_wait_duration_seconds", "_count", result="Unschedulable")
    waited = value(families, "permit_wait_duration_seconds", "_sum", result="Unschedulable")
    assert 0 < waited <= 3.0 * waits, "some were cut short by the preemption"
    assert value(families, "queueing_hint_execution_duration_seconds", "_count", **HINT) >= 1
    assert value(families, "event_handling_duration_seconds", "_count", event="NodeAdd") == 3
    assert value(families, "cache_size", type="nodes") == 3


HINT = {"plugin": "NodeResourcesFit", "event": "NodeAdd", "hint": "QueueSkip"}


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ("PreFilter", "Success"),
        ("Filter", "Success"),
        ("Filter", "Error"),
        ("PostFilter", "Success"),
        ("PostFilter", "Unschedulable"),
        ("Reserve", "Success"),
        ("Reserve", "Unschedulable"),
        ("Unreserve", "Success"),
        ("Permit", "Success"),
        ("Permit", "Wait"),
        ("PreBind", "Success"),
        ("Bind", "Success"),
    ],
)
def test_extension_points(families: Families, point: str, status: str) -> None:
    labels = {"extension_point": point, "status": status, "profile": PROFILE}
    assert value(families, "framework_extension_point_duration_seconds", "_count", **labels) >= 1


def test_evaluations_count_only_plugins_that_were_not_skipped(families: Families) -> None:
    fit = {"plugin": "NodeResourcesFit", "profile": PROFILE}
    assert value(families, "plugin_evaluation", extension_point="Filter", **fit) >= 5
    evaluated = {
        sample.labels["plugin"]
        for sample in families["scheduler_plugin_evaluation"].samples
        if sample.labels["extension_point"] == "Filter"
    }
    assert "NodePorts" not in evaluated, "no pod wanted a port"


def test_pending_pods_are_those_of_the_queue(world: tuple[Harness, Metrics]) -> None:
    h, metrics = world
    queue = h.engine.statistics()
    found = {s.labels["queue"]: s.value for s in parsed(metrics)["scheduler_pending_pods"].samples}
    assert found == {
        "active": queue.active,
        "backoff": queue.backoff,
        "unschedulable": queue.unschedulable,
        "gated": queue.gated,
    }


def test_call_figures_agree_with_the_call_queue(world: tuple[Harness, Metrics], families: Families) -> None:
    h, _ = world
    ended = h.scheduler.calls.statistics().ended
    found = {
        (s.labels["call_type"], s.labels["result"]): s.value for s in families["pilotage_calls_ended"].samples
    }
    assert found == {(name, result.value): count for (name, result), count in ended.items()}
    assert ended["pod_binding", CallResult.DONE] >= 3


def test_gates_in_force(families: Families) -> None:
    found = {s.labels["name"]: s for s in families["kubernetes_feature_enabled"].samples}
    assert found["SchedulerAsyncAPICalls"].value == 0
    assert found["SchedulerAsyncAPICalls"].labels["stage"] == "BETA"
    assert found["SchedulerQueueingHints"].value == 1
    assert found["SchedulerQueueingHints"].labels["stage"] == ""
