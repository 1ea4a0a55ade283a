"""After any sequence of changes the term index equals a count from scratch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from pilotage.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import OwnerKind, Term
from pilotage.state.terms import TermIndex

NAMESPACES = ("a", "b", "c")
ROWS = 60
FACTORS = {
    OwnerKind.REQUIRED: 3,
    OwnerKind.REQUIRED_ANTI: 1,
    OwnerKind.PREFERRED: 1,
    OwnerKind.PREFERRED_ANTI: -1,
}

label_maps = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y", ""]), max_size=2)


@st.composite
def selectors(draw: st.DrawFn) -> LabelSelector | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2)) if "In" in operator else None
    key = draw(st.sampled_from(["app", "tier"]))
    expression = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_expressions=draw(st.sampled_from([[expression], []])))


@st.composite
def affinity_terms(draw: st.DrawFn) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=draw(st.sampled_from(["zone", "host"])),
        label_selector=draw(selectors()),
        namespaces=draw(st.none() | st.lists(st.sampled_from(NAMESPACES), max_size=2)),
        namespace_selector=draw(st.none() | st.none() | selectors()),
        match_label_keys=draw(st.none() | st.just(["app"])),
        mismatch_label_keys=draw(st.none() | st.none() | st.just(["tier"])),
    )


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    def sides() -> PodAffinity:
        required = draw(st.lists(affinity_terms(), max_size=2))
        weighted = [
            WeightedPodAffinityTerm(weight=draw(st.integers(1, 100)), pod_affinity_term=term)
            for term in draw(st.lists(affinity_terms(), max_size=1))
        ]
        return PodAffinity(required=required or None, preferred=weighted or None)

    deleted = draw(st.sampled_from([None, None, "2026-01-01T00:00:00Z"]))
    meta = ObjectMeta(
        namespace=draw(st.sampled_from(NAMESPACES)), labels=draw(label_maps), deletion_timestamp=deleted
    )
    affinity = Affinity(pod_affinity=sides(), pod_anti_affinity=sides()) if draw(st.booleans()) else None
    return PodInfo(Pod(metadata=meta, spec=PodSpec(affinity=affinity)))


@st.composite
def terms(draw: st.DrawFn) -> Term:
    clauses = []
    for _ in range(draw(st.integers(1, 2))):
        owner = PodInfo(
            Pod(
                metadata=ObjectMeta(namespace=draw(st.sampled_from(NAMESPACES))),
                spec=PodSpec(affinity=Affinity(pod_affinity=PodAffinity(required=[draw(affinity_terms())]))),
            )
        )
        clauses.append(affinity_of(owner).required[0].clause)
    return Term(clauses, exclude_terminating=draw(st.booleans()))


@dataclass
class Model:
    """The index beside the plain list of what it was told."""

    index: TermIndex
    pods: list[tuple[int, PodInfo]] = field(default_factory=list)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)

    def matches(self, term: Term, info: PodInfo) -> bool:
        if term.exclude_terminating and info.is_terminating:
            return False
        return all(
            clause.selector.matches(info.labels)
            and (
                info.namespace in clause.namespaces.names
                or (
                    clause.namespaces.selector is not None
                    and clause.namespaces.selector.matches(self.namespaces.get(info.namespace, {}))
                )
            )
            for clause in term.clauses
        )

    def compare_counts(self, term: Term) -> None:
        expected = np.zeros(ROWS, int)
        for row, info in self.pods:
            expected[row] += self.matches(term, info)
        assert self.index.counts(term).tolist() == expected.tolist()

    def compare_owners(self, incoming: PodInfo) -> None:
        expected: dict[str, np.ndarray] = {}
        for row, info in self.pods:
            for owned in affinity_of(info).owned:
                if self.matches(owned.term, incoming):
                    sums = expected.setdefault(owned.topology_key, np.zeros(ROWS, int))
                    sums[row] += FACTORS[owned.kind] * owned.weight
        found = self.index.owner_sums(incoming, FACTORS)
        assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in expected.items()}


def _add(model: Model, row: int, info: PodInfo) -> None:
    model.pods.append((row, info))
    model.index.pod_added(row, info)


def _add_one(model: Model, data: st.DataObject) -> None:
    _add(model, data.draw(st.integers(0, ROWS - 1)), data.draw(pods()))


def _add_many(model: Model, data: st.DataObject) -> None:
    info = data.draw(pods())
    for row in range(data.draw(st.integers(40, ROWS))):
        _add(model, row, info)


def _replace(model: Model, data: st.DataObject) -> None:
    if model.pods:
        position = data.draw(st.integers(0, len(model.pods) - 1))
        row, before = model.pods[position]
        after = PodInfo(before.pod) if data.draw(st.booleans()) else data.draw(pods())
        model.pods[position] = (row, after)
        model.index.pod_replaced(row, before, after)


def _remove(model: Model, data: st.DataObject) -> None:
    if model.pods:
        row, info = model.pods.pop(data.draw(st.integers(0, len(model.pods) - 1)))
        model.index.pod_removed(row, PodInfo(info.pod))


def _relabel(model: Model, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMESPACES))
    labels = data.draw(st.none() | label_maps)
    model.namespaces[name] = labels or {}
    model.index.namespace_changed(name, labels)


# None: ask something in between.
STEPS = (_add_one, _add_one, _add_many, _replace, _remove, _relabel, None, None)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_sequence_of_changes_equals_a_count_from_scratch(data: st.DataObject) -> None:
    model = Model(TermIndex(max_terms=4))
    model.index.grow(ROWS)
    known = data.draw(st.lists(terms(), min_size=1, max_size=6))
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(st.sampled_from(STEPS))
        if step is not None:
            step(model, data)
        elif data.draw(st.booleans()):
            model.compare_counts(data.draw(st.sampled_from(known)))
        else:
            model.compare_owners(data.draw(pods()))
        model.index.check_invariants()
    for term in known:
        model.compare_counts(term)
    model.compare_owners(data.draw(pods()))
