"""Nodes and pods that keep the scheduler out of their resizes, and the feature gate (R10, R13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotage.runtime.config import default_settings
from resizecluster import DISABLED, PENDING, ResizeHarness

GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def full(h: ResizeHarness) -> None:
    h.run_pod("r", 4, priority=1000)
    h.run_pod("v1", 6)


def test_the_nodes_field_set_and_cleared() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.set_policy("example.com/autoscaler", "example.com/operator")
        full(h)
        h.defer("r", 6, has=4)
        h.run_for(30)
        assert h.victims() == []
        assert "node had resize preemption disabled" in h.last_attempt("r")
        assert h.reasons("r") == ["FailedResizePreemption"]
        h.set_policy()
        h.run_for(15)
        assert h.victims() == ["v1"]


def test_the_pods_condition_set_and_cleared() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        full(h)
        h.resize("r", 6)
        h.kubelet("r", 4, **{PENDING: "Deferred", DISABLED: "PreemptionDisabledByNodePolicy"})
        h.run_for(30)
        assert h.victims() == []
        assert h.engine.position(h.pod_state("r").uid).value == "absent"
        h.kubelet("r", 4, **{DISABLED: None})
        h.run_for(5)
        assert h.victims() == ["v1"]


@pytest.mark.parametrize("reason", ["Deferred"])
def test_with_the_gate_off_nothing_happens(reason: str) -> None:
    settings = default_settings()
    settings = replace(settings, gates={**settings.gates, GATE: False})
    with ResizeHarness(seed=1, settings=settings) as h:
        h.add_node()
        full(h)
        h.resize("r", 6)
        h.kubelet("r", 4, **{PENDING: reason})
        h.run_for(60)
        assert h.victims() == []
        assert h.reasons("r") == []
        assert h.engine.position(h.pod_state("r").uid).value == "absent"


def test_pods_of_other_schedulers_are_theirs() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000, schedulerName="somebody-else")
        h.run_pod("v1", 6)
        h.defer("r", 6, has=4)
        h.run_for(30)
        assert h.victims() == []
