"""NodeAffinity: which label or term of nodeSelector and required node affinity a node does not meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from pilotage.api.label_matcher import Operator, Requirement
from pilotage.api.pods import Affinity, NodeSelector, NodeSelectorTerm
from pilotage.api.pods import NodeAffinity as NodeAffinityView
from pilotage.api.selectors import NodeMatcher, NodeTermMatcher
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, Scenario, change_pod, with_spec
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Rows

NAME = "NodeAffinity"
Labels = Mapping[str, str]


class NodeAffinity(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        node = look.view.node(row)
        labels, name = node.metadata.labels or {}, node.metadata.name
        unmet = [r for r in look.pod.node_selector if not r.matches(labels.get(r.key))]
        parts = [f"nodeSelector {r}: {_has(labels, r.key)}" for r in unmet]
        affinity = look.pod.node_affinity
        is_out = affinity is not None and not affinity.matches(labels, name)
        if affinity is not None and is_out:
            parts.append(f"required affinity {_terms(affinity)}: {_values(affinity, labels, name)}")
        if not parts:
            return Detail("outside the affinity that the profile adds (addedAffinity)")
        numbers = {"nodeSelector": [str(r) for r in unmet], "requiredAffinity": is_out}
        return Detail("; ".join(parts), group=_group(unmet, affinity if is_out else None), numbers=numbers)

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        pod, weight = look.pod.pod, len(rows)
        selector = pod.spec.node_selector or {}
        for key, value in selector.items():
            change = change_pod(_WithoutSelector((key,)))
            yield Change(f"but for nodeSelector {key}={value}", NAME, change, weight)
        if len(selector) > 1:
            change = change_pod(_WithoutSelector(tuple(selector)))
            yield Change("but for the nodeSelector", NAME, change, weight)
        required = _required(look.pod)
        if required is None:
            return
        for index in _expressions(required):
            text = f"but for required affinity {_shown(look.pod, index)}"
            yield Change(text, NAME, _WithoutExpression(*index), weight)
        yield Change("but for the required node affinity", NAME, _without_affinity, weight)


def _has(labels: Labels, key: str) -> str:
    return f"the node has {key}={labels[key]}" if key in labels else f"the node has no label {key}"


def _terms(affinity: NodeMatcher) -> str:
    return " or ".join(f"({_term(term)})" for term in affinity.terms) or "without terms"


def _term(term: NodeTermMatcher) -> str:
    parts = [*(_requirement(r) for r in term.labels), *(_requirement(r) for r in term.names)]
    return ", ".join(parts) or "nothing"


def _requirement(requirement: Requirement) -> str:
    if requirement.operator is Operator.IN and len(requirement.values) > 3:
        few = ",".join(requirement.values[:3])
        return f"{requirement.key} in ({few},... {len(requirement.values)} values)"
    return str(requirement)


def _values(affinity: NodeMatcher, labels: Labels, name: str) -> str:
    """What the node has under the keys that are asked for."""
    keys = dict.fromkeys(
        r.key for term in affinity.terms for r in term.labels if not r.matches(labels.get(r.key))
    )
    found = [_has(labels, key) for key in keys]
    if not found:
        found = [f"the node is {name}"]
    return ", ".join(found)


def _group(unmet: list[Requirement], affinity: NodeMatcher | None) -> str:
    parts = [f"nodeSelector {requirement}" for requirement in unmet]
    return "; ".join([*parts, *([f"required affinity {_terms(affinity)}"] if affinity is not None else [])])


# What-ifs

Place = tuple[int, str, int]  # term, list (match_expressions, match_fields), position


def _required(info: PodInfo) -> NodeSelector | None:
    affinity = info.pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _expressions(required: NodeSelector) -> Iterable[Place]:
    """Each part of terms with several parts: without its only part a term matches nothing."""
    for index, term in enumerate(required.node_selector_terms):
        parts = [
            (index, field, position)
            for field in ("match_expressions", "match_fields")
            for position in range(len(getattr(term, field) or ()))
        ]
        yield from parts if len(parts) > 1 else ()


def _shown(info: PodInfo, place: Place) -> str:
    required = _required(info)
    assert required is not None
    index, field, position = place
    expression = getattr(required.node_selector_terms[index], field)[position]
    values = expression.values or ()
    return " ".join([expression.key, expression.operator, *([f"[{' '.join(values)}]"] if values else [])])


class _WithoutSelector:
    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys

    def __call__(self, info: PodInfo) -> PodInfo:
        selector = {k: v for k, v in (info.pod.spec.node_selector or {}).items() if k not in self._keys}
        return with_spec(info, node_selector=selector or None)


class _WithoutExpression:
    def __init__(self, index: int, field: str, position: int) -> None:
        self._place = (index, field, position)

    def __call__(self, scenario: Scenario) -> Scenario:
        required = _required(scenario.pod)
        index, field, position = self._place
        if required is None:
            return scenario
        terms = list(required.node_selector_terms)
        parts = list(getattr(terms[index], field) or ())
        if position >= len(parts):  # another change took one of them already
            return scenario
        del parts[position]
        terms[index] = msgspec.structs.replace(terms[index], **{field: parts})
        return Scenario(_with_required(scenario.pod, terms), scenario.view)


def _without_affinity(scenario: Scenario) -> Scenario:
    return Scenario(_with_required(scenario.pod, None), scenario.view)


def _with_required(info: PodInfo, terms: list[NodeSelectorTerm] | None) -> PodInfo:
    affinity = info.pod.spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinityView()
    required = NodeSelector(node_selector_terms=terms) if terms is not None else None
    node_affinity = msgspec.structs.replace(node_affinity, required=required)
    return with_spec(info, affinity=msgspec.structs.replace(affinity, node_affinity=node_affinity))
