"""Rules of the term index that the property test does not spell out."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.api.pods import Pod
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import OwnerKind
from pilotage.state.terms import TermIndex


def pod(labels: dict[str, str], key: str = "zone", app: str = "", namespace: str = "ns") -> PodInfo:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}} if app else None}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    tree = {"metadata": {"namespace": namespace, "labels": labels}, "spec": {"affinity": affinity}}
    return PodInfo(msgspec.convert(tree, Pod))


def test_rarely_used_terms_are_forgotten_and_counted_again() -> None:
    index = TermIndex(max_terms=2)
    index.pod_added(0, pod({"app": "a"}))
    wanted = [affinity_of(pod({}, app=app)).required_anti[0].term for app in "abcd"]
    for _ in range(2):
        assert [int(index.counts(term)[0]) for term in wanted] == [1, 0, 0, 0]
    index.check_invariants()


def test_rows_grow() -> None:
    index = TermIndex()
    term = affinity_of(pod({}, app="a")).required_anti[0].term
    index.grow(3)
    assert index.counts(term).tolist() == [0, 0, 0]
    index.grow(100)
    index.pod_added(99, pod({"app": "a"}))
    assert index.counts(term)[99] == 1
    assert len(index.counts(term)) == 100


def test_an_unknown_pod_cannot_leave() -> None:
    index = TermIndex()
    index.pod_added(0, pod({"app": "a"}))
    with pytest.raises(KeyError):
        index.pod_removed(0, pod({"app": "b"}))
    with pytest.raises(KeyError):
        index.pod_removed(1, pod({"app": "a"}))


def test_owners_are_found_by_the_labels_of_the_incoming_pod() -> None:
    index = TermIndex()
    index.grow(4)
    index.pod_added(1, pod({"app": "a"}, app="x"))
    index.pod_added(2, pod({"app": "a"}, key="host", app="x"))
    sums = index.owner_sums(pod({"app": "x"}), {OwnerKind.REQUIRED_ANTI: 1})
    assert {key: rows.tolist() for key, rows in sums.items()} == {
        "zone": [0, 1, 0, 0],
        "host": [0, 0, 1, 0],
    }
    assert index.owner_sums(pod({"app": "y"}), {OwnerKind.REQUIRED_ANTI: 1}) == {}
    assert index.owner_sums(pod({"app": "x"}, namespace="other"), {OwnerKind.REQUIRED_ANTI: 1}) == {}
    assert index.owner_sums(pod({"app": "x"}), {OwnerKind.PREFERRED: 1}) == {}
