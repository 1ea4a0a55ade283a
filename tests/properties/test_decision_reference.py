"""The engine decides like the slow reference, on random clusters of every feature but volumes.

Feasible nodes, reasons node by node, the message and every plugin's score. Cases are split over this file and
its numbered siblings, which run beside each other.
"""

from __future__ import annotations

from collections import Counter

import pytest

from reference import differential
from reference.decision_property import LARGE, LARGE_CASES, SMALL, SMALL_CASES, decision_property
from reference.plain_scheduler import PlainDecision, decide_plainly
from reference.plain_world import PlainWorld, Tree

test_small_clusters = pytest.mark.slow(decision_property(0, SMALL, SMALL_CASES))
test_large_clusters = pytest.mark.slow(decision_property(0, LARGE, LARGE_CASES))

EXPECTED = {
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient ephemeral-storage",
    "Insufficient example.com/gpu",
    "Insufficient hugepages-2Mi",
    "Insufficient other.io/nic",
    "Too many pods",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match Pod's required features",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match scheduler-enforced node affinity",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) had untolerated taint(s)",
    "node(s) were unschedulable",
}
SCORED = {
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
}


@pytest.mark.slow
def test_the_generator_covers_every_reason_and_every_score(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()

    def spy(world: PlainWorld, pod: Tree) -> PlainDecision:
        decision = decide_plainly(world, pod)
        seen.update({reason for r in decision.rejections.values() for reason in r.reasons})
        seen.update(plugin for plugin, of in decision.scores.items() if len(set(of.values())) > 1)
        seen["absent"] += bool(decision.absent)
        seen["conflict"] += "pod affinity terms conflict" in decision.message
        return decision

    monkeypatch.setattr(differential, "decide_plainly", spy)
    for seed in range(1, 121):
        assert not differential.run_case(seed)
    assert EXPECTED | SCORED | {"absent", "conflict"} <= {
        name for name, count in seen.items() if count > 0
    }, seen
