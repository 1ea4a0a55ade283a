"""What would have to change: single changes first; where none is enough, several together.

Law: a change counts only by what the filters say about the changed pod. Which changes are tried comes from
the plugins that rejected nodes; after a change the next plugin in line is asked for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.profile import Profile
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import WhatIf
from pilotage.frontends.explain.plugins import EXPLANATIONS
from pilotage.frontends.explain.scenario import Change, Scenario
from pilotage.scheduling.decide import survey
from pilotage.state.cluster import ClusterState
from pilotage.state.view import Rows

DEPTH: Final = 3  # changes taken together
_BUDGET: Final = 120  # surveys
_WIDTH: Final = 10  # changes tried at each step
_SHOWN: Final = 8


@dataclass(frozen=True)
class _Tried:
    """A scenario with what was changed, and what the filters say of it."""

    changes: tuple[Change, ...]
    look: Look

    @property
    def rows(self) -> Rows:
        return self.look.survey.rows


class Search:
    """One pod's what-ifs."""

    def __init__(self, profile: Profile, cluster: ClusterState) -> None:
        self._profile = profile
        self._cluster = cluster
        # Each nominated pod makes each survey slower.
        self._budget = max(_BUDGET // (1 + len(cluster.nominations) // 10), _WIDTH)

    def look(self, scenario: Scenario) -> Look | None:
        """What the filters say; None when a plugin fails."""
        self._budget -= 1
        cycle, view = CycleState(), scenario.view or self._cluster.nodes
        try:
            found = survey(self._profile, self._cluster, scenario.pod, cycle, view)
        except PluginFailedError:
            return None
        return Look(self._profile, self._cluster, scenario.pod, cycle, view, found)

    def what_ifs(self, look: Look) -> list[WhatIf]:
        """The smallest sets of changes that make nodes feasible, those for most nodes first."""
        level = [_Tried((), look)]
        for _ in range(DEPTH):
            level = list(self._changed(level))
            helpful = [tried for tried in level if tried.rows.size]
            if helpful:
                return [_what_if(tried) for tried in _worth_telling(helpful)[:_SHOWN]]
        return []

    def _changed(self, level: Sequence[_Tried]) -> Iterator[_Tried]:
        """Every scenario with one more change; sets of changes that were tried in another order are not."""
        seen: set[frozenset[str]] = set()
        for tried in level:
            for change in _changes(tried.look)[:_WIDTH]:
                changes = (*tried.changes, change)
                known = frozenset(one.text for one in changes)
                if known in seen or len(known) < len(changes) or self._budget <= 0:
                    continue
                seen.add(known)
                look = self.look(change.apply(Scenario(tried.look.pod, tried.look.view)))
                if look is not None:
                    yield _Tried(changes, look)


def _changes(look: Look) -> list[Change]:
    """What the plugins that reject nodes would have otherwise, the most common cause first."""
    found = [
        change
        for plugin, rows in rejected_rows(look)
        if plugin in EXPLANATIONS
        for change in EXPLANATIONS[plugin].changes(look, rows)
    ]
    return sorted(found, key=lambda change: -change.weight)


def rejected_rows(look: Look) -> Iterable[tuple[str, Rows]]:
    """Plugin -> the rows that it was the first to reject; what PreFilter rejects, it rejects on all."""
    by_plugin: dict[str, list[int]] = {}
    for row, plugin in rejecting_plugins(look):
        by_plugin.setdefault(plugin, []).append(row)
    return [(plugin, np.array(rows, np.intp)) for plugin, rows in by_plugin.items()]


def rejecting_plugins(look: Look) -> Iterator[tuple[int, str]]:
    """(row, plugin) of every node that cannot take the pod."""
    failures, outcome = look.survey.failures, look.survey.outcome
    absent = failures.absent.plugin or (outcome.narrowed_by[0] if outcome.narrowed_by else "")
    feasible = np.zeros(look.view.n_rows, np.bool_)
    feasible[look.survey.rows] = True
    for row in look.view.live_rows[~feasible[look.view.live_rows]].tolist():
        yield row, failures.status(row).plugin or absent


def _worth_telling(helpful: Sequence[_Tried]) -> list[_Tried]:
    """Without those which another one beats: the same nodes by less.

    Those for most nodes first; several for the same plugins stay together, the smallest first.
    """
    kept: list[_Tried] = []
    for tried in helpful:
        nodes = tuple(tried.rows.tolist())
        if all(tuple(other.rows.tolist()) != nodes or not _is_like(other, tried) for other in kept):
            kept.append(tried)
    most: dict[frozenset[str], int] = {}
    for tried in kept:
        most[_plugins(tried)] = max(most.get(_plugins(tried), 0), int(tried.rows.size))
    return sorted(kept, key=lambda tried: (-most[_plugins(tried)], sorted(_plugins(tried))))


def _is_like(one: _Tried, other: _Tried) -> bool:
    """Changes to the same plugins: the one that was found first is the smaller one."""
    return _plugins(one) == _plugins(other)


def _plugins(tried: _Tried) -> frozenset[str]:
    return frozenset(change.plugin for change in tried.changes)


def _what_if(tried: _Tried) -> WhatIf:
    names = tuple(sorted((tried.look.view.name(row) for row in tried.rows.tolist()), key=by_number))
    return WhatIf(tuple(c.text for c in tried.changes), tuple(c.plugin for c in tried.changes), names)


def by_number(name: str) -> tuple[str, int, str]:
    """node-2 before node-10."""
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    return head, int(tail) if tail else -1, name
