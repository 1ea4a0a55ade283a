"""How many pods match a term, per row, kept incrementally.

Pods are grouped by signature (namespace, labels, terminating): a term is matched against a signature once,
and a pod that comes or goes only adds its signature's terms on its row.

Laws:
- After any sequence of changes every kept count equals a count from scratch.
- Terms are kept while they are used: the least recently used ones go when the matrix would outgrow its
  budget. Counts are therefore asked for by term, and an answer is good until the next change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import numpy as np

from pilotage.state.label_index import PodsByLabels, TermsByDemand
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import Term
from pilotage.state.view import Int32

BUDGET: Final = 64 << 20  # bytes of the count matrix
_MIN_TERMS: Final = 64
_MAX_TERMS: Final = 4096


class Signature:
    """All pods that no term can tell apart, and how many of them each row has."""

    __slots__ = ("labels", "namespace", "rows", "slots", "terminating", "terms")

    def __init__(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.rows: dict[int, int] = {}
        # Kept terms that match, and their slots in the matrix, in the same order.
        self.terms: dict[_Kept, None] = {}
        self.slots = np.empty(0, np.intp)


class _Kept:
    """A term with its row in the matrix, and the signatures that it matches."""

    __slots__ = ("signatures", "slot", "term")

    def __init__(self, term: Term, slot: int) -> None:
        self.term = term
        self.slot = slot
        self.signatures: dict[Signature, None] = {}


class TermCounts:
    """`namespace_labels` is shared with the owner of this object, who tells of changes."""

    def __init__(
        self, namespace_labels: Mapping[str, Mapping[str, str]], *, max_terms: int | None = None
    ) -> None:
        self._namespace_labels = namespace_labels
        self._max_terms = max_terms
        self._n_rows = 0
        self._signatures: dict[tuple[str, bool, frozenset[tuple[str, str]]], Signature] = {}
        self._by_namespace: dict[str, dict[Signature, None]] = {}
        self._kept: OrderedDict[Term, _Kept] = OrderedDict()  # least recently used first
        self._demands: TermsByDemand[_Kept] = TermsByDemand()  # every kept term, by its first clause
        self._offers: PodsByLabels[Signature] = PodsByLabels()  # every signature
        self._matrix: Int32 = np.zeros((8, 8), np.int32)
        self._free = list(range(7, -1, -1))

    @property
    def n_terms(self) -> int:
        return len(self._kept)

    @property
    def n_signatures(self) -> int:
        return len(self._signatures)

    @property
    def limit(self) -> int:
        """Largest number of kept terms."""
        if self._max_terms is not None:
            return self._max_terms
        columns = int(self._matrix.shape[1])
        return max(_MIN_TERMS, min(_MAX_TERMS, BUDGET // (4 * columns)))

    def grow(self, n_rows: int) -> None:
        """The table has `n_rows` rows now."""
        self._n_rows = max(self._n_rows, n_rows)
        if n_rows > self._matrix.shape[1]:
            self._resize(self._matrix.shape[0], max(n_rows, 2 * self._matrix.shape[1]))

    def pod_added(self, row: int, info: PodInfo) -> None:
        signature = self._signature(info)
        signature.rows[row] = signature.rows.get(row, 0) + 1
        if len(signature.slots):
            self._matrix[signature.slots, row] += 1

    def pod_removed(self, row: int, info: PodInfo) -> None:
        """Raises KeyError for a pod that was not added on that row."""
        signature = self._signatures[_key(info)]
        left = signature.rows[row] - 1
        if len(signature.slots):
            self._matrix[signature.slots, row] -= 1
        if left:
            signature.rows[row] = left
            return
        del signature.rows[row]
        if not signature.rows:
            self._drop_signature(_key(info), signature)

    def counts(self, term: Term) -> Int32:
        """[n_rows] pods on each row that match; a view, good until the next change or call."""
        kept = self._kept.get(term)
        if kept is None:
            kept = self._keep(term)
        else:
            self._kept.move_to_end(term)
        return self._matrix[kept.slot, : self._n_rows]

    def namespace_changed(self, name: str) -> None:
        """The labels of a namespace are different from before."""
        for kept in list(self._kept.values()):
            if not kept.term.selects_namespaces:
                continue
            for signature in self._by_namespace.get(name, ()):
                matches, counted = self._matches(kept.term, signature), kept in signature.terms
                if matches and not counted:
                    self._link(signature, kept)
                elif counted and not matches:
                    self._unlink(signature, kept)

    def check(self) -> None:
        """Raises AssertionError where a kept count differs from a count from scratch."""
        for term, kept in self._kept.items():
            expected = np.zeros(self._n_rows, np.int32)
            for signature in self._signatures.values():
                if self._matches(term, signature):
                    for row, count in signature.rows.items():
                        expected[row] += count
            assert np.array_equal(expected, self._matrix[kept.slot, : self._n_rows]), term
        assert len(self._kept) + len(self._free) == self._matrix.shape[0]

    def _signature(self, info: PodInfo) -> Signature:
        key = _key(info)
        signature = self._signatures.get(key)
        if signature is None:
            signature = Signature(info.namespace, dict(info.labels), info.is_terminating)
            self._signatures[key] = signature
            self._by_namespace.setdefault(info.namespace, {})[signature] = None
            self._offers.add(signature, info.namespace, signature.labels)
            for kept in self._demands.candidates(info.namespace, signature.labels):
                if self._matches(kept.term, signature):
                    self._link(signature, kept)
        return signature

    def _drop_signature(
        self, key: tuple[str, bool, frozenset[tuple[str, str]]], signature: Signature
    ) -> None:
        del self._signatures[key]
        for kept in signature.terms:
            del kept.signatures[signature]
        self._offers.discard(signature, signature.namespace, signature.labels)
        group = self._by_namespace[signature.namespace]
        del group[signature]
        if not group:
            del self._by_namespace[signature.namespace]

    def _matches(self, term: Term, signature: Signature) -> bool:
        if signature.terminating and term.exclude_terminating:
            return False
        namespace = signature.namespace
        return term.matches(namespace, self._namespace_labels.get(namespace), signature.labels)

    def _keep(self, term: Term) -> _Kept:
        while len(self._kept) >= self.limit:
            self._evict(next(iter(self._kept.values())))
        if not self._free:
            self._resize(2 * self._matrix.shape[0], self._matrix.shape[1])
        kept = _Kept(term, self._free.pop())
        self._kept[term] = kept
        self._demands.add(kept, term.clauses[0])
        for signature in self._offers.candidates(term.clauses[0]):
            if self._matches(term, signature):
                self._link(signature, kept)
        return kept

    def _evict(self, kept: _Kept) -> None:
        del self._kept[kept.term]
        for signature in kept.signatures:
            del signature.terms[kept]
            _renumber(signature)
        self._demands.discard(kept, kept.term.clauses[0])
        self._matrix[kept.slot] = 0
        self._free.append(kept.slot)

    def _link(self, signature: Signature, kept: _Kept) -> None:
        signature.terms[kept] = None
        kept.signatures[signature] = None
        _renumber(signature)
        for row, count in signature.rows.items():
            self._matrix[kept.slot, row] += count

    def _unlink(self, signature: Signature, kept: _Kept) -> None:
        del signature.terms[kept]
        del kept.signatures[signature]
        _renumber(signature)
        for row, count in signature.rows.items():
            self._matrix[kept.slot, row] -= count

    def _resize(self, slots: int, rows: int) -> None:
        old = self._matrix
        self._matrix = np.zeros((slots, rows), np.int32)
        self._matrix[: old.shape[0], : old.shape[1]] = old
        self._free = [*range(slots - 1, old.shape[0] - 1, -1), *self._free]


def _key(info: PodInfo) -> tuple[str, bool, frozenset[tuple[str, str]]]:
    return info.namespace, info.is_terminating, frozenset(info.labels.items())


def _renumber(signature: Signature) -> None:
    signature.slots = np.fromiter((kept.slot for kept in signature.terms), np.intp, len(signature.terms))
