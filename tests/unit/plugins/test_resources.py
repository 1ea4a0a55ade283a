"""NodeResourcesFit and NodeResourcesBalancedAllocation: what fits, scores worked out by hand (E10, E11)."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.framework.status import Code
from statekit import cluster, decide_with, feasible, node, pod, scores_of

FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"


def strategy(kind: str, *resources: tuple[str, int], **extra: Any) -> dict[str, Any]:
    listed = [{"name": name, "weight": weight} for name, weight in resources]
    return {FIT: {"scoringStrategy": {"type": kind, "resources": listed, **extra}}}


# Filter


def test_all_failing_resources_are_listed() -> None:
    full = pod("full", {"cpu": 4, "memory": "8Gi"}, on="n1")
    state = cluster(node("n1", {"cpu": 4, "memory": "8Gi", "pods": 1}), full)
    asked = {"cpu": 1, "memory": 1, "ephemeral-storage": 1, "example.com/gpu": 1, "hugepages-2Mi": 1}
    decision = decide_with(state, pod("p", asked))
    assert decision.message == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient ephemeral-storage, "
        "1 Insufficient example.com/gpu, 1 Insufficient hugepages-2Mi, 1 Insufficient memory, "
        "1 Too many pods."
    )


@pytest.mark.parametrize(("cpu", "code"), [("4", Code.UNSCHEDULABLE), ("4001m", Code.UNRESOLVABLE)])
def test_more_than_a_whole_node_cannot_be_resolved(cpu: str, code: Code) -> None:
    state = cluster(node("n1"), pod("a", {"cpu": "1"}, on="n1"))
    decision = decide_with(state, pod("p", {"cpu": cpu}))
    assert decision.failures is not None
    assert decision.failures.code(0) is code
    assert decision.failures.status(0).reasons == ("Insufficient cpu",)


def test_an_exact_fit_fits() -> None:
    state = cluster(node("n1", {"cpu": "3", "memory": "1Gi", "pods": 1}))
    assert decide_with(state, pod("p", {"cpu": "3000m", "memory": "1024Mi"})).node == "n1"


def test_e11_zero_of_an_overcommitted_resource_is_nothing() -> None:
    lost = {"cpu": 4, "memory": "8Gi", "pods": 10, "example.com/dev": 0}
    users = [pod(f"u{i}", {"example.com/dev": 1}, on="n1") for i in range(2)]
    state = cluster(node("n1", lost), *users)
    assert decide_with(state, pod("p0", {"example.com/dev": 0, "cpu": "100m"})).node == "n1"
    decision = decide_with(state, pod("p1", {"example.com/dev": 1}))
    assert decision.message == "0/1 nodes are available: 1 Insufficient example.com/dev."
    state.upsert_node(node("n1", {**lost, "example.com/dev": 3}))
    assert decide_with(state, pod("p1", {"example.com/dev": 1})).node == "n1"


def test_e11_zero_cpu_fits_on_an_overcommitted_node() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": "4500m"}, on="n1"))
    assert decide_with(state, pod("p", {"cpu": 0, "memory": "64Mi"})).node == "n1"


def test_ignored_resources_and_groups() -> None:
    state = cluster(node("n1"))
    asked = pod("p", {"example.com/a": 1, "other.org/b": 1})
    assert decide_with(state, asked).message.count("Insufficient") == 2
    args = {FIT: {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["other.org"]}}
    assert decide_with(state, asked, args=args).node == "n1"
    args = {FIT: {"ignoredResources": ["cpu"]}}
    assert not decide_with(state, pod("q", {"cpu": 9}), args=args).is_scheduled


def test_pod_level_requests_are_filtered_by_and_not_scored() -> None:
    state = cluster(node("n1"), node("n2"))
    level = pod("p", {"cpu": "1"}, resources={"requests": {"cpu": 3}})
    # Fit counts the container: (4000 - 1000) / 4000 = 75, (8192 - 200) / 8192 = 97; mean 86.
    assert scores_of(state, decide_with(state, level), FIT) == {"n1": 86, "n2": 86}
    # Balanced counts the pod level: |3/4 - 0| / 2 = 0.375, s1 = 62, s0 = 100, 50 + 12 / 2 = 56.
    assert scores_of(state, decide_with(state, level), BALANCED) == {"n1": 56, "n2": 56}
    state.upsert_pod(pod("a", {"cpu": 2}, on="n1"))
    assert decide_with(state, level).node == "n2"


# Scores


def two_nodes() -> Any:
    """n1 with 1 of 4 CPU and 2 of 8Gi in use, n2 with 2 CPU, 16Gi free."""
    return cluster(
        node("n1"),
        node("n2", {"cpu": 2, "memory": "16Gi", "pods": 9}),
        pod("a", {"cpu": 1, "memory": "2Gi"}, on="n1"),
    )


def test_least_allocated() -> None:
    state = two_nodes()
    decision = decide_with(state, pod("p", {"cpu": "1", "memory": "1Gi"}))
    # n1: cpu (4000-2000)*100/4000 = 50, memory (8-3)*100/8 = 62, (50+62)/2 = 56
    # n2: cpu (2000-1000)*100/2000 = 50, memory (16-1)*100/16 = 93, (50+93)/2 = 71
    assert scores_of(state, decision, FIT) == {"n1": 56, "n2": 71}


def test_most_allocated_with_weights() -> None:
    state = two_nodes()
    args = strategy("MostAllocated", ("cpu", 3), ("memory", 1))
    decision = decide_with(state, pod("p", {"cpu": "1", "memory": "1Gi"}), args=args)
    # n1: cpu 50, memory 3/8 = 37, (150+37)/4 = 46; n2: cpu 50, memory 1/16 = 6, (150+6)/4 = 39
    assert scores_of(state, decision, FIT) == {"n1": 46, "n2": 39}


def test_requested_to_capacity_ratio() -> None:
    state = two_nodes()
    shape = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    args = strategy("RequestedToCapacityRatio", ("cpu", 1), ("memory", 1), requestedToCapacityRatio=shape)
    decision = decide_with(state, pod("p", {"cpu": "1", "memory": "1Gi"}), args=args)
    # n1: (50 + 37) / 2 = 43.5, rounded 44; n2: (50 + 6) / 2 = 28
    assert scores_of(state, decision, FIT) == {"n1": 44, "n2": 28}


def test_requested_to_capacity_ratio_counts_only_what_scores() -> None:
    state = two_nodes()
    points = [(0, 10), (50, 0)]
    shape = {"shape": [{"utilization": u, "score": s} for u, s in points]}
    args = strategy("RequestedToCapacityRatio", ("cpu", 1), ("memory", 1), requestedToCapacityRatio=shape)
    decision = decide_with(state, pod("p", {"cpu": "1", "memory": "1Gi"}), args=args)
    # Both at cpu 50: score 0, left out. n1 memory 37: 100 - 74 = 26; n2 memory 6: 100 - 12 = 88
    assert scores_of(state, decision, FIT) == {"n1": 26, "n2": 88}


def test_scalar_resources_score_only_when_asked_for() -> None:
    gpu = {"cpu": 4, "memory": "8Gi", "pods": 9, "example.com/gpu": 4}
    state = cluster(node("n1", gpu), node("n2"))
    args = strategy("LeastAllocated", ("example.com/gpu", 1))
    without = decide_with(state, pod("p", {"cpu": 1}), args=args)
    assert scores_of(state, without, FIT) == {"n1": 0, "n2": 0}
    both = cluster(node("n1", gpu), node("n2", {**gpu, "example.com/gpu": 2}))
    asking = decide_with(both, pod("p", {"example.com/gpu": 1}), args=args)
    assert scores_of(both, asking, FIT) == {"n1": 75, "n2": 50}


def test_a_resource_that_a_node_lacks_does_not_count_there() -> None:
    state = cluster(node("n1"), node("n2", {"cpu": 4, "pods": 9}))
    decision = decide_with(state, pod("p", {"cpu": 1}))
    # n2 has no memory at all: 75 from cpu alone. n1: (75 + (8192-200)*100/8192 = 97) / 2 = 86
    assert scores_of(state, decision, FIT) == {"n1": 86, "n2": 75}


def test_e10_defaults_count_for_least_allocated_only() -> None:
    idle = [pod(f"i{i}", on="n1") for i in range(30)]
    state = cluster(node("n1"), node("n2"), *idle)
    decision = decide_with(state, pod("p", {"cpu": 1, "memory": "2Gi"}))
    assert feasible(state, decision) == {"n1", "n2"}
    # |1/4 - 2/8| = 0 on both: 50 + (50 + 100 - 100) / 2
    assert scores_of(state, decision, BALANCED) == {"n1": 75, "n2": 75}
    # n1: cpu 30 * 100m + 1 = 4 of 4: 0; memory (8192 - 6000 - 2048) * 100 / 8192 = 1; mean 0
    assert scores_of(state, decision, FIT) == {"n1": 0, "n2": 75}
    assert decision.node == "n2"


def test_balance_improves_where_the_pod_evens_out() -> None:
    state = cluster(node("n1"), node("n2"), pod("a", {"memory": "4Gi"}, on="n1"))
    decision = decide_with(state, pod("p", {"cpu": 1}))
    # n1: before |0 - .5|/2 = .25 -> 75, after |.25 - .5|/2 = .125 -> 87: 50 + (50 + 12)/2 = 81
    # n2: before 100, after .125 -> 87: 50 + (50 - 13)/2 = 68
    assert scores_of(state, decision, BALANCED) == {"n1": 81, "n2": 68}


def test_balance_over_three_resources_and_over_one() -> None:
    gpu = {"cpu": 4, "memory": "8Gi", "pods": 9, "example.com/gpu": 2}
    state = cluster(node("n1", gpu), node("n2", gpu), node("n3", {"cpu": 4, "pods": 9}))
    resources = [{"name": n, "weight": 1} for n in ("cpu", "memory", "example.com/gpu")]
    decision = decide_with(
        state, pod("p", {"cpu": 1, "example.com/gpu": 2}), args={BALANCED: {"resources": resources}}
    )
    # fractions .25, 0, 1: mean .41667, population deviation .42492 -> 57; before 100: 50 + 7/2 = 53
    assert scores_of(state, decision, BALANCED) == {"n1": 53, "n2": 53}
    lone = decide_with(state, pod("q", {"cpu": 1}), args={BALANCED: {"resources": resources}})
    # n3 offers cpu only: no spread before or after
    assert scores_of(state, lone, BALANCED)["n3"] == 75


def test_balance_is_skipped_for_pods_without_requests() -> None:
    state = cluster(node("n1"), node("n2"))
    decision = decide_with(state, pod("p"))
    assert decision.scores is not None
    assert BALANCED not in decision.scores.by_plugin


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"scoringStrategy": {"type": "Best"}}, '"Best" is not a scoring strategy'),
        ({"scoringStrategy": {"type": "RequestedToCapacityRatio"}}, "at least one point"),
        ({"ignored": []}, "unknown field `ignored`"),
    ],
)
def test_args_that_make_no_sense_are_refused(args: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        decide_with(cluster(node("n1")), pod("p"), args={FIT: args})
