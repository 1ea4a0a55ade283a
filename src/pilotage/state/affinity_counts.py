"""Inter-pod affinity as counts: matching pods by topology pair, and weighted sums for scoring.

Laws (spec: default plugins, InterPodAffinity):
- An existing pod counts for required affinity only when it matches all required terms at once; it then
  counts for the pair of each term. Every other term counts by itself.
- A node that lacks a term's key is in no pair.
- `AffinityCounts` is cycle state: a what-if changes a clone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from pilotage.state.domains import Domains, domain_sums, domains_of
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import AffinityTerms, OwnedTerm, OwnerKind, Term
from pilotage.state.terms import TermIndex
from pilotage.state.view import Bool, Int64, NodeView, Rows

_BLOCKING: Final = {OwnerKind.REQUIRED_ANTI: 1}


class PairCounts:
    """Matching pods by domain of one topology key."""

    __slots__ = ("domains", "sums")

    def __init__(self, domains: Domains, sums: Int64) -> None:
        self.domains = domains
        self.sums = sums

    def has_key(self, rows: Rows) -> Bool:
        return self.domains[rows] > 0

    def is_counted(self, rows: Rows) -> Bool:
        """Whether a row's pair has any match; False where it lacks the key."""
        return self.sums[self.domains[rows]] > 0

    def change(self, row: int, delta: int) -> None:
        domain = self.domains[row]
        if domain:
            self.sums[domain] += delta

    def clone(self) -> PairCounts:
        return PairCounts(self.domains, self.sums.copy())


class AffinityCounts:
    """Pairs for the pod's own required terms, and for existing pods' anti-affinity by topology key."""

    __slots__ = ("anti", "existing", "info", "required", "terms")

    def __init__(
        self,
        info: PodInfo,
        terms: AffinityTerms,
        required: list[PairCounts],
        anti: list[PairCounts],
        existing: dict[str, PairCounts],
    ) -> None:
        self.info = info
        self.terms = terms
        self.required = required  # aligned with terms.required
        self.anti = anti  # aligned with terms.required_anti
        self.existing = existing

    @property
    def is_idle(self) -> bool:
        """Nothing that could reject any node."""
        return not (self.required or self.anti or self.existing)

    @property
    def is_unmatched(self) -> bool:
        """No existing pod counts for required affinity anywhere."""
        return not any(pairs.sums.any() for pairs in self.required)

    def change(self, index: TermIndex, view: NodeView, other: PodInfo, row: int, delta: int) -> None:
        """`other` came to (+1) or left (-1) the node on `row`."""
        conjunction = self.terms.all_required
        if conjunction is not None and index.matches(conjunction, other):
            for pairs in self.required:
                pairs.change(row, delta)
        for owned, pairs in zip(self.terms.required_anti, self.anti, strict=True):
            if index.matches(owned.term, other):
                pairs.change(row, delta)
        for owned in affinity_of(other).required_anti:
            if index.matches(owned.term, self.info):
                self._existing_pairs(view, owned).change(row, delta)

    def _existing_pairs(self, view: NodeView, owned: OwnedTerm) -> PairCounts:
        key = owned.topology_key
        if key not in self.existing:
            domains = domains_of(view, key)
            self.existing[key] = PairCounts(domains, np.zeros(int(domains.max(initial=0)) + 1, np.int64))
        return self.existing[key]

    def clone(self) -> AffinityCounts:
        return AffinityCounts(
            self.info,
            self.terms,
            [pairs.clone() for pairs in self.required],
            [pairs.clone() for pairs in self.anti],
            {key: pairs.clone() for key, pairs in self.existing.items()},
        )


def affinity_counts(view: NodeView, index: TermIndex, info: PodInfo) -> AffinityCounts:
    terms = affinity_of(info)
    conjunction = terms.all_required
    required = [_pairs(view, index, t, conjunction) for t in terms.required] if conjunction else []
    anti = [_pairs(view, index, owned, owned.term) for owned in terms.required_anti]
    existing = {}
    for key, owners in index.owner_sums(info, _BLOCKING).items():
        domains = domains_of(view, key)
        existing[key] = PairCounts(domains, domain_sums(domains, owners))
    return AffinityCounts(info, terms, required, anti, existing)


def _pairs(view: NodeView, index: TermIndex, owned: OwnedTerm, term: Term) -> PairCounts:
    domains = domains_of(view, owned.topology_key)
    return PairCounts(domains, domain_sums(domains, index.counts(term)))


def matches_itself(index: TermIndex, info: PodInfo) -> bool:
    """Whether the pod matches all its own required affinity terms."""
    conjunction = affinity_of(info).all_required
    return conjunction is not None and index.matches(conjunction, info)


def preference_scores(
    view: NodeView, index: TermIndex, info: PodInfo, factors: Mapping[OwnerKind, int]
) -> Int64 | None:
    """[n_rows] sum of the weights of the row's pairs, or None when no pair has any.

    `factors` say what existing pods' terms count for, by kind.
    """
    weights = index.owner_sums(info, factors)
    terms = affinity_of(info)
    for sign, own in ((1, terms.preferred), (-1, terms.preferred_anti)):
        for owned in own:
            counts = (sign * owned.weight) * index.counts(owned.term).astype(np.int64)
            known = weights.get(owned.topology_key)
            weights[owned.topology_key] = counts if known is None else known + counts
    scores = np.zeros(view.n_rows, np.int64)
    for key, by_row in weights.items():
        domains = domains_of(view, key)
        scores += domain_sums(domains, by_row)[domains]
    return scores if scores.any() else None
