"""Scores of single nodes and their normalisation: resources, balance, taints, node affinity, images."""

from __future__ import annotations

import math
from collections.abc import Callable

from reference.plain_amounts import container_requests, requests, requests_for_scoring
from reference.plain_matching import PREFERRED, node_affinity, term_matches_node, untolerated
from reference.plain_nodes import NATIVE, offered
from reference.plain_world import PlainWorld, Tree, name_of

Scores = dict[str, int]
MIB = 1024 * 1024
CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def taint_scores(_world: PlainWorld, pod: Tree, feasible: list[Tree]) -> Scores:
    raw = {name_of(node): len(untolerated(pod, node, ("PreferNoSchedule",))) for node in feasible}
    most = max(raw.values())
    return {name: 100 - 100 * count // most if most else 100 for name, count in raw.items()}


def node_affinity_scores(world: PlainWorld, pod: Tree, feasible: list[Tree]) -> Scores:
    added = (world.args.get("NodeAffinity") or {}).get("addedAffinity") or {}
    preferences = (added.get(PREFERRED) or []) + (node_affinity(pod).get(PREFERRED) or [])
    raw = {
        name_of(node): sum(p["weight"] for p in preferences if term_matches_node(p["preference"], node))
        for node in feasible
    }
    most = max(raw.values())
    return {name: 100 * score // most for name, score in raw.items()} if most else raw


# Resources


def fit_scores(world: PlainWorld, pod: Tree, feasible: list[Tree]) -> Scores:
    strategy = (world.args.get("NodeResourcesFit") or {}).get("scoringStrategy") or {}
    resources = strategy.get("resources") or CPU_AND_MEMORY
    combine = {
        "LeastAllocated": _least,
        "MostAllocated": _most,
        "RequestedToCapacityRatio": _ratio,
    }[strategy.get("type", "LeastAllocated")]
    return {name_of(node): combine(_loads(world, pod, node, resources), strategy) for node in feasible}


Load = tuple[int, int, int]  # weight, capacity, requested with the pod


def _loads(world: PlainWorld, pod: Tree, node: Tree, resources: list[Tree]) -> list[Load]:
    capacity, used = offered(node), world.requested(node)
    used_for_scoring = world.requested_for_scoring(node)
    asked, asked_for_scoring = container_requests(pod), requests_for_scoring(pod)
    loads = []
    for resource in resources:
        name = resource["name"]
        if not capacity.get(name) or (name not in NATIVE and not asked.get(name)):
            continue
        if name in ("cpu", "memory"):
            total = used_for_scoring.get(name, 0) + asked_for_scoring.get(name, 0)
        else:
            total = used.get(name, 0) + asked.get(name, 0)
        loads.append((resource.get("weight", 1), capacity[name], total))
    return loads


def _least(loads: list[Load], _strategy: Tree) -> int:
    scores = [(w, 0 if req > cap else (cap - req) * 100 // cap) for w, cap, req in loads]
    return _mean(scores)


def _most(loads: list[Load], _strategy: Tree) -> int:
    return _mean([(w, min(req, cap) * 100 // cap) for w, cap, req in loads])


def _mean(scores: list[tuple[int, int]]) -> int:
    weights = sum(weight for weight, _ in scores)
    return sum(weight * score for weight, score in scores) // weights if weights else 0


def _ratio(loads: list[Load], strategy: Tree) -> int:
    shape = strategy["requestedToCapacityRatio"]["shape"]
    scores = [(w, _at(shape, 100 if req > cap else req * 100 // cap)) for w, cap, req in loads]
    counted = [(weight, score) for weight, score in scores if score > 0]
    weights = sum(weight for weight, _ in counted)
    if not weights:
        return 0
    return math.floor(sum(weight * score for weight, score in counted) / weights + 0.5)


def _at(shape: list[Tree], utilization: int) -> int:
    """Through the points, with whole numbers cut towards zero."""
    points = [(point["utilization"], 10 * point["score"]) for point in shape]
    for index, (x, y) in enumerate(points):
        if utilization <= x:
            if index == 0:
                return y
            x0, y0 = points[index - 1]
            return y0 + int((y - y0) * (utilization - x0) / (x - x0))
    return points[-1][1]


def balance_scores(world: PlainWorld, pod: Tree, feasible: list[Tree]) -> Scores:
    args = world.args.get("NodeResourcesBalancedAllocation") or {}
    names = [resource["name"] for resource in args.get("resources") or CPU_AND_MEMORY]
    asked = requests(pod)
    if not any(asked.get(name) for name in names):
        return {}
    counted = [name for name in names if name in NATIVE or asked.get(name)]
    result = {}
    for node in feasible:
        capacity, used = offered(node), world.requested(node)
        both = []
        for more in (asked, {}):
            shares = [
                min((used.get(name, 0) + more.get(name, 0)) / capacity[name], 1.0)
                for name in counted
                if capacity.get(name)
            ]
            both.append(int((1 - _deviation(shares)) * 100.0))
        result[name_of(node)] = 50 + (50 + both[0] - both[1]) // 2
    return result


def _deviation(shares: list[float]) -> float:
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    total = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return math.sqrt(squares / len(shares))


# Images


def image_scores(world: PlainWorld, pod: Tree, feasible: list[Tree]) -> Scores:
    spec = pod["spec"]
    containers = (spec.get("initContainers") or []) + spec["containers"]
    names = [container["image"] for container in containers]
    names += [volume["image"]["reference"] for volume in spec.get("volumes") or [] if "image" in volume]
    ceiling = 1000 * MIB * len(containers)
    result = {}
    for node in feasible:
        total = 0
        for name in map(_with_tag, names):
            image = world.images.get(name)
            if image is not None and name_of(node) in image.nodes:
                total += int(image.size * (len(image.nodes) / len(world.nodes)))
        clamped = min(max(total, 23 * MIB), ceiling)
        result[name_of(node)] = 100 * (clamped - 23 * MIB) // (ceiling - 23 * MIB)
    return result


def _with_tag(name: str) -> str:
    last = name.rsplit("/", maxsplit=1)[-1]
    return name if ":" in last else f"{name}:latest"


Scorer = Callable[[PlainWorld, Tree, list[Tree]], Scores]
SCORERS: dict[str, tuple[int, Scorer]] = {
    "TaintToleration": (3, taint_scores),
    "NodeAffinity": (2, node_affinity_scores),
    "NodeResourcesFit": (1, fit_scores),
    "NodeResourcesBalancedAllocation": (1, balance_scores),
    "ImageLocality": (1, image_scores),
}
"""Plugin -> weight and scores before weighting; none at all is the same as zeros."""
