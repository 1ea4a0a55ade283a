"""Compiles a pod's affinity terms and spread constraints, once for all equal pods.

Laws:
- `matchLabelKeys` and `mismatchLabelKeys` are merged into the selector unless the API server already did
  so: a key that the selector already pins to one value is not pinned a second time.
- A selector that cannot be compiled never raises: it is the pod's `defect`, and its terms are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from pilotage.api.meta import LabelSelector, LabelSelectorRequirement
from pilotage.api.pods import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pilotage.api.selectors import LabelMatcher, SelectorError, compile_label_selector
from pilotage.state.podinfo import PodInfo
from pilotage.state.term_values import (
    AffinityTerms,
    Clause,
    Labels,
    NamespaceRule,
    OwnedTerm,
    OwnerKind,
    PodTerms,
    SpreadConstraint,
    SpreadTerms,
    Term,
)

NO_AFFINITY: Final = AffinityTerms()
NO_SPREAD: Final = SpreadTerms()
NO_TERMS: Final = PodTerms(NO_AFFINITY, NO_SPREAD)

_encode: Final = msgspec.msgpack.Encoder().encode


def terms_of(info: PodInfo) -> PodTerms:
    """The compiled terms of a pod, kept on its `terms` slot."""
    terms = info.terms
    if isinstance(terms, PodTerms):
        return terms
    compiled = _terms_of_spec(info.namespace, info.labels, info.pod.spec)
    info.terms = compiled
    return compiled


def affinity_of(info: PodInfo) -> AffinityTerms:
    return terms_of(info).affinity


def spread_of(info: PodInfo) -> SpreadTerms:
    return terms_of(info).spread


def _terms_of_spec(namespace: str, labels: Labels, spec: PodSpec) -> PodTerms:
    affinity, constraints = spec.affinity, spec.topology_spread_constraints
    pod_affinity = affinity.pod_affinity if affinity is not None else None
    anti_affinity = affinity.pod_anti_affinity if affinity is not None else None
    if pod_affinity is None and anti_affinity is None and not constraints:
        return NO_TERMS
    own = tuple((key, labels[key]) for key in sorted(_own_keys(affinity, constraints)) if key in labels)
    return _compiled(namespace, own, _encode((pod_affinity, anti_affinity, constraints)))


def _own_keys(affinity: Affinity | None, constraints: list[TopologySpreadConstraint] | None) -> set[str]:
    """Keys of the pod's own labels that its terms read."""
    keys: set[str] = set()
    for constraint in constraints or ():
        keys.update(constraint.match_label_keys or ())
    if affinity is not None:
        for term in (*_terms_in(affinity.pod_affinity), *_terms_in(affinity.pod_anti_affinity)):
            keys.update(term.match_label_keys or ())
            keys.update(term.mismatch_label_keys or ())
    return keys


def _terms_in(affinity: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    if affinity is None:
        return ()
    return (*(affinity.required or ()), *(w.pod_affinity_term for w in affinity.preferred or ()))


class _Terms(msgspec.Struct, array_like=True):
    pod_affinity: PodAffinity | None
    anti_affinity: PodAffinity | None
    constraints: list[TopologySpreadConstraint] | None


_decode: Final = msgspec.msgpack.Decoder(_Terms).decode


@lru_cache(maxsize=1 << 13)
def _compiled(namespace: str, own: tuple[tuple[str, str], ...], encoded: bytes) -> PodTerms:
    """Pods of one template share namespace, the labels that their terms read, and the encoded terms."""
    terms = _decode(encoded)
    labels = dict(own)
    return PodTerms(
        _compile_affinity(namespace, labels, terms.pod_affinity, terms.anti_affinity),
        _compile_spread(namespace, labels, terms.constraints),
    )


def _compile_affinity(
    namespace: str, labels: Labels, affinity: PodAffinity | None, anti: PodAffinity | None
) -> AffinityTerms:
    affinity, anti = affinity or PodAffinity(), anti or PodAffinity()
    try:
        return AffinityTerms(
            _required(OwnerKind.REQUIRED, namespace, labels, affinity.required, "podAffinity"),
            _required(OwnerKind.REQUIRED_ANTI, namespace, labels, anti.required, "podAntiAffinity"),
            _preferred(OwnerKind.PREFERRED, namespace, labels, affinity.preferred, "podAffinity"),
            _preferred(OwnerKind.PREFERRED_ANTI, namespace, labels, anti.preferred, "podAntiAffinity"),
        )
    except SelectorError as exc:
        return AffinityTerms(defect=str(exc))


def _required(
    kind: OwnerKind, namespace: str, labels: Labels, terms: list[PodAffinityTerm] | None, path: str
) -> tuple[OwnedTerm, ...]:
    where = f"spec.affinity.{path}.requiredDuringSchedulingIgnoredDuringExecution"
    return tuple(
        OwnedTerm(kind, term.topology_key, _clause(namespace, labels, term, f"{where}[{index}]"))
        for index, term in enumerate(terms or ())
    )


def _preferred(
    kind: OwnerKind, namespace: str, labels: Labels, terms: list[WeightedPodAffinityTerm] | None, path: str
) -> tuple[OwnedTerm, ...]:
    where = f"spec.affinity.{path}.preferredDuringSchedulingIgnoredDuringExecution"
    return tuple(
        OwnedTerm(
            kind,
            weighted.pod_affinity_term.topology_key,
            _clause(namespace, labels, weighted.pod_affinity_term, f"{where}[{index}].podAffinityTerm"),
            weighted.weight,
        )
        for index, weighted in enumerate(terms or ())
    )


def _clause(namespace: str, labels: Labels, term: PodAffinityTerm, path: str) -> Clause:
    names = frozenset(term.namespaces or ())
    selector = None
    if term.namespace_selector is not None:
        selector = compile_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    elif not names:
        names = frozenset((namespace,))
    merged = merge_label_keys(term.label_selector, term.match_label_keys, term.mismatch_label_keys, labels)
    return Clause(NamespaceRule(names, selector), compile_label_selector(merged, f"{path}.labelSelector"))


def _compile_spread(
    namespace: str, labels: Labels, constraints: list[TopologySpreadConstraint] | None
) -> SpreadTerms:
    try:
        return SpreadTerms(
            tuple(
                _spread_constraint(namespace, labels, constraint, f"spec.topologySpreadConstraints[{index}]")
                for index, constraint in enumerate(constraints or ())
            )
        )
    except SelectorError as exc:
        return SpreadTerms(defect=str(exc))


def _spread_constraint(
    namespace: str, labels: Labels, constraint: TopologySpreadConstraint, path: str
) -> SpreadConstraint:
    merged = merge_label_keys(constraint.label_selector, constraint.match_label_keys, None, labels)
    selector = compile_label_selector(merged, f"{path}.labelSelector")
    return spread_constraint(namespace, constraint, selector)


def spread_constraint(
    namespace: str, constraint: TopologySpreadConstraint, selector: LabelMatcher
) -> SpreadConstraint:
    """A constraint with the given selector in place of its own."""
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        is_hard=constraint.when_unsatisfiable == "DoNotSchedule",
        selector=selector,
        min_domains=constraint.min_domains or 1,
        honors_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honors_taints=(constraint.node_taints_policy or "Ignore") == "Honor",
        term=Term([Clause(NamespaceRule(frozenset((namespace,))), selector)], exclude_terminating=True),
    )


def merge_label_keys(
    selector: LabelSelector | None,
    match_keys: Sequence[str] | None,
    mismatch_keys: Sequence[str] | None,
    labels: Labels,
) -> LabelSelector | None:
    """The selector with `key In (own value)` and `key NotIn (own value)` added for the keys the pod has."""
    if selector is None or not (match_keys or mismatch_keys):
        return selector
    expressions = list(selector.match_expressions or ())
    merged = {(e.key, e.operator) for e in expressions if len(e.values or ()) == 1}
    for keys, operator in ((match_keys, "In"), (mismatch_keys, "NotIn")):
        for key in keys or ():
            if key in labels and (key, operator) not in merged:
                expressions.append(LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]]))
    return LabelSelector(match_labels=selector.match_labels, match_expressions=expressions)
