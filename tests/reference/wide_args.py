"""Random plugin args, as valid as a configuration file has to be; most clusters keep the defaults."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def draw_args(source: Any) -> dict[str, Tree]:
    drawers = {
        "NodeResourcesFit": _fit,
        "NodeResourcesBalancedAllocation": _balance,
        "NodeAffinity": _node_affinity,
        "PodTopologySpread": _spread,
        "InterPodAffinity": _pod_affinity,
    }
    return {plugin: draw(source) for plugin, draw in drawers.items() if source.chance(0.3)}


def _fit(source: Any) -> Tree:
    kind = source.one_of("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
    names = source.random.sample(RESOURCES, source.random.randint(1, 4))
    resources = [{"name": name, "weight": source.one_of(1, 1, 3, 100)} for name in names]
    strategy: Tree = {"type": kind, "resources": resources}
    if kind == "RequestedToCapacityRatio":
        utilizations = sorted(source.random.sample(range(101), source.random.randint(1, 4)))
        shape = [{"utilization": u, "score": source.random.randint(0, 10)} for u in utilizations]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    args: Tree = {"scoringStrategy": strategy}
    if source.chance(0.3):
        args["ignoredResources"] = ["example.com/gpu"]
    if source.chance(0.3):
        args["ignoredResourceGroups"] = ["other.io"]
    return args


def _balance(source: Any) -> Tree:
    names = source.random.sample(RESOURCES, source.random.randint(1, 4))
    return {"resources": [{"name": name, "weight": 1} for name in names]}


def _node_affinity(source: Any) -> Tree:
    added: Tree = {}
    if source.chance(0.5):
        terms = [{"matchExpressions": [source.node_expression()]} for _ in range(2)]
        added[REQUIRED] = {"nodeSelectorTerms": terms}
    if source.chance(0.6) or not added:
        added[PREFERRED] = [source.preference()]
    return {"addedAffinity": added}


def _spread(source: Any) -> Tree:
    keys = ("topologyKey", "maxSkew", "whenUnsatisfiable", "minDomains")
    drawn = [source.constraint() for _ in range(source.one_of(1, 2))]
    unique = {(c["topologyKey"], c["whenUnsatisfiable"]): c for c in drawn}
    constraints = [{key: value for key, value in c.items() if key in keys} for c in unique.values()]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _pod_affinity(source: Any) -> Tree:
    return {
        "hardPodAffinityWeight": source.one_of(0, 1, 5, 100),
        "ignorePreferredTermsOfExistingPods": source.chance(0.4),
    }
