"""Selectors against their definition, and text forms against structs."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from pilotage.api.meta import LabelSelector, LabelSelectorRequirement
from pilotage.api.selectors import (
    LabelMatcher,
    SelectorError,
    compile_label_selector,
    parse_field_selector,
    parse_label_selector,
)
from pilotage.api.wire import selector_query

_keys = st.sampled_from(["a", "b", "in", "notin", "x.io/a"])
_values = st.sampled_from(["", "1", "2", "in", "A.b-c_d"])
_labels = st.dictionaries(_keys, _values, max_size=5)


@st.composite
def _requirements(draw: st.DrawFn) -> LabelSelectorRequirement:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    is_set = operator in ("In", "NotIn")
    values = draw(st.lists(_values, min_size=1, max_size=3)) if is_set else None
    return LabelSelectorRequirement(key=draw(_keys), operator=operator, values=values)


_selectors = st.builds(
    lambda labels, expressions: LabelSelector(match_labels=labels, match_expressions=expressions),
    _labels,
    st.lists(_requirements(), max_size=4),
)


def _is_met(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    has = requirement.key in labels
    match requirement.operator:
        case "In":
            return has and labels[requirement.key] in (requirement.values or [])
        case "NotIn":
            return not has or labels[requirement.key] not in (requirement.values or [])
        case "Exists":
            return has
    return not has


@given(_selectors, _labels)
def test_matches_by_definition(selector: LabelSelector, labels: dict[str, str]) -> None:
    pairs = (selector.match_labels or {}).items()
    expected = all(labels.get(key) == value for key, value in pairs) and all(
        _is_met(one, labels) for one in selector.match_expressions or []
    )
    assert compile_label_selector(selector).matches(labels) is expected


@given(_selectors, _labels)
def test_text_form_means_the_same(selector: LabelSelector, labels: dict[str, str]) -> None:
    matcher = compile_label_selector(selector)
    again = parse_label_selector(str(matcher))
    assert again == matcher
    assert hash(again) == hash(matcher)
    assert again.matches(labels) is matcher.matches(labels)


@given(_selectors, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(selector: LabelSelector, random: object) -> None:
    expressions = list(selector.match_expressions or [])
    shuffled = expressions + expressions
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    other = LabelSelector(match_labels=selector.match_labels, match_expressions=shuffled)
    assert compile_label_selector(other) == compile_label_selector(selector)


@given(_selectors, _selectors, _labels)
def test_conjunction(left: LabelSelector, right: LabelSelector, labels: dict[str, str]) -> None:
    one, two = compile_label_selector(left), compile_label_selector(right)
    assert (one & two).matches(labels) is (one.matches(labels) and two.matches(labels))
    assert one & two == two & one


@given(st.text(max_size=30) | st.text("ab=!,() innot<>", max_size=20))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        matcher = parse_label_selector(text)
    except SelectorError:
        return
    assert isinstance(matcher, LabelMatcher)
    assert parse_label_selector(str(matcher)) == matcher


@given(st.text(max_size=20))
def test_field_values_survive_escaping(value: str) -> None:
    query = selector_query(fields={"metadata.name": value})
    assert parse_field_selector(query["fieldSelector"]) == (("metadata.name", "=", value),)


@given(st.text(max_size=30))
def test_any_field_text_is_read_or_refused(text: str) -> None:
    try:
        terms = parse_field_selector(text)
    except SelectorError:
        return
    assert all(operator in ("=", "!=") and field for field, operator, _ in terms)
