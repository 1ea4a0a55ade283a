"""Affinity terms and spread constraints as values: what counts are kept of, and what plugins read.

Laws:
- Equal terms of different pods are one key, so that counts can be kept per term.
- The namespaces of a term are resolved against its owner already; a namespace selector stays a selector,
  because namespaces change their labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pilotage.api.selectors import LabelMatcher

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """Names, and all namespaces whose labels the selector matches (None: no selector)."""

    names: frozenset[str]
    selector: LabelMatcher | None = None

    def matches(self, namespace: str, namespace_labels: Labels | None) -> bool:
        return namespace in self.names or (
            self.selector is not None and self.selector.matches(namespace_labels)
        )


@dataclass(frozen=True, slots=True)
class Clause:
    """Pods by namespace and labels."""

    namespaces: NamespaceRule
    selector: LabelMatcher

    def matches(self, namespace: str, namespace_labels: Labels | None, labels: Labels) -> bool:
        return self.selector.matches(labels) and self.namespaces.matches(namespace, namespace_labels)


class Term:
    """A conjunction of clauses, as a key: what a count per row is kept of.

    `exclude_terminating`: pods with a deletionTimestamp do not count (spread), else they do (affinity).
    """

    __slots__ = ("_hash", "clauses", "exclude_terminating")

    def __init__(self, clauses: Sequence[Clause], *, exclude_terminating: bool = False) -> None:
        self.clauses = tuple(clauses)
        self.exclude_terminating = exclude_terminating
        self._hash = hash((self.clauses, exclude_terminating))

    @property
    def selects_namespaces(self) -> bool:
        """Whether namespace labels can change what it matches."""
        return any(clause.namespaces.selector is not None for clause in self.clauses)

    def matches(self, namespace: str, namespace_labels: Labels | None, labels: Labels) -> bool:
        return all(clause.matches(namespace, namespace_labels, labels) for clause in self.clauses)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Term):
            return NotImplemented
        return self.clauses == other.clauses and self.exclude_terminating is other.exclude_terminating

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Term({self.clauses!r}, exclude_terminating={self.exclude_terminating})"


class OwnerKind(Enum):
    """Why a pod on a node owns a term."""

    REQUIRED = "podAffinity, required"
    REQUIRED_ANTI = "podAntiAffinity, required"
    PREFERRED = "podAffinity, preferred"
    PREFERRED_ANTI = "podAntiAffinity, preferred"


@dataclass(frozen=True)
class OwnedTerm:
    """One term of a pod with its role; `weight` is 1 for required terms."""

    kind: OwnerKind
    topology_key: str
    clause: Clause
    weight: int = 1
    term: Term = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "term", Term((self.clause,)))


@dataclass(frozen=True)
class AffinityTerms:
    """A pod's own inter-pod terms, by kind; `owned` are all of them."""

    required: tuple[OwnedTerm, ...] = ()
    required_anti: tuple[OwnedTerm, ...] = ()
    preferred: tuple[OwnedTerm, ...] = ()
    preferred_anti: tuple[OwnedTerm, ...] = ()
    defect: str = ""
    owned: tuple[OwnedTerm, ...] = field(init=False, compare=False)
    # What an existing pod must match to count for required affinity: all terms at once.
    all_required: Term | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        owned = (*self.required, *self.required_anti, *self.preferred, *self.preferred_anti)
        object.__setattr__(self, "owned", owned)
        conjunction = Term([t.clause for t in self.required]) if self.required else None
        object.__setattr__(self, "all_required", conjunction)


@dataclass(frozen=True)
class SpreadConstraint:
    """One topology spread constraint. An `is_empty` selector counts no pods, yet matches the pod itself."""

    max_skew: int
    topology_key: str
    is_hard: bool
    selector: LabelMatcher
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    term: Term

    @property
    def is_empty(self) -> bool:
        return self.selector.is_everything


@dataclass(frozen=True)
class SpreadTerms:
    constraints: tuple[SpreadConstraint, ...] = ()
    defect: str = ""

    @property
    def hard(self) -> tuple[SpreadConstraint, ...]:
        return tuple(c for c in self.constraints if c.is_hard)

    @property
    def soft(self) -> tuple[SpreadConstraint, ...]:
        return tuple(c for c in self.constraints if not c.is_hard)


@dataclass(frozen=True)
class PodTerms:
    affinity: AffinityTerms
    spread: SpreadTerms
