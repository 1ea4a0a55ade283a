"""Node selector terms on all rows at once, over dictionary-encoded label columns.

Law: the same answer as `api.selectors` gives node by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pilotage.api.selectors import NodeMatcher, NodeTermMatcher, Operator, Requirement
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, NodeView


def required_mask(view: NodeView, info: PodInfo) -> Bool | None:
    """[n_rows] nodes that pass nodeSelector and required node affinity; None when the pod has neither."""
    affinity = info.node_affinity
    if affinity is None:
        return requirements_mask(view, info.node_selector) if info.node_selector else None
    mask = matcher_mask(view, affinity)
    return mask & requirements_mask(view, info.node_selector) if info.node_selector else mask


def matcher_mask(view: NodeView, matcher: NodeMatcher) -> Bool:
    """[n_rows] nodes that meet any term."""
    mask = np.zeros(view.n_rows, np.bool_)
    for term in matcher.terms:
        mask |= term_mask(view, term)
    return mask


def term_mask(view: NodeView, term: NodeTermMatcher) -> Bool:
    """[n_rows] nodes that meet all parts of the term; a term with no parts matches no node."""
    if not term.labels and not term.names:
        return np.zeros(view.n_rows, np.bool_)
    mask = requirements_mask(view, term.labels)
    for requirement in term.names:
        mask &= _name_mask(view, requirement)
    return mask


def requirements_mask(view: NodeView, requirements: Iterable[Requirement]) -> Bool:
    """[n_rows] nodes whose labels meet all requirements."""
    mask = np.ones(view.n_rows, np.bool_)
    for requirement in requirements:
        codes = view.label_column(requirement.key)
        if requirement.operator is Operator.IN and len(requirement.values) == 1:
            mask &= codes == view.label_code(requirement.key, requirement.values[0])
        else:
            mask &= _answers(requirement, view)[codes]
    return mask


def _answers(requirement: Requirement, view: NodeView) -> Bool:
    """The answer for each code, and last, where the code -1 finds it, for a node without the label."""
    values = view.label_values(requirement.key)
    if requirement.operator in (Operator.GT, Operator.LT):
        return _numeric_answers(requirement, values)
    is_exception = requirement.operator in (Operator.IN, Operator.EXISTS)
    answers = np.full(len(values) + 1, not is_exception, np.bool_)
    if requirement.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        answers[:-1] = is_exception
        return answers
    for value in requirement.values:
        code = view.label_code(requirement.key, value)
        if code >= 0:
            answers[code] = is_exception
    return answers


def _numeric_answers(requirement: Requirement, values: Sequence[str]) -> Bool:
    answers = [requirement.matches(value) for value in values]
    return np.array([*answers, False], np.bool_)


def _name_mask(view: NodeView, requirement: Requirement) -> Bool:
    is_in = requirement.operator is Operator.IN
    mask = np.full(view.n_rows, not is_in, np.bool_)
    for name in requirement.values:
        row = view.row(name)
        if row is not None:
            mask[row] = is_in
    return mask
