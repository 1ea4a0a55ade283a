"""Rules of plugin args that their shape cannot say; one function per plugin.

Laws: only what kube-scheduler refuses is refused; a rule yields (field below the args, value, reason) for
each place that breaks it. Custom plugins check their own args when they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pilotage.api.label_matcher import key_problem
from pilotage.api.pods import NodeSelectorTerm
from pilotage.api.selectors import SelectorError, compile_node_term
from pilotage.framework.gates import STORAGE_CAPACITY_SCORING
from pilotage.runtime.durations import parse_duration

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
LARGEST_WEIGHT = 100

Tree: TypeAlias = Mapping[str, Any]
Gates: TypeAlias = Mapping[str, bool]
Broken: TypeAlias = Iterator[tuple[str, Any, str]]


def broken_rules(name: str, args: Any, tree: Tree, gates: Gates) -> Broken:
    """What is wrong with the args of the plugin `name`; `tree`: the fields as they are written."""
    rules = _RULES.get(name)
    if rules is not None:
        yield from rules(args, tree, gates)


def _affinity(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    yield from _within("hardPodAffinityWeight", args.hard_pod_affinity_weight, 0, 100)


def _preemption(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _within("minCandidateNodesPercentage", percentage, 0, 100)
    if absolute < 0:
        yield "minCandidateNodesAbsolute", absolute, "must be 0 or more"
    if percentage == 0 and absolute == 0:
        yield "minCandidateNodesPercentage", 0, "must not be 0 together with minCandidateNodesAbsolute"


def _node_affinity(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    """Preferred terms of weight 0 are never looked at, terms without a requirement match nothing."""
    added = args.added_affinity
    if added is None:
        return
    if (required := added.required) is not None:
        field = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(required.node_selector_terms):
            yield from _compiles(f"{field}[{index}]", term)
    for index, preferred in enumerate(added.preferred or ()):
        field = f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        if preferred.weight != 0:
            yield from _compiles(field, preferred.preference)


def _compiles(field: str, term: NodeSelectorTerm) -> Broken:
    try:
        compile_node_term(term)
    except SelectorError as error:
        where = f"{field}.{error.field}" if error.field else field
        yield where, error.value, error.problem
    for index, part in enumerate(term.match_fields or ()):
        if len(part.values or ()) != 1:
            yield f"{field}.matchFields[{index}].values", ", ".join(part.values or ()), "must be one value"


def _fit(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    for index, name in enumerate(args.ignored_resources):
        if problem := key_problem(name):
            yield f"ignoredResources[{index}]", name, problem
    for index, name in enumerate(args.ignored_resource_groups):
        problem = "must be a domain such as example.com, without '/'" if "/" in name else key_problem(name)
        if problem:
            yield f"ignoredResourceGroups[{index}]", name, problem
    strategy, where = args.scoring_strategy, "scoringStrategy"
    if strategy.type not in STRATEGIES:
        yield f"{where}.type", strategy.type, f"must be one of {', '.join(STRATEGIES)}"
    for index, resource in enumerate(strategy.resources):
        yield from _within(f"{where}.resources[{index}].weight", resource.weight, 1, LARGEST_WEIGHT)
    ratio = strategy.requested_to_capacity_ratio
    if ratio is not None or strategy.type == "RequestedToCapacityRatio":
        yield from _shape(f"{where}.requestedToCapacityRatio.shape", ratio.shape if ratio else ())


def _shape(field: str, points: Iterable[Any]) -> Broken:
    before: int | None = None
    for index, point in enumerate(points):
        at = f"{field}[{index}]"
        yield from _within(f"{at}.utilization", point.utilization, 0, 100)
        if before is not None and point.utilization <= before:
            yield f"{at}.utilization", point.utilization, "must be larger than the one before"
        yield from _within(f"{at}.score", point.score, 0, 10)
        before = point.utilization
    if before is None:
        yield field, None, "must have at least one point"


def _balanced(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        at = f"resources[{index}]"
        if resource.name in seen:
            yield f"{at}.name", resource.name, "is listed twice"
        if resource.weight != 1:
            yield f"{at}.weight", resource.weight, "must be 1"
        seen.add(resource.name)


def _spread(args: Any, tree: Tree, _gates: Gates) -> Broken:
    if args.defaulting_type not in ("System", "List"):
        yield "defaultingType", args.defaulting_type, "must be System or List"
    if args.defaulting_type == "System" and args.default_constraints:
        yield "defaultConstraints", None, "need defaultingType List"
    written = tree.get("defaultConstraints") or ()
    seen: set[tuple[str, str]] = set()
    for index, (constraint, fields) in enumerate(zip(args.default_constraints, written, strict=True)):
        field = f"defaultConstraints[{index}]"
        yield from ((f"{field}.{name}", *rest) for name, *rest in _constraint(constraint, fields))
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield field, " ".join(pair), "is listed twice"
        seen.add(pair)


def _constraint(constraint: Any, fields: Tree) -> Iterator[tuple[Any, ...]]:
    """The API's defaults for pods do not hold here: what is left out is 0 or empty."""
    skew = constraint.max_skew if "maxSkew" in fields else 0
    if skew < 1:
        yield "maxSkew", skew, "must be at least 1"
    if not constraint.topology_key:
        yield "topologyKey", "", "must not be empty"
    elif problem := key_problem(constraint.topology_key):
        yield "topologyKey", constraint.topology_key, problem
    action = constraint.when_unsatisfiable if "whenUnsatisfiable" in fields else ""
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        yield "whenUnsatisfiable", action, "must be DoNotSchedule or ScheduleAnyway"
    if constraint.label_selector is not None:
        yield "labelSelector", None, "must not be set: it is made from the pod's services and owner"


def _volumes(args: Any, tree: Tree, gates: Gates) -> Broken:
    if args.bind_timeout_seconds < 0:
        yield "bindTimeoutSeconds", args.bind_timeout_seconds, "must be 0 or more"
    if gates.get(STORAGE_CAPACITY_SCORING):
        yield from _shape("shape", args.shape or ())
    elif "shape" in tree:
        yield "shape", None, f"needs the feature gate {STORAGE_CAPACITY_SCORING}"


def _dynamic_resources(args: Any, _tree: Tree, _gates: Gates) -> Broken:
    yield from _timeout("filterTimeout", args.filter_timeout)
    yield from _timeout("bindingTimeout", args.binding_timeout)


def _timeout(field: str, text: str) -> Broken:
    try:
        if parse_duration(text) < 0:
            yield field, text, "must not be negative"
    except ValueError as error:
        yield field, text, str(error)


def _within(field: str, value: int, smallest: int, largest: int) -> Broken:
    if not smallest <= value <= largest:
        yield field, value, f"must be from {smallest} to {largest}"


_RULES: Mapping[str, Callable[[Any, Tree, Gates], Broken]] = {
    "InterPodAffinity": _affinity,
    "DefaultPreemption": _preemption,
    "NodeAffinity": _node_affinity,
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "PodTopologySpread": _spread,
    "VolumeBinding": _volumes,
    "DynamicResources": _dynamic_resources,
}
