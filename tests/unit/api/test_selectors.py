"""Selectors: all operators, nil and empty, both text forms, errors by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.meta import LabelSelector
from pilotage.api.pods import NodeSelector
from pilotage.api.selectors import (
    EVERYTHING,
    NOTHING,
    LabelMatcher,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
    match_labels,
    parse_field_selector,
    parse_label_selector,
)


def label_selector(tree: Any) -> LabelMatcher:
    return compile_label_selector(msgspec.convert(tree, LabelSelector), "spec.selector")


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_nil_matches_nothing_and_empty_everything() -> None:
    assert not compile_label_selector(None).matches({"a": "b"})
    assert not compile_label_selector(None).matches(None)
    assert label_selector({}).matches({"a": "b"})
    assert label_selector({}).matches(None)
    assert compile_label_selector(None) == NOTHING
    assert label_selector({"matchLabels": {}, "matchExpressions": []}) == EVERYTHING
    assert EVERYTHING != NOTHING


@pytest.mark.parametrize(
    ("operator", "values", "matching", "failing"),
    [
        ("In", ("x", "y"), [{"a": "x"}, {"a": "y"}], [{"a": "z"}, {}, None, {"b": "x"}]),
        ("In", ("",), [{"a": ""}], [{}, {"a": "x"}]),
        ("NotIn", ("x", "y"), [{"a": "z"}, {}, None, {"a": ""}], [{"a": "x"}, {"a": "y"}]),
        ("Exists", (), [{"a": "x"}, {"a": ""}], [{}, None, {"b": ""}]),
        ("DoesNotExist", (), [{}, None, {"b": "x"}], [{"a": "x"}, {"a": ""}]),
    ],
)
def test_label_operators(operator: str, values: tuple[str, ...], matching: Any, failing: Any) -> None:
    matcher = label_selector({"matchExpressions": [expression("a", operator, *values)]})
    assert all(matcher.matches(labels) for labels in matching)
    assert not any(matcher.matches(labels) for labels in failing)


def test_all_parts_must_match() -> None:
    matcher = label_selector({"matchLabels": {"a": "1"}, "matchExpressions": [expression("b", "Exists")]})
    assert matcher.matches({"a": "1", "b": "2"})
    assert not matcher.matches({"a": "1"})
    assert not matcher.matches({"b": "2"})
    contradiction = label_selector(
        {"matchLabels": {"a": "1"}, "matchExpressions": [expression("a", "In", "2")]}
    )
    assert not contradiction.matches({"a": "1"})
    assert not contradiction.matches({"a": "2"})


def test_equal_selectors_are_equal_and_hash_alike() -> None:
    spellings = [
        label_selector({"matchLabels": {"a": "b"}}),
        label_selector({"matchExpressions": [expression("a", "In", "b")]}),
        label_selector({"matchLabels": {"a": "b"}, "matchExpressions": [expression("a", "In", "b", "b")]}),
        parse_label_selector("a=b"),
        parse_label_selector(" a in (b) "),
        match_labels({"a": "b"}),
    ]
    assert len(set(spellings)) == 1
    ordered = {parse_label_selector("a=b,c in (x,y)"), parse_label_selector("c in (y,x,y),a==b")}
    assert len(ordered) == 1
    assert parse_label_selector("a") != parse_label_selector("!a")
    assert spellings[0] != "a=b"


def test_conjunction_of_matchers() -> None:
    both = parse_label_selector("a=b") & parse_label_selector("!c")
    assert both == parse_label_selector("!c,a=b")
    assert both & NOTHING == NOTHING
    assert both & EVERYTHING == both


@pytest.mark.parametrize(
    ("tree", "field"),
    [
        ({"matchLabels": {"a b": "c"}}, "spec.selector.matchLabels"),
        ({"matchLabels": {"": "c"}}, "spec.selector.matchLabels"),
        ({"matchLabels": {"a": "c d"}}, "spec.selector.matchLabels[a]"),
        ({"matchLabels": {"a": "x" * 64}}, "spec.selector.matchLabels[a]"),
        ({"matchExpressions": [expression("a", "in", "b")]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [expression("a", "Gt", "1")]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [expression("a", "In")]}, "spec.selector.matchExpressions[0].values"),
        ({"matchExpressions": [expression("a", "NotIn")]}, "spec.selector.matchExpressions[0].values"),
        ({"matchExpressions": [expression("a", "Exists", "b")]}, "spec.selector.matchExpressions[0].values"),
        ({"matchExpressions": [expression("-a", "Exists")]}, "spec.selector.matchExpressions[0].key"),
        ({"matchExpressions": [expression("A.b/", "Exists")]}, "spec.selector.matchExpressions[0].key"),
        ({"matchExpressions": [expression("Upper.io/a", "Exists")]}, "spec.selector.matchExpressions[0].key"),
    ],
)
def test_what_cannot_be_compiled_names_the_field(tree: Any, field: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(tree)
    assert caught.value.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("text", "matching", "failing"),
    [
        ("", [{}, {"a": "b"}, None], []),
        ("  ", [{}, {"a": "b"}], []),
        ("a=b", [{"a": "b"}], [{}, {"a": "c"}]),
        ("a==b", [{"a": "b"}], [{}]),
        ("a = b", [{"a": "b"}], [{}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a=", [{"a": ""}], [{}, {"a": "b"}]),
        ("a!=", [{}, {"a": "b"}], [{"a": ""}]),
        ("a=,b=c", [{"a": "", "b": "c"}], [{"b": "c"}]),
        ("a", [{"a": ""}], [{}]),
        ("!a", [{}], [{"a": ""}]),
        ("! a", [{}], [{"a": ""}]),
        ("e in (x,y)", [{"e": "x"}, {"e": "y"}], [{}, {"e": "z"}]),
        ("e in ( x , y )", [{"e": "x"}, {"e": "y"}], [{}, {"e": "z"}]),
        ("e in(x)", [{"e": "x"}], [{}]),
        ("e in ()", [{"e": ""}], [{}, {"e": "x"}]),
        ("e in (,x)", [{"e": ""}, {"e": "x"}], [{}]),
        ("f notin (z)", [{}, {"f": "y"}], [{"f": "z"}]),
        ("in in (in,notin)", [{"in": "in"}, {"in": "notin"}], [{}]),
        ("notin", [{"notin": ""}], [{}]),
        ("a=in", [{"a": "in"}], [{"a": "x"}]),
        ("n>5", [{"n": "6"}], [{"n": "5"}, {"n": "x"}, {}]),
        ("n<5", [{"n": "-6"}], [{"n": "5"}, {}]),
        ("a.b/c-d_e=f.g", [{"a.b/c-d_e": "f.g"}], [{}]),
        (
            "a=b,c!=d,e in (x,y),f notin (z),g,!h",
            [{"a": "b", "e": "x", "g": ""}],
            [{"a": "b", "e": "x", "g": "", "h": ""}, {"a": "b", "c": "d", "e": "x", "g": ""}, {"a": "b"}],
        ),
    ],
)
def test_label_text(text: str, matching: Any, failing: Any) -> None:
    matcher = parse_label_selector(text)
    assert all(matcher.matches(labels) for labels in matching)
    assert not any(matcher.matches(labels) for labels in failing)
    assert parse_label_selector(str(matcher)) == matcher


@pytest.mark.parametrize(
    "text",
    [
        "a=b,",
        ",a=b",
        "a=b,,c=d",
        "a b",
        "a in",
        "a in x",
        "a in (x",
        "a in (x y)",
        "a in x)",
        "=b",
        "!",
        "!a=b",
        "a=b=c",
        "a===b",
        "a in (x))",
        "a~b",
        "a>x",
        "a>",
        "(a)",
        "a=b c",
        "-a=b",
        "a=b!",
        "a=(b)",
        "!!a",
        "a!b",
    ],
)
def test_label_text_errors_name_the_text(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert caught.value.value == text
    assert caught.value.field == "labelSelector"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("a=b", (("a", "=", "b"),)),
        ("a==b", (("a", "=", "b"),)),
        ("a!=b", (("a", "!=", "b"),)),
        ("a=", (("a", "=", ""),)),
        ("spec.nodeName=", (("spec.nodeName", "=", ""),)),
        (
            "status.phase!=Succeeded,status.phase!=Failed",
            (("status.phase", "!=", "Succeeded"), ("status.phase", "!=", "Failed")),
        ),
        (r"a=x\,y,b=\=\\", (("a", "=", "x,y"), ("b", "=", "=\\"))),
        ("a=b,", (("a", "=", "b"),)),
    ],
)
def test_field_text(text: str, terms: Any) -> None:
    assert parse_field_selector(text) == terms


@pytest.mark.parametrize("text", ["a", "=b", "a~b", r"a=\x", "a=b=c", "a=\\", "!a", "a!b"])
def test_field_text_errors(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert caught.value.field == "fieldSelector"
    assert caught.value.value == text


def node_selector(*terms: dict[str, Any]) -> Any:
    return compile_node_selector(msgspec.convert({"nodeSelectorTerms": list(terms)}, NodeSelector))


def test_node_terms_are_ored_and_their_parts_anded() -> None:
    selector = node_selector(
        {"matchExpressions": [expression("a", "In", "1"), expression("b", "Exists")]},
        {"matchFields": [expression("metadata.name", "In", "n1")]},
    )
    assert selector.matches({"a": "1", "b": ""}, "n9")
    assert selector.matches({}, "n1")
    assert not selector.matches({"a": "1"}, "n9")


def test_node_term_needs_labels_and_name() -> None:
    selector = node_selector(
        {
            "matchExpressions": [expression("a", "In", "1")],
            "matchFields": [expression("metadata.name", "NotIn", "n1")],
        }
    )
    assert selector.matches({"a": "1"}, "n2")
    assert not selector.matches({"a": "1"}, "n1")
    assert not selector.matches({}, "n2")


def test_empty_term_and_empty_selector_match_nothing() -> None:
    assert not node_selector({}).matches({"a": "1"}, "n1")
    assert not node_selector({"matchExpressions": [], "matchFields": []}).matches({}, "n1")
    assert not node_selector().matches({}, "n1")
    assert node_selector({}, {"matchExpressions": [expression("a", "DoesNotExist")]}).matches({}, "n1")


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "-5", "-4", True),
        ("Gt", "5", "5.5", False),
        ("Gt", "5", "abc", False),
        ("Gt", "5", "", False),
        ("Gt", "5", None, False),
        ("Gt", "5", "9" * 19, False),
        ("Gt", "5", "1_0", False),
        ("Gt", "5", " 6", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "-9", True),
        ("Lt", "+5", "+4", True),
        ("Lt", "5", None, False),
    ],
)
def test_gt_and_lt_compare_integers(operator: str, bound: str, value: str | None, expected: bool) -> None:
    selector = node_selector({"matchExpressions": [expression("n", operator, bound)]})
    labels = {} if value is None else {"n": value}
    assert selector.matches(labels, "x") is expected


@pytest.mark.parametrize(
    ("term", "field"),
    [
        ({"matchExpressions": [expression("a", "Gt")]}, "nodeSelectorTerms[0].matchExpressions[0].values"),
        (
            {"matchExpressions": [expression("a", "Lt", "1", "2")]},
            "nodeSelectorTerms[0].matchExpressions[0].values",
        ),
        (
            {"matchExpressions": [expression("a", "Lt", "x")]},
            "nodeSelectorTerms[0].matchExpressions[0].values[0]",
        ),
        (
            {"matchExpressions": [expression("a", "Near")]},
            "nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
        ({"matchFields": [expression("metadata.uid", "In", "x")]}, "nodeSelectorTerms[0].matchFields[0].key"),
        (
            {"matchFields": [expression("metadata.name", "Exists")]},
            "nodeSelectorTerms[0].matchFields[0].operator",
        ),
        ({"matchFields": [expression("metadata.name", "In")]}, "nodeSelectorTerms[0].matchFields[0].values"),
    ],
)
def test_node_selector_errors_name_the_field(term: Any, field: str) -> None:
    with pytest.raises(SelectorError) as caught:
        node_selector(term)
    assert caught.value.field == field
