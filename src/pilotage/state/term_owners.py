"""Terms that pods on nodes own, with the number of owners per row: what makes affinity symmetric.

An incoming pod asks "which of all those terms match me?". The answer is cached per namespace and labels
and kept right as terms come and go, so that a decision looks only at terms that do match.

Laws:
- A term is here exactly while some pod on a node owns it.
- After any sequence of changes every count equals a count from scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from pilotage.state.label_index import PodsByLabels, TermsByDemand
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import OwnedTerm, OwnerKind
from pilotage.state.view import Int64, Rows

_DENSE_FROM: Final = 48  # rows with owners from which a term keeps an array over all rows
_MAX_AUDIENCES: Final = 2048


class _Owned:
    """One owned term: owners per row, as a dictionary, and as arrays once somebody asks."""

    __slots__ = ("_dense", "_sparse", "owned", "rows")

    def __init__(self, owned: OwnedTerm) -> None:
        self.owned = owned
        self.rows: dict[int, int] = {}
        # At most one of the two is set, and then equals `rows`.
        self._dense: Int64 | None = None
        self._sparse: tuple[Rows, Int64] | None = None

    def change(self, row: int, delta: int) -> None:
        """Raises KeyError when an owner leaves a row that has none."""
        count = (self.rows[row] if delta < 0 else self.rows.get(row, 0)) + delta
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        self._sparse = None
        if self._dense is not None:
            if row < len(self._dense):
                self._dense[row] = count
            else:
                self._dense = None

    def add_to(self, sums: Int64, factor: int) -> None:
        """Adds `factor` per owner to `sums` [n_rows]."""
        if len(self.rows) < _DENSE_FROM:
            rows, counts = self._arrays()
            sums[rows] += factor * counts
            return
        if self._dense is None or len(self._dense) < len(sums):
            self._dense = np.zeros(len(sums), np.int64)
            rows, counts = self._arrays()
            self._dense[rows] = counts
        sums += factor * self._dense

    def _arrays(self) -> tuple[Rows, Int64]:
        if self._sparse is None:
            size = len(self.rows)
            self._sparse = (
                np.fromiter(self.rows.keys(), np.intp, size),
                np.fromiter(self.rows.values(), np.int64, size),
            )
        return self._sparse


class _Audience:
    """Pods of one namespace and one set of labels, and the owned terms that match them."""

    __slots__ = ("labels", "matching", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.matching: dict[_Owned, None] = {}


class TermOwners:
    """`namespace_labels` is shared with the owner of this object, who tells of changes."""

    def __init__(self, namespace_labels: Mapping[str, Mapping[str, str]]) -> None:
        self._namespace_labels = namespace_labels
        self._n_rows = 0
        self._owned: dict[OwnedTerm, _Owned] = {}
        self._audiences: dict[str, dict[frozenset[tuple[str, str]], _Audience]] = {}
        self._n_audiences = 0
        self._demands: TermsByDemand[_Owned] = TermsByDemand()  # every owned term
        self._offers: PodsByLabels[_Audience] = PodsByLabels()  # every audience

    @property
    def n_terms(self) -> int:
        return len(self._owned)

    def grow(self, n_rows: int) -> None:
        self._n_rows = max(self._n_rows, n_rows)

    def pod_added(self, row: int, info: PodInfo) -> None:
        for owned in affinity_of(info).owned:
            record = self._owned.get(owned)
            if record is None:
                record = self._appear(owned)
            record.change(row, +1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        """Raises KeyError for a pod that was not added on that row."""
        for owned in affinity_of(info).owned:
            record = self._owned[owned]
            record.change(row, -1)
            if not record.rows:
                self._vanish(record)

    def namespace_changed(self, name: str) -> None:
        """The labels of a namespace are different from before."""
        for audience in self._audiences.pop(name, {}).values():
            self._offers.discard(audience, name, audience.labels)
            self._n_audiences -= 1

    def sums(self, info: PodInfo, factors: Mapping[OwnerKind, int]) -> dict[str, Int64]:
        """Topology key -> [n_rows] sum of factor x weight over the owners of terms that match the pod.

        Kinds without a factor are left out; so are keys without any owner.
        """
        sums: dict[str, Int64] = {}
        for record in self._audience(info).matching:
            owned = record.owned
            factor = factors.get(owned.kind, 0) * owned.weight
            if factor:
                if owned.topology_key not in sums:
                    sums[owned.topology_key] = np.zeros(self._n_rows, np.int64)
                record.add_to(sums[owned.topology_key], factor)
        return sums

    def gave_up_repelling(self, info: PodInfo, before: Mapping[str, str]) -> bool:
        """Whether a required anti-affinity matched the pod with these namespace labels, and does not now."""
        now = self._namespace_labels.get(info.namespace)
        namespace, labels = info.namespace, info.labels
        return any(
            owned.clause.matches(namespace, before, labels)
            and not owned.clause.matches(namespace, now, labels)
            for owned in self._owned
            if owned.kind is OwnerKind.REQUIRED_ANTI and owned.term.selects_namespaces
        )

    def check(self) -> None:
        """Raises AssertionError where a cached answer differs from one from scratch."""
        for group in self._audiences.values():
            for audience in group.values():
                expected = {r for r in self._owned.values() if self._matches(r.owned, audience)}
                assert set(audience.matching) == expected, (audience.namespace, audience.labels)
        assert sum(map(len, self._audiences.values())) == self._n_audiences
        for record in self._owned.values():
            assert record.rows, record.owned
            sums = np.zeros(self._n_rows, np.int64)
            record.add_to(sums, 1)
            assert {int(r): int(sums[r]) for r in np.flatnonzero(sums)} == record.rows, record.owned

    def _audience(self, info: PodInfo) -> _Audience:
        key = frozenset(info.labels.items())
        audience = self._audiences.get(info.namespace, {}).get(key)
        if audience is None:
            audience = self._new_audience(info, key)
        return audience

    def _new_audience(self, info: PodInfo, key: frozenset[tuple[str, str]]) -> _Audience:
        if self._n_audiences >= _MAX_AUDIENCES:
            self._audiences.clear()
            self._offers.clear()
            self._n_audiences = 0
        audience = _Audience(info.namespace, dict(info.labels))
        for record in self._demands.candidates(info.namespace, audience.labels):
            if self._matches(record.owned, audience):
                audience.matching[record] = None
        self._audiences.setdefault(info.namespace, {})[key] = audience
        self._offers.add(audience, info.namespace, audience.labels)
        self._n_audiences += 1
        return audience

    def _appear(self, owned: OwnedTerm) -> _Owned:
        record = self._owned[owned] = _Owned(owned)
        self._demands.add(record, owned.clause)
        for audience in self._offers.candidates(owned.clause):
            if self._matches(owned, audience):
                audience.matching[record] = None
        return record

    def _vanish(self, record: _Owned) -> None:
        del self._owned[record.owned]
        self._demands.discard(record, record.owned.clause)
        for audience in self._offers.candidates(record.owned.clause):
            audience.matching.pop(record, None)

    def _matches(self, owned: OwnedTerm, audience: _Audience) -> bool:
        namespace = audience.namespace
        return owned.clause.matches(namespace, self._namespace_labels.get(namespace), audience.labels)
