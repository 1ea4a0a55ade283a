"""PodTopologySpread: the constraint that fails, its counts, and what would be enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from pilotage.api.pods import TopologySpreadConstraint
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, change_pod, with_spec
from pilotage.state.podinfo import PodInfo
from pilotage.state.spread_counts import HOSTNAME, DomainCounts, HardSpread
from pilotage.state.view import Rows

NAME = "PodTopologySpread"
_HARD = "DoNotSchedule"


class PodTopologySpread(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        place = look.place(row)
        spread = place.cycle.get(f"{NAME}/hard")
        if not isinstance(spread, HardSpread):
            return Detail()
        for counts in spread.counts:
            key = counts.constraint.topology_key
            if not counts.domains[row]:
                return Detail(f"no label {key}", numbers={"topologyKey": key, "missingLabel": True})
            if _skew(counts, row) > counts.constraint.max_skew:
                return _too_skewed(look, counts, row)
        return Detail()

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        """For the pod's own constraints: the smallest maxSkew that helps, or to do without the constraint."""
        spread = look.cycle.get(f"{NAME}/hard")
        own = _own_hard(look.pod)
        if not isinstance(spread, HardSpread) or len(own) != len(spread.counts):
            return
        for position, counts in zip(own, spread.counts, strict=True):
            yield from _changes_of(position, counts, rows)


def _skew(counts: DomainCounts, row: int) -> int:
    return int(counts.skew(np.array([row], np.intp))[0])


def _too_skewed(look: Look, counts: DomainCounts, row: int) -> Detail:
    constraint, key = counts.constraint, counts.constraint.topology_key
    value = (look.view.node(row).metadata.labels or {}).get(key, "")
    matching, skew = int(counts.sums[counts.domains[row]]), _skew(counts, row)
    domains = int(np.count_nonzero(counts.present))
    few = f" of the {constraint.min_domains} it wants" if domains < constraint.min_domains else ""
    itself = " + this pod" if counts.self_match else ""
    sum_text = (
        f"{matching} matching{itself} - {counts.minimum} in the emptiest domain = skew {skew}, "
        f"maxSkew {constraint.max_skew} ({domains} domain{'s' * (domains != 1)}{few}; {constraint.selector})"
    )
    numbers = {
        "topologyKey": key,
        "domain": value,
        "matching": matching,
        "self": counts.self_match,
        "minimum": counts.minimum,
        "skew": skew,
        "maxSkew": constraint.max_skew,
        "domains": domains,
        "minDomains": constraint.min_domains,
        "selector": str(constraint.selector),
    }
    group = f"{key}: {sum_text}" if key == HOSTNAME else ""
    return Detail(f"{key}={value}: {sum_text}", group, numbers)


# What-ifs


def _own_hard(info: PodInfo) -> list[int]:
    constraints = info.pod.spec.topology_spread_constraints or ()
    return [i for i, constraint in enumerate(constraints) if constraint.when_unsatisfiable == _HARD]


def _changes_of(position: int, counts: DomainCounts, rows: Rows) -> Iterable[Change]:
    key, allowed = counts.constraint.topology_key, counts.constraint.max_skew
    has_key = counts.domains[rows] > 0
    skews = counts.skew(rows)[has_key]
    beyond = skews[skews > allowed]
    if beyond.size:
        enough = int(beyond.min())
        text = f"with maxSkew {enough} instead of {allowed} over {key}"
        yield Change(text, NAME, change_pod(_Edit(position, _Skew(enough))), int(beyond.size))
    if not has_key.all():
        text = f"without the spread constraint over {key}"
        yield Change(text, NAME, change_pod(_Edit(position, _soften)), int((~has_key).sum()))


class _Skew:
    def __init__(self, max_skew: int) -> None:
        self._max_skew = max_skew

    def __call__(self, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        return msgspec.structs.replace(constraint, max_skew=self._max_skew)


def _soften(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
    """Stays in its place, so that positions keep their meaning."""
    return msgspec.structs.replace(constraint, when_unsatisfiable="ScheduleAnyway")


class _Edit:
    def __init__(
        self, position: int, edit: Callable[[TopologySpreadConstraint], TopologySpreadConstraint]
    ) -> None:
        self._position = position
        self._edit = edit

    def __call__(self, info: PodInfo) -> PodInfo:
        constraints: Sequence[TopologySpreadConstraint] = info.pod.spec.topology_spread_constraints or ()
        edited = [self._edit(c) if i == self._position else c for i, c in enumerate(constraints)]
        return with_spec(info, topology_spread_constraints=edited)
