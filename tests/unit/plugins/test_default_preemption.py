"""DefaultPreemption: who may preempt, whom it takes, the texts, budgets (field case B7)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from pilotage.api.others import PodDisruptionBudget
from pilotage.plugins.preemption.budgets import RESOURCE, Budgets
from pilotage.scheduling.aftermath import Aftermath, after_rejection
from pilotage.scheduling.decide import decide_now
from pilotage.state.cluster import ClusterState
from pilotage.state.importance import by_importance
from pilotage.state.podinfo import PodInfo
from statekit import cluster, node, pod, profile

FULL = "0/1 nodes are available: 1 Insufficient cpu."
LEAVING = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


def preempt(state: ClusterState, info: PodInfo, **kwargs: Any) -> Aftermath:
    built = profile(state, **kwargs)
    decision = decide_now(built, state, info, np.random.default_rng(0))
    assert not decision.is_scheduled
    return after_rejection(built, state.nodes, info, decision)


def victims(after: Aftermath) -> list[str]:
    assert after.preemption is not None, after.message
    return [info.name for unit in after.preemption.units for info in unit.pods]


def test_the_fewest_and_least_important_pods_go() -> None:
    state = cluster(node("n1"), *(pod(f"a{i}", {"cpu": "1"}, on="n1", priority=i % 2) for i in range(4)))
    after = preempt(state, pod("high", {"cpu": "2"}, priority=10))
    assert victims(after) == ["a2", "a0"]
    assert (after.nominated, after.message) == ("n1", FULL)


def test_pods_of_equal_priority_are_no_victims() -> None:
    state = cluster(node("n1"), node("n2", {"cpu": "1"}), pod("a", {"cpu": "4"}, on="n1", priority=5))
    after = preempt(state, pod("b", {"cpu": "2"}, priority=5))
    assert after.preemption is None
    assert after.nominated == ""
    assert after.message == (
        "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_what_remains_after_removal_is_told() -> None:
    low, high = pod("low", {"cpu": "1"}, on="n1"), pod("x", {"cpu": "3"}, on="n1", priority=9)
    after = preempt(cluster(node("n1"), low, high), pod("p", {"cpu": "2"}, priority=5))
    assert after.message.endswith("preemption: 0/1 nodes are available: 1 Insufficient cpu.")


def test_a_pod_that_never_preempts_keeps_its_nomination() -> None:
    state = cluster(node("n1"), pod("low", {"cpu": "4"}, on="n1"))
    after = preempt(state, pod("p", {"cpu": "2"}, priority=5, preemptionPolicy="Never"))
    suffix = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert (after.message, after.nominated, after.preemption) == (f"{FULL} {suffix}", None, None)


@pytest.mark.parametrize(
    ("victim", "is_eligible"),
    [
        ({"terminating": True, "status": LEAVING}, False),
        ({"terminating": True}, True),
        ({"status": LEAVING}, True),
        ({"terminating": True, "status": LEAVING, "priority": 7}, True),
    ],
)
def test_a_pod_waits_for_its_victims_to_leave(victim: dict[str, Any], is_eligible: bool) -> None:
    other = pod("other", {"cpu": "2"}, on="n1")
    state = cluster(node("n1"), other, pod("leaving", {"cpu": "2"}, on="n1", **victim))
    info = pod("p", {"cpu": "2"}, priority=5, status={"nominatedNodeName": "n1"})
    after = preempt(state, info)
    assert (after.preemption is not None) == is_eligible
    if not is_eligible:
        assert after.nominated is None
        assert "not eligible due to a terminating pod on the nominated node." in after.message


def test_lower_pods_nominated_to_the_node_are_outranked() -> None:
    state = cluster(node("n1"), pod("low", {"cpu": "4"}, on="n1"))
    lower = pod("lower", {"cpu": "1"}, priority=3)
    state.nominations.add(lower, "n1")
    after = preempt(state, pod("p", {"cpu": "2"}, priority=5))
    assert after.preemption is not None
    assert after.preemption.outranked == (lower,)


def test_pre_filter_that_ends_early_leaves_not_found() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    after = preempt(cluster(node("n1")), pod("p", volumes=[claim]))
    assert after.message.endswith(". not found")
    assert after.nominated is None


def test_importance() -> None:
    early, late = {"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-01-02T00:00:00Z"}
    pods = [pod("a"), pod("b", status=late), pod("c", status=early), pod("d"), pod("e", priority=1)]
    assert [info.name for info in by_importance(pods)] == ["e", "c", "b", "d", "a"]


def test_few_candidates_are_enough_when_told_so() -> None:
    nodes = [node(f"n{i}") for i in range(20)]
    lows = [pod(f"low{i}", {"cpu": "4"}, on=f"n{i}", priority=i % 3) for i in range(20)]
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    after = preempt(
        cluster(*nodes, *lows), pod("p", {"cpu": "1"}, priority=9), args={"DefaultPreemption": args}
    )
    assert len(victims(after)) == 1


# Budgets


def budget(allowed: int, disrupted: tuple[str, ...] = (), selector: Any = None) -> PodDisruptionBudget:
    tree = {
        "metadata": {"name": f"b{allowed}{selector}", "namespace": "default", "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}} if selector is None else selector},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "t")},
    }
    return msgspec.convert(tree, PodDisruptionBudget)


def violating(*budgets: PodDisruptionBudget, names: str = "ab") -> str:
    state = ClusterState()
    for one in budgets:
        state.upsert_object(RESOURCE, one)
    pods = [pod(name, labels={"app": "x"}) for name in names]
    found = Budgets(state).violating(pods)
    return "".join(name for name, flag in zip(names, found, strict=True) if flag)


def test_b7_a_pod_already_disrupted_is_paid_for_in_any_order() -> None:
    assert violating(budget(1, ("a",))) == violating(budget(1, ("a",)), names="ba") == ""
    assert violating(budget(1)) == "b"
    assert violating(budget(0)) == "ab"
    assert violating(budget(0, selector={})) == ""
    assert violating(budget(2), budget(1)) == "b"
