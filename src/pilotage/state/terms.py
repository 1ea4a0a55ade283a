"""Pods on nodes as counts per row: who matches a term, and who owns a term that matches a pod.

The one object that the cluster state tells of every pod, row and namespace change, and that spread and
inter-pod affinity ask. Terminal pods must not be added; terminating ones are, and each term says whether
it counts them. An update of a pod is its removal as it was added, then the addition of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_counts import TermCounts
from pilotage.state.term_owners import TermOwners
from pilotage.state.term_values import OwnerKind, Term
from pilotage.state.view import Int32, Int64


class TermIndex:
    """Answers are arrays over the table's rows, good until the next change or call."""

    def __init__(self, *, max_terms: int | None = None) -> None:
        self._namespaces: dict[str, dict[str, str]] = {}
        self._counts = TermCounts(self._namespaces, max_terms=max_terms)
        self._owners = TermOwners(self._namespaces)

    def grow(self, n_rows: int) -> None:
        """The table has `n_rows` rows now."""
        self._counts.grow(n_rows)
        self._owners.grow(n_rows)

    def pod_added(self, row: int, info: PodInfo) -> None:
        self.grow(row + 1)
        self._counts.pod_added(row, info)
        self._owners.pod_added(row, info)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        """`info` must say what it said when it was added. Raises KeyError for an unknown pod."""
        self._counts.pod_removed(row, info)
        self._owners.pod_removed(row, info)

    def pod_replaced(self, row: int, before: PodInfo, after: PodInfo) -> None:
        """The pod on `row` is a newer object; cheap when nothing that terms read is different."""
        if not _is_same(before, after):
            self.pod_removed(row, before)
            self.pod_added(row, after)

    def namespace_changed(self, name: str, labels: Mapping[str, str] | None) -> None:
        """None: the namespace is gone; its pods, if any are left, are in a namespace without labels."""
        old = self._namespaces.pop(name, {})
        if labels:
            self._namespaces[name] = dict(labels)
        if old != dict(labels or {}):
            self._counts.namespace_changed(name)
            self._owners.namespace_changed(name)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        return self._namespaces.get(name, {})

    def counts(self, term: Term) -> Int32:
        """[n_rows] pods on each row that match `term`."""
        return self._counts.counts(term)

    def owner_sums(self, info: PodInfo, factors: Mapping[OwnerKind, int]) -> dict[str, Int64]:
        """Topology key -> [n_rows] sum of factor x weight over owners of terms that match `info`."""
        return self._owners.sums(info, factors)

    def gave_up_repelling(self, info: PodInfo, before: Mapping[str, str]) -> bool:
        """Whether some pod's required anti-affinity matched the pod while its namespace had these labels,
        and does not any more."""
        return self._owners.gave_up_repelling(info, before)

    def matches(self, term: Term, info: PodInfo) -> bool:
        """Whether `term` would count this pod."""
        if info.is_terminating and term.exclude_terminating:
            return False
        return term.matches(info.namespace, self.namespace_labels(info.namespace), info.labels)

    def check_invariants(self) -> None:
        """Raises AssertionError where anything kept differs from what a rebuild would give."""
        self._counts.check()
        self._owners.check()


def _is_same(before: PodInfo, after: PodInfo) -> bool:
    return (
        before.namespace == after.namespace
        and before.labels == after.labels
        and before.is_terminating == after.is_terminating
        and affinity_of(before) is affinity_of(after)
    )
