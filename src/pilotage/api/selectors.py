"""Selectors compiled from API values: label selectors, node selectors with Gt, Lt and matchFields.

Laws: a nil label selector matches nothing, an empty one everything. A node selector is an OR over its
terms, a term an AND over its parts; a term with no parts matches no node. What cannot be compiled raises
`SelectorError` with the field and the value. Text forms (kubectl's `-l`, field selectors) are read by
`parse_label_selector` and `parse_field_selector`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pilotage.api.label_matcher import (
    EVERYTHING,
    NOTHING,
    LabelMatcher,
    Operator,
    Requirement,
    SelectorError,
    as_integer,
    key_problem,
    value_problem,
)
from pilotage.api.meta import LabelSelector
from pilotage.api.pods import NodeSelector, NodeSelectorTerm
from pilotage.api.selector_text import parse_field_selector, parse_label_selector

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "LabelMatcher",
    "NodeMatcher",
    "NodeTermMatcher",
    "Operator",
    "Requirement",
    "SelectorError",
    "compile_label_selector",
    "compile_node_selector",
    "compile_node_term",
    "match_labels",
    "parse_field_selector",
    "parse_label_selector",
]

NODE_NAME_FIELD: Final = "metadata.name"
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, "Gt", "Lt")


class _Expression(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> list[str] | None: ...


@dataclass(frozen=True, slots=True)
class NodeTermMatcher:
    """One node selector term: label requirements and requirements on the node's name, all at once."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        if not self.labels and not self.names:
            return False
        get = (labels or {}).get
        return all(r.matches(name) for r in self.names) and all(r.matches(get(r.key)) for r in self.labels)


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A node selector: any of its terms."""

    terms: tuple[NodeTermMatcher, ...] = ()

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


def match_labels(labels: Mapping[str, str] | None) -> LabelMatcher:
    """Matcher of a plain map (nodeSelector, Service.spec.selector): every pair; none matches everything."""
    return LabelMatcher(Requirement(key, Operator.IN, (value,)) for key, value in (labels or {}).items())


def compile_label_selector(selector: LabelSelector | None, field: str = "") -> LabelMatcher:
    """Raises SelectorError; `field` is the path of the selector for its text."""
    if selector is None:
        return NOTHING
    where = f"{field}." if field else ""
    requirements = []
    for key, value in (selector.match_labels or {}).items():
        _check_key(key, f"{where}matchLabels")
        _check_values((value,), f"{where}matchLabels[{key}]")
        requirements.append(Requirement(key, Operator.IN, (value,)))
    for index, expression in enumerate(selector.match_expressions or ()):
        path = f"{where}matchExpressions[{index}]"
        requirements.append(_compile(expression, _LABEL_OPERATORS, path))
    return LabelMatcher(requirements) if requirements else EVERYTHING


def compile_node_selector(selector: NodeSelector, field: str = "") -> NodeMatcher:
    """Raises SelectorError."""
    where = f"{field}." if field else ""
    return NodeMatcher(
        tuple(
            compile_node_term(term, f"{where}nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
        )
    )


def compile_node_term(term: NodeSelectorTerm, field: str = "") -> NodeTermMatcher:
    """Raises SelectorError."""
    where = f"{field}." if field else ""
    labels = tuple(
        _compile(expression, _NODE_OPERATORS, f"{where}matchExpressions[{index}]")
        for index, expression in enumerate(term.match_expressions or ())
    )
    names = tuple(
        _compile_field(expression, f"{where}matchFields[{index}]")
        for index, expression in enumerate(term.match_fields or ())
    )
    return NodeTermMatcher(labels, names)


def _compile(expression: _Expression, allowed: Sequence[str], path: str) -> Requirement:
    _check_key(expression.key, f"{path}.key")
    operator = _operator(expression, allowed, path)
    values = expression.values or []
    _check_count(operator, values, path)
    if operator in (Operator.GT, Operator.LT):
        if as_integer(values[0]) is None:
            raise SelectorError(f"{path}.values[0]", values[0], "Gt and Lt need an integer")
    else:
        _check_values(values, f"{path}.values")
    return Requirement(expression.key, operator, values)


def _compile_field(expression: _Expression, path: str) -> Requirement:
    if expression.key != NODE_NAME_FIELD:
        raise SelectorError(f"{path}.key", expression.key, "not a valid field selector key")
    operator = _operator(expression, ("In", "NotIn"), path)
    values = expression.values or []
    _check_count(operator, values, path)
    return Requirement(expression.key, operator, values)


def _operator(expression: _Expression, allowed: Sequence[str], path: str) -> Operator:
    if expression.operator not in allowed:
        raise SelectorError(f"{path}.operator", expression.operator, f"must be one of {', '.join(allowed)}")
    return Operator(expression.operator)


def _check_count(operator: Operator, values: Sequence[str], path: str) -> None:
    if operator in (Operator.IN, Operator.NOT_IN) and not values:
        problem = "must be specified when `operator` is 'In' or 'NotIn'"
    elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    elif operator in (Operator.GT, Operator.LT) and len(values) != 1:
        problem = "must be specified single value when `operator` is 'Lt' or 'Gt'"
    else:
        return
    raise SelectorError(f"{path}.values", ",".join(values), problem)


def _check_key(key: str, path: str) -> None:
    if problem := key_problem(key):
        raise SelectorError(path, key, problem)


def _check_values(values: Sequence[str], path: str) -> None:
    for value in values:
        if problem := value_problem(value):
            raise SelectorError(path, value, problem)
