"""Figures of API calls in a storm: waits by lane, merges, refusals, conflicts, drops (A14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from pilotage.framework.calls import CallResult
from pilotage.plugins import default_registry
from pilotage.runtime.metrics import Metrics, exposition
from pilotage.testing.harness import Harness

PATCH = {"client": "scheduler", "verb": "patch", "path": "/status$"}


@pytest.fixture
def world() -> Iterator[tuple[Harness, Metrics]]:
    metrics = Metrics(version="1.2.3", gates={})
    limits = {"clientConnection": {"qps": 5, "burst": 5}}
    registry = metrics.timed(default_registry())
    with Harness(seed=1, registry=registry, settings=limits, scheduler=False) as h:
        h.start_scheduler()
        metrics.attach(h.scheduler)
        yield h, metrics


def page(metrics: Metrics) -> Mapping[str, Metric]:
    text = exposition(metrics.registry()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """The sum of a row's samples that have these labels."""
    samples = (
        sample for family in page(metrics).values() for sample in family.samples if sample.name == name
    )
    return sum(one.value for one in samples if labels.items() <= one.labels.items())


def test_waits_are_told_by_lane(world: tuple[Harness, Metrics]) -> None:
    h, metrics = world
    h.create(h.node("n1", cpu=4))
    h.create(*(h.pod(f"bad-{n}", cpu=1000) for n in range(40)))
    h.run_for(3)
    h.create(h.pod("good", cpu=1))
    h.run_until_running("good")
    h.run_for(30)
    assert value(metrics, "pilotage_call_wait_seconds_count", lane="bind", call_type="pod_binding") == 1
    assert value(metrics, "pilotage_call_wait_seconds_sum", lane="bind") < 0.25
    assert value(metrics, "pilotage_call_wait_seconds_count", lane="status") >= 40
    assert value(metrics, "pilotage_call_wait_seconds_sum", lane="status") > 40  # over a second each


def test_merged_and_skipped_are_told_apart(world: tuple[Harness, Metrics]) -> None:
    h, metrics = world
    h.create(h.node("n1", cpu=4))
    h.create(*(h.pod(f"bad-{n}", cpu=10) for n in range(40)))
    h.run_for(1)
    for n in range(3):  # another message for each of them, while most patches still wait
        taints = [{"key": f"not-{n}", "effect": "NoSchedule"}]
        h.create(h.node(f"more-{n}", cpu=16, taints=taints))
        h.run_for(2)
    merged = value(metrics, "pilotage_calls_unsent_total", why="merged", call_type="pod_status_patch")
    ended = h.scheduler.calls.statistics().ended
    assert merged > 0
    assert merged == ended["pod_status_patch", CallResult.OVERWRITTEN]
    skipped = value(metrics, "pilotage_calls_unsent_total", why="skipped", lane="event")
    assert skipped == ended["event", CallResult.SKIPPED]


def test_bound_meanwhile_is_overwritten(world: tuple[Harness, Metrics]) -> None:
    h, metrics = world
    h.create(h.node("n1", cpu=1))
    h.create(*(h.pod(f"p-{n}", cpu=1) for n in range(12)))
    h.run_for(1)
    h.create(h.node("n2", cpu=12))
    h.run_until_running(*(f"p-{n}" for n in range(12)))
    overwritten = value(metrics, "pilotage_calls_unsent_total", why="overwritten", lane="status")
    assert overwritten > 0
    total = h.scheduler.calls.statistics().ended["pod_status_patch", CallResult.OVERWRITTEN]
    assert overwritten + value(metrics, "pilotage_calls_unsent_total", why="merged") == total


def test_retries_are_told_by_why(world: tuple[Harness, Metrics]) -> None:
    h, metrics = world
    h.faults.too_many_requests(**PATCH, times=2)  # type: ignore[arg-type]
    h.faults.lose_answer(**PATCH, times=1, after_write=False)  # type: ignore[arg-type]
    h.faults.answer(409, **PATCH, times=1)  # type: ignore[arg-type]
    h.create(h.node("n1", cpu=4), h.pod("bad", cpu=1000))
    h.run_until(lambda: h.pod_state("bad").scheduled == "False")
    h.run_for(1)
    found = {
        why: value(
            metrics, "pilotage_call_retries_total", call_type="pod_status_patch", lane="status", why=why
        )
        for why in ("refused", "unanswered", "conflict")
    }
    assert found == {"refused": 2, "unanswered": 1, "conflict": 1}
