"""InterPodAffinity: which term, which pod, in which domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec
import numpy as np

from pilotage.api.pods import Affinity, PodAffinity
from pilotage.framework.status import Code, Status
from pilotage.frontends.explain.look import Look, Place
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, change_pod, with_spec
from pilotage.state.affinity_counts import AffinityCounts, PairCounts
from pilotage.state.pod_terms import affinity_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.spread_counts import HOSTNAME
from pilotage.state.term_values import OwnedTerm
from pilotage.state.view import Rows

NAME = "InterPodAffinity"
Found = tuple[PodInfo, str]  # a pod and the name of its node


class InterPodAffinity(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        """In the order of the filter: own affinity, own anti-affinity, that of pods on nodes."""
        place = look.place(row)
        counts = place.cycle.get(f"{NAME}/counts")
        if not isinstance(counts, AffinityCounts):
            return Detail()
        if status.code is Code.UNRESOLVABLE:
            return _unmet(look, counts, row)
        return _own_anti(look, place, counts, row) or _existing(look, place, counts, row) or Detail()

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        """Each required term in turn: what would be without it."""
        terms = affinity_of(look.pod)
        for position, owned in enumerate(terms.required):
            text = f"without affinity to {term_text(owned, look.pod)}"
            yield Change(text, NAME, change_pod(_Without("pod_affinity", position)), len(rows))
        for position, owned in enumerate(terms.required_anti):
            text = f"without anti-affinity against {term_text(owned, look.pod)}"
            yield Change(text, NAME, change_pod(_Without("pod_anti_affinity", position)), len(rows))
        if len(terms.required) > 1:
            change = change_pod(_Without("pod_affinity", None))
            yield Change("without its required pod affinity", NAME, change, len(rows))
        if len(terms.required_anti) > 1:
            change = change_pod(_Without("pod_anti_affinity", None))
            yield Change("without its required pod anti-affinity", NAME, change, len(rows))


def term_text(owned: OwnedTerm, pod: PodInfo) -> str:
    """`app=web per kubernetes.io/hostname`"""
    rule = owned.clause.namespaces
    where = ""
    if rule.selector is not None:
        where = f" in namespaces with {rule.selector}" if rule.selector.requirements else " in all namespaces"
    elif rule.names != {pod.namespace}:
        where = f" in namespace {', '.join(sorted(rule.names))}"
    selector = "all pods" if owned.clause.selector.is_everything else str(owned.clause.selector)
    return f"{selector}{where} per {owned.topology_key}"


# The three ways to fail


def _unmet(look: Look, counts: AffinityCounts, row: int) -> Detail:
    labels = look.view.node(row).metadata.labels or {}
    only = np.array([row], np.intp)
    for owned, pairs in zip(counts.terms.required, counts.required, strict=True):
        key, text = owned.topology_key, term_text(owned, look.pod)
        if not pairs.has_key(only)[0]:
            return Detail(f"affinity to {text}: no label {key}", numbers={"topologyKey": key, "term": text})
        if not pairs.is_counted(only)[0]:
            several = " and all other required terms" if len(counts.required) > 1 else ""
            found = f"no pod matches it{several} in {key}={labels.get(key, '')}"
            group = f"affinity to {text}: no pod matches it{several} there" if key == HOSTNAME else ""
            numbers = {"topologyKey": key, "domain": labels.get(key, ""), "term": text, "matching": 0}
            return Detail(f"affinity to {text}: {found}", group, numbers)
    return Detail()


def _own_anti(look: Look, place: Place, counts: AffinityCounts, row: int) -> Detail | None:
    only = np.array([row], np.intp)
    for owned, pairs in zip(counts.terms.required_anti, counts.anti, strict=True):
        if pairs.is_counted(only)[0]:
            text = f"anti-affinity against {term_text(owned, look.pod)}"
            other = _first(look, place, pairs, row, partial(_is_matched, look, owned))
            number = int(pairs.sums[pairs.domains[row]])
            return _against(look, text, owned.topology_key, number, other, row)
    return None


def _existing(look: Look, place: Place, counts: AffinityCounts, row: int) -> Detail | None:
    only = np.array([row], np.intp)
    for key, pairs in counts.existing.items():
        if not pairs.is_counted(only)[0]:
            continue
        other = _first(look, place, pairs, row, partial(_is_repelling, look, key))
        owned = _repels(look, other[0], key) if other is not None else None
        against = term_text(owned, other[0]) if owned is not None and other is not None else f"it per {key}"
        text = f"anti-affinity of other pods against {against}"
        return _against(look, text, key, int(pairs.sums[pairs.domains[row]]), other, row)
    return None


def _is_matched(look: Look, owned: OwnedTerm, other: PodInfo) -> bool:
    return look.cluster.terms.matches(owned.term, other)


def _is_repelling(look: Look, key: str, other: PodInfo) -> bool:
    return _repels(look, other, key) is not None


def _repels(look: Look, other: PodInfo, key: str) -> OwnedTerm | None:
    """The term of a pod on a node that keeps this pod away."""
    for owned in affinity_of(other).required_anti:
        if owned.topology_key == key and look.cluster.terms.matches(owned.term, look.pod):
            return owned
    return None


def _against(look: Look, text: str, key: str, number: int, other: Found | None, row: int) -> Detail:
    value = (look.view.node(row).metadata.labels or {}).get(key, "")
    numbers = {"topologyKey": key, "domain": value, "term": text, "matching": number}
    if other is None:
        return Detail(f"{text}: {number} in {key}={value}", text if key == HOSTNAME else "", numbers)
    pod, node = other
    numbers["pod"], numbers["podNode"] = pod.key, node
    where = "" if key == HOSTNAME else f" on {node}, in {key}={value}"
    more = f" and {number - 1} more" if number > 1 else ""
    return Detail(f"{text}: {pod.key}{where}{more}", text if key == HOSTNAME else "", numbers)


def _first(
    look: Look, place: Place, pairs: PairCounts, row: int, is_it: Callable[[PodInfo], bool]
) -> Found | None:
    """A pod in the row's domain for which `is_it`, and its node: this one, else the first."""
    own = _on_row(place, row, is_it)
    if own is not None or place.beside:
        return own or _in_domain(place, pairs, row, is_it)
    key = (NAME, id(pairs), int(pairs.domains[row]))
    if key not in look.memo:
        look.memo[key] = _in_domain(place, pairs, row, is_it)
    found: Found | None = look.memo[key]
    return found


def _on_row(place: Place, row: int, is_it: Callable[[PodInfo], bool]) -> Found | None:
    return next(((pod, place.view.name(row)) for pod in place.view.pods(row) if is_it(pod)), None)


def _in_domain(place: Place, pairs: PairCounts, row: int, is_it: Callable[[PodInfo], bool]) -> Found | None:
    rows = np.flatnonzero(pairs.domains == pairs.domains[row]).tolist()
    return next(filter(None, (_on_row(place, at, is_it) for at in rows)), None)


# What-ifs


class _Without:
    """All required terms of one side but the one at a position; without a position none of them."""

    def __init__(self, side: str, position: int | None) -> None:
        self._side = side
        self._position = position

    def __call__(self, info: PodInfo) -> PodInfo:
        affinity = info.pod.spec.affinity or Affinity()
        side: PodAffinity = getattr(affinity, self._side) or PodAffinity()
        terms = side.required or () if self._position is not None else ()
        required = [term for i, term in enumerate(terms) if i != self._position]
        changed = msgspec.structs.replace(side, required=required or None)
        return with_spec(info, affinity=msgspec.structs.replace(affinity, **{self._side: changed}))
