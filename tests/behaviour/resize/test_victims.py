"""Who goes for a deferred resize: as few as needed, of lower priority, on the pod's own node (R2, R5, R7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotage.runtime.config import default_settings
from pilotage.testing.builders import disruption_budget
from resizecluster import ResizeHarness


def full(h: ResizeHarness) -> None:
    """n1: R has 4 of 10 CPU, V1 and V2 have 3 each."""
    h.add_node()
    h.run_pod("r", 4, priority=1000)
    h.run_pod("v1", 3)
    h.run_pod("v2", 3)


def test_a_single_victim() -> None:
    with ResizeHarness(seed=1) as h:
        full(h)
        h.run_for(1)
        h.defer("r", 6, has=4)
        h.run_for(5)
        assert len(h.victims()) == 1
        (victim,) = h.victims()
        assert h.reasons(victim) == ["Preempted"]
        assert h.writes_on(victim) == ["PATCH /status", "DELETE "]
        h.admit("r", 6)
        h.run_for(20)
        assert len(h.victims()) == 1
        assert h.engine.position(h.pod_state("r").uid).value == "absent"


@pytest.mark.parametrize("gate", ["SchedulerAsyncAPICalls", "SchedulerAsyncPreemption"])
def test_the_same_without_asynchronous_calls(gate: str) -> None:
    settings = default_settings()
    settings = replace(settings, gates={**settings.gates, gate: False})
    with ResizeHarness(seed=1, settings=settings) as h:
        full(h)
        h.run_for(1)
        h.defer("r", 6, has=4)
        h.run_for(10)
        assert len(h.victims()) == 1
        assert h.writes_on("r") == []
        h.create(h.pod("later", cpu="1m"))
        h.admit("r", 6)
        h.run_until_bound("later", timeout=20)
        assert len(h.victims()) == 1


def test_the_pod_itself_is_neither_bound_nor_nominated_nor_marked() -> None:
    """R9"""
    with ResizeHarness(seed=1) as h:
        full(h)
        h.defer("r", 6, has=4)
        h.run_for(30)
        assert h.victims()
        assert h.writes_on("r") == []
        state = h.pod_state("r")
        assert (state.node, state.nominated, state.scheduled) == ("n1", "", "")
        assert h.reasons("r") == ["ResizePreempting", "ResizeWaiting", "ResizeFits"]


def test_several_victims_and_only_on_its_own_node() -> None:
    with ResizeHarness(seed=1) as h:
        full(h)
        h.add_node("n2")
        h.run_pod("elsewhere", 1, node="n2")
        h.defer("r", 10, has=4)
        h.run_for(5)
        assert sorted(h.victims()) == ["v1", "v2"]


def test_less_important_pods_go_first() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("middle", 3, priority=100)
        h.run_pod("low", 3, priority=10)
        h.defer("r", 5, has=4)
        h.run_for(5)
        assert h.victims() == ["low"]


def test_a_budget_is_kept_where_another_victim_does() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.create(disruption_budget("keep", {"app": "kept"}, minAvailable=1))
        h.run_pod("r", 4, priority=1000)
        h.run_pod("kept", 3, labels={"app": "kept"})
        h.run_pod("other", 3, priority=10)
        h.run_for(2)
        h.defer("r", 6, has=4)
        h.run_for(5)
        assert h.victims() == ["other"]


def test_a_budget_is_broken_where_nothing_else_helps() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.create(disruption_budget("keep", {"app": "kept"}, minAvailable=1))
        h.run_pod("r", 4, priority=1000)
        h.run_pod("kept", 6, labels={"app": "kept"})
        h.run_for(2)
        h.defer("r", 6, has=4)
        h.run_for(5)
        assert h.victims() == ["kept"]


def test_preemption_policy_never() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        never = {"name": "calm", "value": 1000, "preemptionPolicy": "Never"}
        h.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": never} | never)
        h.create(h.pod("r", cpu=4, nodeName="n1", priorityClassName="calm"))
        h.kubelet("r", 4)
        h.run_pod("v", 6)
        h.defer("r", 6, has=4)
        h.run_for(10)
        assert h.victims() == []
        assert h.reasons("r") == ["FailedResizePreemption"]
        assert "preemptionPolicy=Never" in h.last_attempt("r")


@pytest.mark.parametrize("turn", range(3))
def test_four_pods_one_victim(turn: int) -> None:
    """R7: node 2X; the high pod wants X from X/2, three low ones want 2X and have X/2."""
    with ResizeHarness(seed=turn) as h:
        h.add_node(cpu=8)
        for name in ("low1", "low2", "low3"):
            h.run_pod(name, 2)
        h.run_pod("high", 2, priority=1000)
        h.run_for(1)
        for name in ("low1", "low2", "low3"):
            h.defer(name, 8, has=2)
        h.defer("high", 4, has=2)
        h.run_for(20)
        assert len(h.victims()) == 1
        h.admit("high", 4)
        h.run_for(20)
        assert len(h.victims()) == 1


def test_sidecars_count_in_what_is_asked() -> None:
    """C7: the sidecar is resized, not the main container."""
    with ResizeHarness(seed=1) as h:
        h.add_node()
        sidecar = {"name": "side", "image": "i:1", "restartPolicy": "Always"}
        sidecar |= {"resources": {"requests": {"cpu": "1"}}}
        h.run_pod("r", 3, priority=1000, initContainers=[sidecar])
        h.run_pod("v1", 3)
        h.run_pod("v2", 3)
        wish = {"name": "side", "resources": {"requests": {"cpu": "2"}}}
        h.patch("pods", "r", {"spec": {"initContainers": [wish]}}, subresource="resize")
        h.kubelet("r", 3, PodResizePending="Deferred")
        h.run_for(5)
        assert len(h.victims()) == 1


def test_pod_level_amounts_replace_those_of_containers() -> None:
    """C11"""
    with ResizeHarness(seed=1) as h:
        h.add_node()
        pod = h.pod("r", cpu=1, priority=1000, nodeName="n1")
        pod["spec"]["resources"] = {"requests": {"cpu": "4"}}
        h.create(pod)
        h.kubelet("r", 1)
        h.run_pod("v1", 3)
        h.run_pod("v2", 3)
        h.patch("pods", "r", {"spec": {"resources": {"requests": {"cpu": "6"}}}}, subresource="resize")
        h.kubelet("r", 1, PodResizePending="Deferred")
        h.run_for(5)
        assert len(h.victims()) == 1
