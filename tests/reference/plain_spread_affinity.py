"""Spread and inter-pod affinity the slow way: plain manifests, one node after the other, nothing kept.

Written from the rules alone and for tests only: no arrays, no code shared with the plugins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Tree = dict[str, Any]
Labels = dict[str, str]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass
class PlainCluster:
    """Manifests. Every pod in `pods` has `spec.nodeName`."""

    nodes: list[Tree] = field(default_factory=list)
    pods: list[Tree] = field(default_factory=list)
    namespaces: dict[str, Labels] = field(default_factory=dict)
    services: list[Tree] = field(default_factory=list)
    replica_sets: list[Tree] = field(default_factory=list)
    hard_pod_affinity_weight: int = 1
    ignore_preferred: bool = False
    default_constraints: list[Tree] | None = None  # None: the system's

    def pods_on(self, node: Tree) -> list[Tree]:
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == node["metadata"]["name"]]


@dataclass(frozen=True)
class Rejection:
    plugin: str
    is_resolvable: bool
    text: str


def labels_of(tree: Tree) -> Labels:
    return tree["metadata"].get("labels") or {}


# Selectors


def meets(expression: Tree, labels: Labels) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt":
            return labels.get(key, "x").isdigit() and int(labels[key]) > int(values[0])
        case "Lt":
            return labels.get(key, "x").isdigit() and int(labels[key]) < int(values[0])
    raise AssertionError(expression)


def selects(selector: Tree | None, labels: Labels) -> bool:
    if selector is None:
        return False
    pairs = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or []
    return all(labels.get(k) == v for k, v in pairs) and all(meets(e, labels) for e in expressions)


def is_empty(selector: Tree | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def with_keys(term: Tree, owner: Tree) -> Tree | None:
    """The term's label selector with matchLabelKeys and mismatchLabelKeys of its owner."""
    selector = term.get("labelSelector")
    if selector is None:
        return None
    own = labels_of(owner)
    expressions = list(selector.get("matchExpressions") or [])
    for field_name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field_name) or []:
            if key in own:
                expressions.append({"key": key, "operator": operator, "values": [own[key]]})
    return {"matchLabels": selector.get("matchLabels"), "matchExpressions": expressions}


# Nodes


def tolerates(pod: Tree, taint: Tree) -> bool:
    for toleration in pod["spec"].get("tolerations") or []:
        if toleration.get("effect", "") not in ("", taint["effect"]):
            continue
        if toleration.get("key", "") not in ("", taint["key"]):
            continue
        if toleration.get("operator", "Equal") == "Exists":
            return True
        if toleration.get("key") and toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def has_untolerated_taint(pod: Tree, node: Tree) -> bool:
    taints = node["spec"].get("taints") or []
    return any(t["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, t) for t in taints)


def wants_node(pod: Tree, node: Tree) -> bool:
    labels = labels_of(node)
    if any(labels.get(k) != v for k, v in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    if REQUIRED not in affinity:
        return True
    terms = [term.get("matchExpressions") or [] for term in affinity[REQUIRED]["nodeSelectorTerms"]]
    return any(term and all(meets(e, labels) for e in term) for term in terms)


# Filter


def reject(cluster: PlainCluster, pod: Tree, node: Tree) -> Rejection | None:
    """What the first failing plugin says; None when the node passes."""
    if node["spec"].get("unschedulable") and not tolerates(pod, CORDONED):
        return Rejection("NodeUnschedulable", False, "node(s) were unschedulable")
    if has_untolerated_taint(pod, node):
        return Rejection("TaintToleration", False, "node(s) had untolerated taint(s)")
    if not wants_node(pod, node):
        return Rejection("NodeAffinity", False, "node(s) didn't match Pod's node affinity/selector")
    return _reject_by_spread(cluster, pod, node) or _reject_by_affinity(cluster, pod, node)


def _reject_by_spread(cluster: PlainCluster, pod: Tree, node: Tree) -> Rejection | None:
    text = "node(s) didn't match pod topology spread constraints"
    hard = constraints_of(cluster, pod, "DoNotSchedule")
    for constraint in hard:
        key = constraint["topologyKey"]
        if key not in labels_of(node):
            return Rejection("PodTopologySpread", False, f"{text} (missing required label)")
        domains: dict[str, int] = {}
        for other in cluster.nodes:
            if _counts_for(pod, other, constraint, hard):
                value = labels_of(other)[key]
                domains[value] = domains.get(value, 0) + _matching(cluster, pod, other, constraint)
        fewest = min(domains.values(), default=0)
        if len(domains) < (constraint.get("minDomains") or 1):
            fewest = 0
        own = 1 if selects(constraint["selector"], labels_of(pod)) else 0
        if domains.get(labels_of(node)[key], 0) + own - fewest > constraint["maxSkew"]:
            return Rejection("PodTopologySpread", True, text)
    return None


def constraints_of(cluster: PlainCluster, pod: Tree, action: str) -> list[Tree]:
    """Constraints with `selector`, their keys merged: the pod's own, else the default ones."""
    own = pod["spec"].get("topologySpreadConstraints") or []
    if own:
        return [{**c, "selector": with_keys(c, pod)} for c in own if c["whenUnsatisfiable"] == action]
    defaults = cluster.default_constraints
    if defaults is None:
        defaults = [
            {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
            {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
        ]
    selector = _default_selector(cluster, pod)
    if is_empty(selector):
        return []
    return [{**c, "selector": selector} for c in defaults if c["whenUnsatisfiable"] == action]


def _default_selector(cluster: PlainCluster, pod: Tree) -> Tree:
    expressions: list[Tree] = []
    for service in cluster.services:
        wanted = service["spec"].get("selector") or {}
        is_here = service["metadata"]["namespace"] == pod["metadata"]["namespace"]
        if is_here and wanted and all(labels_of(pod).get(k) == v for k, v in wanted.items()):
            expressions += [{"key": k, "operator": "In", "values": [v]} for k, v in wanted.items()]
    owners = [o for o in pod["metadata"].get("ownerReferences") or [] if o.get("controller")]
    for owner in owners:
        for replica_set in cluster.replica_sets:
            meta = replica_set["metadata"]
            if (meta["namespace"], meta["name"]) == (pod["metadata"]["namespace"], owner["name"]):
                pairs = replica_set["spec"]["selector"]["matchLabels"]
                expressions += [{"key": k, "operator": "In", "values": [v]} for k, v in pairs.items()]
    return {"matchExpressions": expressions}


def _counts_for(pod: Tree, node: Tree, constraint: Tree, among: list[Tree], *, all_keys: bool = True) -> bool:
    if all_keys and any(c["topologyKey"] not in labels_of(node) for c in among):
        return False
    if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not wants_node(pod, node):
        return False
    honors_taints = (constraint.get("nodeTaintsPolicy") or "Ignore") == "Honor"
    return not (honors_taints and has_untolerated_taint(pod, node))


def _matching(cluster: PlainCluster, pod: Tree, node: Tree, constraint: Tree) -> int:
    if is_empty(constraint["selector"]):
        return 0
    return sum(
        other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and not other["metadata"].get("deletionTimestamp")
        and selects(constraint["selector"], labels_of(other))
        for other in cluster.pods_on(node)
    )


def terms_of(pod: Tree, side: str, strength: str) -> list[Tree]:
    return ((pod["spec"].get("affinity") or {}).get(side) or {}).get(strength) or []


def term_matches(cluster: PlainCluster, term: Tree, owner: Tree, other: Tree) -> bool:
    """Whether a term of `owner` selects the pod `other`."""
    namespace = other["metadata"]["namespace"]
    names, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not names and selector is None:
        names = [owner["metadata"]["namespace"]]
    is_there = namespace in names or selects(selector, cluster.namespaces.get(namespace, {}))
    return is_there and selects(with_keys(term, owner), labels_of(other))


def _placed(cluster: PlainCluster) -> Iterator[tuple[Tree, Tree]]:
    for node in cluster.nodes:
        for pod in cluster.pods_on(node):
            yield node, pod


def _same_domain(term: Tree, node: Tree, other: Tree) -> bool:
    key = term["topologyKey"]
    return (
        key in labels_of(node) and key in labels_of(other) and labels_of(node)[key] == labels_of(other)[key]
    )


def _reject_by_affinity(cluster: PlainCluster, pod: Tree, node: Tree) -> Rejection | None:
    if not _affinity_holds(cluster, pod, node):
        return Rejection("InterPodAffinity", False, "node(s) didn't match pod affinity rules")
    for term in terms_of(pod, "podAntiAffinity", REQUIRED):
        for place, other in _placed(cluster):
            if _same_domain(term, node, place) and term_matches(cluster, term, pod, other):
                return Rejection("InterPodAffinity", True, "node(s) didn't match pod anti-affinity rules")
    for place, other in _placed(cluster):
        for term in terms_of(other, "podAntiAffinity", REQUIRED):
            if _same_domain(term, node, place) and term_matches(cluster, term, other, pod):
                text = "node(s) didn't satisfy existing pods anti-affinity rules"
                return Rejection("InterPodAffinity", True, text)
    return None


def _affinity_holds(cluster: PlainCluster, pod: Tree, node: Tree) -> bool:
    terms = terms_of(pod, "podAffinity", REQUIRED)
    if any(term["topologyKey"] not in labels_of(node) for term in terms):
        return False
    matching = [
        place
        for place, other in _placed(cluster)
        if all(term_matches(cluster, term, pod, other) for term in terms)
    ]
    if all(any(_same_domain(term, node, place) for place in matching) for term in terms):
        return True
    is_counted = any(term["topologyKey"] in labels_of(place) for term in terms for place in matching)
    return not is_counted and all(term_matches(cluster, term, pod, pod) for term in terms)


# Score


def spread_scores(cluster: PlainCluster, pod: Tree, feasible: list[Tree]) -> dict[str, int]:
    """Node -> 0..100; empty when there is nothing to score."""
    soft = constraints_of(cluster, pod, "ScheduleAnyway")
    if not soft:
        return {}
    all_keys = bool(pod["spec"].get("topologySpreadConstraints")) or cluster.default_constraints is not None
    ignored = [
        node for node in feasible if all_keys and any(c["topologyKey"] not in labels_of(node) for c in soft)
    ]
    scored = [node for node in feasible if node not in ignored]
    raw = {name_of(node): _raw_spread(cluster, pod, node, soft, scored, all_keys) for node in scored}
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    scores = {name: 100 * (high + low - s) // high if high else 100 for name, s in raw.items()}
    return {**scores, **{name_of(node): 0 for node in ignored}}


def name_of(tree: Tree) -> str:
    name: str = tree["metadata"]["name"]
    return name


def _raw_spread(
    cluster: PlainCluster, pod: Tree, node: Tree, soft: list[Tree], scored: list[Tree], all_keys: bool
) -> int:
    total = 0.0
    for constraint in soft:
        key = constraint["topologyKey"]
        if key not in labels_of(node):
            continue
        value = labels_of(node)[key]
        if key == HOSTNAME:
            size, count = len(scored), _matching(cluster, pod, node, constraint)
        else:
            size = len({labels_of(other).get(key, "") for other in scored})
            count = sum(
                _matching(cluster, pod, other, constraint)
                for other in cluster.nodes
                if labels_of(other).get(key, "") == value
                and _counts_for(pod, other, constraint, soft, all_keys=all_keys)
            )
        total += count * math.log(size + 2) + (constraint["maxSkew"] - 1)
    return int(Decimal(total).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def affinity_scores(cluster: PlainCluster, pod: Tree, feasible: list[Tree]) -> dict[str, int]:
    """Node -> 0..100; empty when there is nothing to score."""
    own = terms_of(pod, "podAffinity", PREFERRED) + terms_of(pod, "podAntiAffinity", PREFERRED)
    if cluster.ignore_preferred and not own:
        return {}
    pairs: dict[tuple[str, str], int] = {}
    for place, other in _placed(cluster):
        for key, weight in _contributions(cluster, pod, other):
            if key in labels_of(place):
                pair = (key, labels_of(place)[key])
                pairs[pair] = pairs.get(pair, 0) + weight
    if not pairs:
        return {}
    raw = {name_of(n): sum(pairs.get((k, v), 0) for k, v in labels_of(n).items()) for n in feasible}
    low, high = min(raw.values()), max(raw.values())
    if low == high:
        return dict.fromkeys(raw, 0)
    return {name: int(100.0 * (float(s - low) / float(high - low))) for name, s in raw.items()}


def _contributions(cluster: PlainCluster, pod: Tree, other: Tree) -> Iterator[tuple[str, int]]:
    """Topology key and weight of each term that brings the two together or apart."""
    sides: list[tuple[str, int]] = [("podAffinity", 1), ("podAntiAffinity", -1)]
    for owner, target in ((pod, other), (other, pod)):
        for side, sign in sides:
            for weighted in terms_of(owner, side, PREFERRED):
                term = weighted["podAffinityTerm"]
                if term_matches(cluster, term, owner, target):
                    yield term["topologyKey"], sign * weighted["weight"]
    for term in terms_of(other, "podAffinity", REQUIRED):
        if term_matches(cluster, term, other, pod):
            yield term["topologyKey"], cluster.hard_pod_affinity_weight


Scorer = Callable[[PlainCluster, Tree, list[Tree]], dict[str, int]]
SCORERS: dict[str, Scorer] = {"PodTopologySpread": spread_scores, "InterPodAffinity": affinity_scores}
