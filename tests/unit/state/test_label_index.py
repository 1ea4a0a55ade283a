"""Candidates include every match, and are few where selectors demand a label value."""

from __future__ import annotations

from pilotage.api.selectors import parse_label_selector
from pilotage.state.label_index import PodsByLabels, TermsByDemand
from pilotage.state.term_values import Clause, NamespaceRule


def clause(selector: str, *names: str, namespaces: str | None = None) -> Clause:
    rule = NamespaceRule(frozenset(names), None if namespaces is None else parse_label_selector(namespaces))
    return Clause(rule, parse_label_selector(selector))


def test_a_pod_finds_only_terms_that_demand_one_of_its_labels() -> None:
    index: TermsByDemand[str] = TermsByDemand()
    for number in range(1000):
        index.add(f"t{number}", clause(f"app=a{number}", "ns"))
    index.add("everywhere", clause("app=a7", namespaces="team=x"))
    index.add("either", clause("app in (a7,b)", "ns"))
    index.add("negative", clause("app!=a7", "ns"))
    index.add("elsewhere", clause("app=a7", "other"))
    found = index.candidates("ns", {"app": "a7", "tier": "f"})
    assert sorted(found) == ["either", "everywhere", "negative", "t7"]
    index.discard("t7", clause("app=a7", "ns"))
    assert "t7" not in index.candidates("ns", {"app": "a7"})


def test_a_term_finds_only_pods_with_the_label_it_demands() -> None:
    index: PodsByLabels[str] = PodsByLabels()
    index.add("p1", "ns", {"app": "a"})
    index.add("p2", "ns", {"app": "b"})
    index.add("p3", "other", {"app": "a"})
    assert index.candidates(clause("app=a", "ns")) == ["p1"]
    assert sorted(index.candidates(clause("app in (a,b)", "ns", "other"))) == ["p1", "p2", "p3"]
    assert sorted(index.candidates(clause("app=a", "ns", namespaces="x=y"))) == ["p1", "p3"]
    assert index.candidates(clause("!app", "ns")) == ["p1", "p2"]
    index.discard("p1", "ns", {"app": "a"})
    assert index.candidates(clause("app=a", "ns")) == []
