"""Topology spread as counts: matches by domain for hard constraints, weights and counts for soft ones.

Laws (spec: default plugins, PodTopologySpread):
- A hard domain is built from nodes that have all topology keys of the pod's hard constraints and pass the
  constraint's inclusion policies; a domain that was never built holds 0.
- An empty selector counts no pods. Terminating pods never count.
- `HardSpread` is cycle state: a what-if changes a clone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pilotage.state.domains import Domains, domain_sums, domains_of, domains_present
from pilotage.state.node_match import required_mask
from pilotage.state.podinfo import PodInfo
from pilotage.state.taints import untolerated_mask
from pilotage.state.term_values import SpreadConstraint
from pilotage.state.terms import TermIndex
from pilotage.state.view import Bool, Int64, NodeView, Rows

HOSTNAME: Final = "kubernetes.io/hostname"


class DomainCounts:
    """Matching pods by domain of one hard constraint."""

    __slots__ = ("_minimum", "constraint", "domains", "eligible", "present", "self_match", "sums")

    def __init__(
        self,
        constraint: SpreadConstraint,
        self_match: int,
        domains: Domains,
        eligible: Bool,
        sums: Int64,
        present: Bool,
    ) -> None:
        self.constraint = constraint
        self.self_match = self_match  # 1 when the pod's own labels match the selector
        self.domains = domains
        self.eligible = eligible  # [n_rows] nodes whose pods count
        self.sums = sums  # [domains] matching pods
        self.present = present  # [domains] domains that were built
        self._minimum: int | None = None

    @property
    def minimum(self) -> int:
        """Smallest count over the domains; 0 while there are fewer than minDomains."""
        if self._minimum is None:
            counts = self.sums[self.present]
            enough = len(counts) >= max(1, self.constraint.min_domains)
            self._minimum = int(counts.min()) if enough else 0
        return self._minimum

    def skew(self, rows: Rows) -> Int64:
        """Skew of each row's domain with the pod in it; meaningless where the row lacks the key."""
        return self.sums[self.domains[rows]] + (self.self_match - self.minimum)

    def change(self, row: int, delta: int) -> None:
        if self.eligible[row]:
            self.sums[self.domains[row]] += delta
            self._minimum = None

    def clone(self) -> DomainCounts:
        return DomainCounts(
            self.constraint, self.self_match, self.domains, self.eligible, self.sums.copy(), self.present
        )


class HardSpread:
    """Counts of all hard constraints of a pod, in their order."""

    __slots__ = ("counts",)

    def __init__(self, counts: Sequence[DomainCounts]) -> None:
        self.counts = tuple(counts)

    def change(self, terms: TermIndex, other: PodInfo, row: int, delta: int) -> None:
        """A pod came to (+1) or left (-1) the node on `row`."""
        for counts in self.counts:
            if not counts.constraint.is_empty and terms.matches(counts.constraint.term, other):
                counts.change(row, delta)

    def clone(self) -> HardSpread:
        return HardSpread([counts.clone() for counts in self.counts])


def hard_spread(
    view: NodeView, terms: TermIndex, info: PodInfo, constraints: Sequence[SpreadConstraint]
) -> HardSpread:
    """Raises SelectorError where the pod's node affinity cannot be compiled and a policy honours it."""
    domains = [domains_of(view, c.topology_key) for c in constraints]
    masks = _eligible(view, info, constraints, _with_all_keys(view, domains))
    return HardSpread(
        [
            _domain_counts(view, terms, info, constraint, domain, mask)
            for constraint, domain, mask in zip(constraints, domains, masks, strict=True)
        ]
    )


def _domain_counts(
    view: NodeView,
    terms: TermIndex,
    info: PodInfo,
    constraint: SpreadConstraint,
    domains: Domains,
    eligible: Bool,
) -> DomainCounts:
    counts = _counts(view, terms, constraint)
    sums = domain_sums(domains, counts, eligible)
    present = domains_present(domains, eligible, len(sums))
    self_match = int(constraint.selector.matches(info.labels))
    return DomainCounts(constraint, self_match, domains, eligible, sums, present)


@dataclass(frozen=True)
class SoftPart:
    """One soft constraint. Arrays are [n_rows]; `counts` means something where `has_key`."""

    has_key: Bool
    counts: Int64
    weight: float
    allowance: int  # maxSkew - 1


@dataclass(frozen=True)
class SoftSpread:
    """What scoring needs. `ignored` [n_rows]: nodes that lack a key and score 0."""

    ignored: Bool
    parts: tuple[SoftPart, ...]

    def scores(self, rows: Rows) -> Int64:
        """Raw scores, each rounded once, half away from zero."""
        total = np.zeros(len(rows), np.float64)
        for part in self.parts:
            worth = part.counts[rows] * part.weight + float(part.allowance)
            total += np.where(part.has_key[rows], worth, 0.0)
        whole = np.floor(total)
        rounded: Int64 = (whole + (total - whole >= 0.5)).astype(np.int64)
        rounded[self.ignored[rows]] = 0
        return rounded


def soft_spread(
    view: NodeView,
    terms: TermIndex,
    info: PodInfo,
    constraints: Sequence[SpreadConstraint],
    rows: Rows,
    *,
    needs_all_keys: bool,
) -> SoftSpread:
    """`rows`: the feasible ones. Without `needs_all_keys` (system defaults) a missing key is a domain of its
    own for the weights, and no node is ignored."""
    domains = [domains_of(view, c.topology_key) for c in constraints]
    base = _with_all_keys(view, domains) if needs_all_keys else view.alive
    ignored = ~base
    scored = rows[base[rows]]
    masks = _eligible(view, info, constraints, base)
    return SoftSpread(
        ignored,
        tuple(
            _soft_part(view, terms, constraint, domain, mask, scored)
            for constraint, domain, mask in zip(constraints, domains, masks, strict=True)
        ),
    )


def _soft_part(
    view: NodeView,
    terms: TermIndex,
    constraint: SpreadConstraint,
    domains: Domains,
    mask: Bool,
    scored: Rows,
) -> SoftPart:
    counts = _counts(view, terms, constraint)
    if constraint.topology_key == HOSTNAME:
        size, by_row = len(scored), counts
    else:
        known = _with_empty_value(view, constraint.topology_key, domains)
        size = int(np.count_nonzero(np.bincount(known[scored])))
        by_row = domain_sums(known, counts, mask)[known]
    return SoftPart(domains > 0, by_row, math.log(size + 2), constraint.max_skew - 1)


def _with_empty_value(view: NodeView, key: str, domains: Domains) -> Domains:
    """Nodes that lack the key share the domain of those whose value is the empty string."""
    code = view.label_code(key, "")
    return domains if code < 0 else np.where((domains == 0) & view.alive, code + 1, domains)


def _with_all_keys(view: NodeView, domains: Sequence[NDArray[np.intp]]) -> Bool:
    mask = view.alive
    for domain in domains:
        mask = mask & (domain > 0)
    return mask


def _eligible(
    view: NodeView, info: PodInfo, constraints: Sequence[SpreadConstraint], base: Bool
) -> list[Bool]:
    """Per constraint, the rows of `base` that pass its inclusion policies."""
    affinity = required_mask(view, info) if any(c.honors_affinity for c in constraints) else None
    tainted = untolerated_mask(view, info) if any(c.honors_taints for c in constraints) else None
    masks = []
    for constraint in constraints:
        mask = base
        if constraint.honors_affinity and affinity is not None:
            mask = mask & affinity
        if constraint.honors_taints and tainted is not None:
            mask = mask & ~tainted
        masks.append(mask)
    return masks


def _counts(view: NodeView, terms: TermIndex, constraint: SpreadConstraint) -> Int64:
    if constraint.is_empty:
        return np.zeros(view.n_rows, np.int64)
    return terms.counts(constraint.term).astype(np.int64)
