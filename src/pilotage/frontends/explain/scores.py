"""The scores of nodes that can take the pod, as a table: best first, weighted, one column per plugin."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from pilotage.frontends.explain.amounts import number_of
from pilotage.frontends.explain.layout import heading, table, wrapped
from pilotage.frontends.explain.model import Candidate, Explanation

_SHOWN: Final = 10
_SHORT: Final = {
    "TaintToleration": "Taints",
    "NodeAffinity": "NodeAff",
    "NodeResourcesFit": "Fit",
    "NodeResourcesBalancedAllocation": "Balanced",
    "PodTopologySpread": "Spread",
    "InterPodAffinity": "PodAff",
    "ImageLocality": "Images",
    "DynamicResources": "Devices",
    "VolumeBinding": "Volumes",
}
_LONGEST = 10


def score_lines(
    explanation: Explanation, columns: int, *, is_complete: bool, nodes: Collection[str] = ()
) -> list[str]:
    """Nothing when no node can take the pod."""
    candidates = [c for c in explanation.candidates if not nodes or c.node in nodes]
    if not candidates:
        return []
    if not candidates[0].scores:
        return [f"{candidate.node} can take it; nothing is scored" for candidate in candidates]
    shown = candidates if is_complete else _first(candidates, explanation.pod.node)
    found = [heading(f"Scores ({number_of(len(explanation.candidates), 'node')} can take it; weighted)")]
    found += _table(shown)
    if len(candidates) > len(shown):
        found.append(f"  {len(candidates) - len(shown):,} more, none of them better (--all)")
    own = explanation.pod.node
    detailed = shown if nodes else [c for i, c in enumerate(shown) if i == 0 or c.node == own]
    return found + _details(detailed, columns)


def _first(candidates: Sequence[Candidate], own: str) -> list[Candidate]:
    """The best ones, and the pod's own node wherever it stands."""
    return [c for rank, c in enumerate(candidates) if rank < _SHOWN or c.node == own]


def _table(candidates: Sequence[Candidate]) -> list[str]:
    plugins = list(candidates[0].scores)
    header = ["NODE", "TOTAL", *(short_name(plugin) for plugin in plugins)]
    rows = [
        [
            f"{candidate.node}{' *' if candidate.is_winner else ''}",
            str(candidate.total),
            *(str(candidate.scores[plugin]) for plugin in plugins),
        ]
        for candidate in candidates
    ]
    return table(header, rows)


def short_name(plugin: str) -> str:
    """A column's heading: the usual word, else as much of the name's last words as fits."""
    if plugin in _SHORT:
        return _SHORT[plugin]
    short = ""
    for word in reversed(re.findall(r"[A-Z]?[^A-Z]*", plugin)):
        if len(word) + len(short) <= _LONGEST:
            short = word + short
    return short or plugin[:_LONGEST]


def _details(candidates: Sequence[Candidate], columns: int) -> list[str]:
    found: list[str] = []
    for candidate in candidates:
        for plugin, text in candidate.details.items():
            found += wrapped(f"{candidate.node}, {plugin}: {text}", "    ", columns, "  ")
    return found
