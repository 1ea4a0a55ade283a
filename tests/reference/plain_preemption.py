"""Victim selection, slow and plain: one node after the other, everything counted anew, on manifests.

Written from the rules alone; shares the per-node spread and affinity reference and nothing else.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from reference.plain_spread_affinity import PlainCluster, name_of, reject

Tree = dict[str, Any]

EARLY = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")
NOW = 4_000_000_000  # after every start time


@dataclass
class Setting:
    cluster: PlainCluster
    budgets: list[Tree] = field(default_factory=list)
    nominated: list[tuple[Tree, str]] = field(default_factory=list)  # pod, node


@dataclass(frozen=True)
class Victims:
    names: tuple[str, ...]  # most important first
    rank: tuple[float, ...]


def priority(pod: Tree) -> int:
    return int(pod["spec"].get("priority", 0))


def cpu(pod: Tree) -> int:
    return int(pod["spec"]["containers"][0].get("resources", {}).get("requests", {}).get("cpu", 0))


def ports(pod: Tree) -> set[int]:
    return {port["hostPort"] for port in pod["spec"]["containers"][0].get("ports", ())}


def pods_on(cluster: PlainCluster, node: Tree) -> list[Tree]:
    return [pod for pod in cluster.pods if pod["spec"]["nodeName"] == name_of(node)]


def is_curable(cluster: PlainCluster, pod: Tree, node: Tree) -> bool | None:
    """None: the pod fits; else whether removals on the node may help."""
    rejection = reject(cluster, pod, node)
    if rejection is not None and rejection.plugin in EARLY:
        return False
    there = pods_on(cluster, node)
    amounts = node["status"]["allocatable"]
    if any(ports(pod) & ports(other) for other in there):
        return True
    is_short = bool(cpu(pod)) and sum(map(cpu, there)) + cpu(pod) > int(amounts["cpu"])
    if is_short or len(there) >= int(amounts["pods"]):
        return cpu(pod) <= int(amounts["cpu"])
    return None if rejection is None else rejection.is_resolvable


def fits(setting: Setting, gone: list[Tree], pod: Tree, node: Tree) -> bool:
    """With the pods nominated to the node whose priority is not lower, and without them."""
    cluster = copy(setting.cluster)
    cluster.pods = [other for other in setting.cluster.pods if not any(other is one for one in gone)]
    beside = [
        {**other, "spec": {**other["spec"], "nodeName": name_of(node)}}
        for other, where in setting.nominated
        if where == name_of(node) and priority(other) >= priority(pod)
    ]
    if beside:
        more = copy(cluster)
        more.pods = [*cluster.pods, *beside]
        if is_curable(more, pod, node) is not None:
            return False
    return is_curable(cluster, pod, node) is None


def may_be_tried(setting: Setting, pod: Tree, node: Tree) -> bool:
    """The node's own reason, that of the first of both passes that fails, is one that removals may cure."""
    beside = [
        {**other, "spec": {**other["spec"], "nodeName": name_of(node)}}
        for other, where in setting.nominated
        if where == name_of(node) and priority(other) >= priority(pod)
    ]
    more = replace(setting.cluster, pods=[*setting.cluster.pods, *beside])
    first = is_curable(more, pod, node) if beside else None
    return bool(first if first is not None else is_curable(setting.cluster, pod, node))


def important_first(pods: list[Tree]) -> list[Tree]:
    """Insertion by pairwise comparison: of two without start time the later one wins."""
    order: list[Tree] = []
    for pod in pods:
        place = len(order)
        while place and is_before(pod, order[place - 1]):
            place -= 1
        order.insert(place, pod)
    return order


def start(pod: Tree) -> str | None:
    return pod.get("status", {}).get("startTime")


def is_before(later: Tree, earlier: Tree) -> bool:
    if priority(later) != priority(earlier):
        return priority(later) > priority(earlier)
    mine, theirs = start(later), start(earlier)
    if mine is None:
        return theirs is None
    return theirs is None or mine < theirs


def violating(setting: Setting, pods: list[Tree]) -> list[Tree]:
    left = [budget["status"]["disruptionsAllowed"] for budget in setting.budgets]
    found = []
    for pod in pods:
        is_over = False
        for number, budget in enumerate(setting.budgets):
            wanted = budget["spec"].get("selector", {}).get("matchLabels")
            labels = pod["metadata"].get("labels") or {}
            if budget["metadata"]["namespace"] != pod["metadata"]["namespace"] or not wanted or not labels:
                continue
            if any(labels.get(key) != value for key, value in wanted.items()):
                continue
            if pod["metadata"]["name"] in budget["status"].get("disruptedPods", {}):
                continue
            left[number] -= 1
            is_over = is_over or left[number] < 0
        if is_over:
            found.append(pod)
    return found


def victims_on(setting: Setting, pod: Tree, node: Tree) -> Victims | None:
    lower = [other for other in pods_on(setting.cluster, node) if priority(other) < priority(pod)]
    if not lower or not may_be_tried(setting, pod, node) or not fits(setting, lower, pod, node):
        return None
    order = important_first(lower)
    forbidden = violating(setting, order)
    gone = list(lower)
    for other in [*forbidden, *(one for one in order if one not in forbidden)]:
        rest = [one for one in gone if one is not other]
        if fits(setting, rest, pod, node):
            gone = rest
    victims = [one for one in order if any(one is other for other in gone)]
    return Victims(tuple(name_of(one) for one in victims), rank(victims, forbidden))


def rank(victims: list[Tree], forbidden: list[Tree]) -> tuple[float, ...]:
    """The lowest is chosen."""
    if not victims:
        return (-1.0,)
    highest = max(map(priority, victims))
    starts = [start(one) for one in victims if priority(one) == highest]
    return (
        sum(one in forbidden for one in victims),
        highest,
        sum(priority(one) + 2**31 for one in victims),
        len(victims),
        -min(NOW if text is None else int(text[8:10]) for text in starts),
    )


def answers(setting: Setting, pod: Tree) -> dict[str, Victims]:
    """Every right answer: node -> victims."""
    found = {name_of(node): victims_on(setting, pod, node) for node in setting.cluster.nodes}
    known = {name: victims for name, victims in found.items() if victims is not None}
    best = min((victims.rank for victims in known.values()), default=None)
    return {name: victims for name, victims in known.items() if victims.rank == best}
