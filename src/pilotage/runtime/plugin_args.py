"""pluginConfig: args decoded with their defaults, and the rules that their shape cannot say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pilotage.api.selectors import SelectorError, compile_node_selector, compile_node_term
from pilotage.plugins.default_preemption import DefaultPreemptionArgs
from pilotage.plugins.inter_pod_affinity import InterPodAffinityArgs
from pilotage.plugins.node_affinity import NodeAffinityArgs
from pilotage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from pilotage.plugins.node_resources_fit import NodeResourcesFitArgs
from pilotage.plugins.pod_topology_spread import PodTopologySpreadArgs
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_model import API_VERSION
from pilotage.runtime.config_shape import read_shape

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_ENVELOPE = ("apiVersion", "kind")
_NATIVE = "kubernetes.io/"


def read_plugin_args(name: str, kind: type[Any] | None, tree: Mapping[str, Any] | None, path: str) -> Any:
    """A plugin's args: a struct with defaults where the plugin has one (`kind`), else the tree as it is.

    Raises ConfigError.
    """
    fields = {key: value for key, value in (tree or {}).items() if key not in _ENVELOPE}
    problems = list(_envelope_problems(name, tree or {}, path))
    if kind is None:
        if problems:
            raise ConfigError(problems)
        return fields or None
    args = read_shape(fields, kind, path)
    problems += (Problem(f"{path}.{field}", value, reason) for field, value, reason in _broken(args))
    if problems:
        raise ConfigError(problems)
    return args


Broken = Iterator[tuple[str, Any, str]]


def _envelope_problems(name: str, tree: Mapping[str, Any], path: str) -> Iterator[Problem]:
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if version is not None and version != API_VERSION:
        yield Problem(f"{path}.apiVersion", version, f"must be {API_VERSION}")
    if kind is not None and kind != f"{name}Args":
        yield Problem(f"{path}.kind", kind, f"must be {name}Args")


def _broken(args: Any) -> Broken:
    """(field, value, reason) of each rule that the args break."""
    for kind, rules in _RULES.items():
        if isinstance(args, kind):
            yield from rules(args)


def _affinity(args: InterPodAffinityArgs) -> Broken:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield "hardPodAffinityWeight", weight, "must be from 0 to 100"


def _preemption(args: DefaultPreemptionArgs) -> Broken:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        yield "minCandidateNodesPercentage", percentage, "must be from 0 to 100"
    if absolute < 0:
        yield "minCandidateNodesAbsolute", absolute, "must be 0 or more"
    if percentage == 0 and absolute == 0:
        yield "minCandidateNodesPercentage", 0, "must not be 0 together with minCandidateNodesAbsolute"


def _node_affinity(args: NodeAffinityArgs) -> Broken:
    added = args.added_affinity
    if added is None:
        return
    where = "addedAffinity"
    if (required := added.required) is not None:
        field = f"{where}.requiredDuringSchedulingIgnoredDuringExecution"
        if not required.node_selector_terms:
            yield f"{field}.nodeSelectorTerms", None, "must have at least one term"
        yield from _compiles(field, partial(compile_node_selector, required))
    for index, preferred in enumerate(added.preferred or ()):
        field = f"{where}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 1 <= preferred.weight <= 100:
            yield f"{field}.weight", preferred.weight, "must be from 1 to 100"
        yield from _compiles(f"{field}.preference", partial(compile_node_term, preferred.preference))


def _compiles(field: str, work: Callable[[], object]) -> Broken:
    try:
        work()
    except SelectorError as error:
        yield field, None, str(error)


def _fit(args: NodeResourcesFitArgs) -> Broken:
    for index, name in enumerate(args.ignored_resources):
        if "/" not in name or name.startswith(_NATIVE):
            yield f"ignoredResources[{index}]", name, "must be an extended resource such as example.com/gpu"
    for index, name in enumerate(args.ignored_resource_groups):
        if "/" in name or not name:
            yield f"ignoredResourceGroups[{index}]", name, "must be a domain such as example.com, without '/'"
    strategy, where = args.scoring_strategy, "scoringStrategy"
    if strategy.type not in STRATEGIES:
        yield f"{where}.type", strategy.type, f"must be one of {', '.join(STRATEGIES)}"
    yield from _resources(f"{where}.resources", strategy.resources, 100)
    if strategy.type == "RequestedToCapacityRatio":
        ratio = strategy.requested_to_capacity_ratio
        yield from _shape(f"{where}.requestedToCapacityRatio.shape", ratio.shape if ratio else ())


def _shape(field: str, points: Iterable[Any]) -> Broken:
    before = -1
    count = 0
    for count, point in enumerate(points, 1):
        at = f"{field}[{count - 1}]"
        if not 0 <= point.utilization <= 100:
            yield f"{at}.utilization", point.utilization, "must be from 0 to 100"
        elif point.utilization <= before:
            yield f"{at}.utilization", point.utilization, "must be larger than the one before"
        if not 0 <= point.score <= 10:
            yield f"{at}.score", point.score, "must be from 0 to 10"
        before = point.utilization
    if count == 0:
        yield field, None, "must have at least one point"


def _balanced(args: NodeResourcesBalancedAllocationArgs) -> Broken:
    yield from _resources("resources", args.resources, 1)


def _resources(field: str, resources: Iterable[Any], largest: int) -> Broken:
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        at = f"{field}[{index}]"
        if not resource.name:
            yield f"{at}.name", resource.name, "must not be empty"
        elif resource.name in seen:
            yield f"{at}.name", resource.name, "is listed twice"
        if not 0 <= resource.weight <= largest:
            reason = "must be 1" if largest == 1 else f"must be from 1 to {largest}"
            yield f"{at}.weight", resource.weight, reason
        seen.add(resource.name)


def _spread(args: PodTopologySpreadArgs) -> Broken:
    if args.defaulting_type not in ("System", "List"):
        yield "defaultingType", args.defaulting_type, "must be System or List"
    if args.defaulting_type == "System" and args.default_constraints:
        yield "defaultConstraints", None, "need defaultingType List"
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        field = f"defaultConstraints[{index}]"
        yield from _constraint(field, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield field, " ".join(pair), "is listed twice"
        seen.add(pair)


def _constraint(field: str, constraint: Any) -> Broken:
    if constraint.max_skew < 1:
        yield f"{field}.maxSkew", constraint.max_skew, "must be at least 1"
    if not constraint.topology_key:
        yield f"{field}.topologyKey", "", "must not be empty"
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        value = constraint.when_unsatisfiable
        yield f"{field}.whenUnsatisfiable", value, "must be DoNotSchedule or ScheduleAnyway"
    if constraint.label_selector is not None:
        yield f"{field}.labelSelector", None, "must not be set: it is made from the pod's services and owner"


_RULES: Mapping[type[Any], Callable[[Any], Broken]] = {
    InterPodAffinityArgs: _affinity,
    DefaultPreemptionArgs: _preemption,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesFitArgs: _fit,
    NodeResourcesBalancedAllocationArgs: _balanced,
    PodTopologySpreadArgs: _spread,
}
