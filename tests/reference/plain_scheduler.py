"""One pod's decision the slow way: every filter on every node in order, then every score.

Extension point for volumes: add `by_...` filters to `FILTERS_BEFORE_PODS` in the plugins' order (after
resources, before spread) and, where a plugin rejects in PreFilter, a function to `PRE_FILTERS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from reference.plain_affinity import PlainAffinity
from reference.plain_nodes import (
    by_cordon,
    by_features,
    by_name,
    by_node_affinity,
    by_ports,
    by_resources,
    by_taints,
    pinned_names,
)
from reference.plain_scores import SCORERS, Scores
from reference.plain_spread import PlainSpread
from reference.plain_world import PlainWorld, Rejection, Tree, name_of

Filter = Callable[[PlainWorld, Tree, Tree], Rejection | None]
FILTERS_BEFORE_PODS: list[Filter] = [
    by_cordon,
    by_name,
    by_taints,
    by_node_affinity,
    by_ports,
    by_resources,
    # Volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone belong here.
]
FILTERS_AFTER_PODS: list[Filter] = [by_features]

PreFilter = Callable[[PlainWorld, Tree], str]
PRE_FILTERS: list[PreFilter] = []
"""Each gives the reason that rejects the pod wherever it would go, or an empty string; in plugin order."""


def node_affinity_conflict(_world: PlainWorld, pod: Tree) -> str:
    return "pod affinity terms conflict" if pinned_names(pod) == set() else ""


PRE_FILTERS.append(node_affinity_conflict)


@dataclass
class PlainDecision:
    feasible: list[str] = field(default_factory=list)
    rejections: dict[str, Rejection] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    message: str = ""
    scores: dict[str, Scores] = field(default_factory=dict)  # weighted, only with two feasible nodes or more

    def best(self) -> set[str]:
        totals = {name: sum(of.get(name, 0) for of in self.scores.values()) for name in self.feasible}
        return {name for name, total in totals.items() if total == max(totals.values())}


def decide_plainly(world: PlainWorld, pod: Tree) -> PlainDecision:
    decision = PlainDecision()
    start = f"0/{len(world.nodes)} nodes are available"
    if not world.nodes:
        decision.message = "no nodes available to schedule pods"
        return decision
    for pre_filter in PRE_FILTERS:
        if reason := pre_filter(world, pod):
            decision.message = f"{start}: {reason}."
            return decision
    _filter(world, pod, decision)
    if not decision.feasible:
        decision.message = f"{start}: {_histogram(decision)}."
    if len(decision.feasible) > 1:
        decision.scores = _scores(world, pod, decision)
    return decision


def _filter(world: PlainWorld, pod: Tree, decision: PlainDecision) -> None:
    pinned = pinned_names(pod)
    examine = _Examination(world, pod)
    for node in world.nodes:
        name = name_of(node)
        if pinned is not None and name not in pinned:
            decision.absent.add(name)
            continue
        rejection = _with_nominated(world, pod, node) or examine.reject(node)
        if rejection is None:
            decision.feasible.append(name)
        else:
            decision.rejections[name] = rejection


def _with_nominated(world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    """As if the pods of no lower priority that are nominated to the node were there."""
    priority = pod["spec"].get("priority") or 0
    others = [
        other
        for other, name in world.nominated
        if name == name_of(node) and (other["spec"].get("priority") or 0) >= priority
    ]
    if not others:
        return None
    return _Examination(world.with_pods(others, name_of(node)), pod).reject(node)


class _Examination:
    """What counts over all nodes is counted once; the rest node by node."""

    def __init__(self, world: PlainWorld, pod: Tree) -> None:
        self.world, self.pod = world, pod
        self.spread = PlainSpread(world, pod)
        self.affinity = PlainAffinity(world, pod)

    def reject(self, node: Tree) -> Rejection | None:
        """What the first failing plugin says; None when the node passes."""
        for by in FILTERS_BEFORE_PODS:
            if rejection := by(self.world, self.pod, node):
                return rejection
        if rejection := self.spread.reject(node) or self.affinity.reject(node):
            return rejection
        for by in FILTERS_AFTER_PODS:
            if rejection := by(self.world, self.pod, node):
                return rejection
        return None


def _histogram(decision: PlainDecision) -> str:
    counts: Counter[str] = Counter()
    for rejection in decision.rejections.values():
        counts.update(rejection.reasons)
    if decision.absent:
        counts["node(s) didn't satisfy plugin(s) [NodeAffinity]"] = len(decision.absent)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def _scores(world: PlainWorld, pod: Tree, decision: PlainDecision) -> dict[str, Scores]:
    feasible = [node for node in world.nodes if name_of(node) in decision.feasible]
    found = {plugin: (weight, scorer(world, pod, feasible)) for plugin, (weight, scorer) in SCORERS.items()}
    found["PodTopologySpread"] = (2, PlainSpread(world, pod).scores(feasible))
    found["InterPodAffinity"] = (2, PlainAffinity(world, pod).scores(feasible))
    return {
        plugin: {name: weight * scores.get(name, 0) for name in decision.feasible}
        for plugin, (weight, scores) in found.items()
    }
