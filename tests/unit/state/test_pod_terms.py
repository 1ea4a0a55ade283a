"""Compiling a pod's terms: namespaces, merged keys, defects."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.api.pods import Pod
from pilotage.state.pod_terms import NO_TERMS, affinity_of, spread_of, terms_of
from pilotage.state.podinfo import PodInfo


def pod(spec: dict[str, object], labels: dict[str, str] | None = None) -> PodInfo:
    return PodInfo(
        msgspec.convert(
            {"metadata": {"name": "p", "namespace": "ns", "labels": labels or {}}, "spec": spec}, Pod
        )
    )


def anti(term: dict[str, object], labels: dict[str, str] | None = None) -> PodInfo:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod({"affinity": {"podAntiAffinity": {key: [{"topologyKey": "zone", **term}]}}}, labels)


def spread(constraint: dict[str, object], labels: dict[str, str] | None = None) -> PodInfo:
    return pod({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, **constraint}]}, labels)


def test_a_pod_without_terms_shares_the_empty_value() -> None:
    assert terms_of(pod({})) is NO_TERMS
    assert terms_of(pod({"affinity": {}})) is NO_TERMS


def test_pods_of_one_template_share_their_compiled_terms() -> None:
    one = anti({"labelSelector": {"matchLabels": {"a": "b"}}}, {"a": "b", "pod-index": "1"})
    two = anti({"labelSelector": {"matchLabels": {"a": "b"}}}, {"a": "b", "pod-index": "2"})
    assert terms_of(one) is terms_of(two)


@pytest.mark.parametrize(
    ("term", "inside", "outside"),
    [
        ({}, ["ns"], ["other"]),
        ({"namespaces": ["other"]}, ["other"], ["ns"]),
        ({"namespaces": [], "namespaceSelector": {}}, ["ns", "other"], []),
        ({"namespaces": ["ns"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, ["ns"], ["other"]),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, [], ["ns", "other"]),
    ],
)
def test_namespaces_of_a_term(term: dict[str, object], inside: list[str], outside: list[str]) -> None:
    owned = affinity_of(anti({"labelSelector": {}, **term})).required_anti[0]
    assert all(owned.term.matches(name, {}, {}) for name in inside)
    assert not any(owned.term.matches(name, {}, {}) for name in outside)


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_negative_namespace_selectors_read_the_real_labels(operator: str) -> None:
    expression = {"key": "team", "operator": operator, "values": ["x"] if operator == "NotIn" else None}
    info = anti({"labelSelector": {}, "namespaceSelector": {"matchExpressions": [expression]}})
    term = affinity_of(info).required_anti[0].term
    assert not term.matches("excluded", {"team": "x"}, {})
    assert term.matches("other", {}, {})


def test_a_nil_label_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not affinity_of(anti({})).required_anti[0].term.matches("ns", {}, {"a": "b"})
    assert affinity_of(anti({"labelSelector": {}})).required_anti[0].term.matches("ns", {}, {})


def test_label_keys_are_merged_from_the_owners_labels() -> None:
    keys = {"labelSelector": {}, "matchLabelKeys": ["rev", "missing"], "mismatchLabelKeys": ["tenant"]}
    term = affinity_of(anti(keys, {"rev": "1", "tenant": "t"})).required_anti[0].term
    assert term.matches("ns", {}, {"rev": "1"})
    assert not term.matches("ns", {}, {"rev": "2"})
    assert not term.matches("ns", {}, {"rev": "1", "tenant": "t"})


def test_keys_that_the_server_merged_are_not_pinned_twice() -> None:
    """The pod's label changed after creation: what the server wrote stays the rule."""
    merged = {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
    info = spread({"labelSelector": merged, "matchLabelKeys": ["rev"]}, {"rev": "2"})
    assert spread_of(info).constraints[0].selector.matches({"rev": "1"})


def test_merged_and_unmerged_constraints_are_the_same_value() -> None:
    plain = spread({"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["rev"]}, {"rev": "1"})
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}],
    }
    merged = spread({"labelSelector": selector, "matchLabelKeys": ["rev"]}, {"rev": "1"})
    assert spread_of(plain).constraints == spread_of(merged).constraints


def test_label_keys_leave_a_nil_selector_alone() -> None:
    info = spread({"matchLabelKeys": ["rev"]}, {"rev": "1"})
    assert spread_of(info).constraints[0].selector.is_nothing


def test_spread_defaults() -> None:
    (constraint,) = spread_of(spread({"labelSelector": {}})).constraints
    assert constraint.is_hard
    assert constraint.is_empty
    assert constraint.min_domains == 1
    assert constraint.honors_affinity
    assert not constraint.honors_taints


def test_a_bad_selector_is_a_defect_and_not_an_exception() -> None:
    expression = {"key": "a", "operator": "Like", "values": ["b"]}
    terms = affinity_of(anti({"labelSelector": {"matchExpressions": [expression]}}))
    assert "podAntiAffinity" in terms.defect
    assert "Like" in terms.defect
    assert terms.owned == ()
