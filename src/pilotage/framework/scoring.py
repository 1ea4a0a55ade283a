"""PreScore, Score, NormalizeScore and weights.

Law: after normalising every score is in 0..100; anything else is an error of the plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.filtering import Bound
from pilotage.framework.guard import PluginFailedError, checked, failed, guarded, guarded_status, shown
from pilotage.framework.noderef import RowRef
from pilotage.framework.plugin import MAX_NODE_SCORE
from pilotage.framework.rowcache import Answers
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, NodeView, Rows


@dataclass(slots=True)
class Scores:
    """Aligned with the feasible rows: weighted scores by plugin (those that scored), and their sum."""

    totals: Int64
    by_plugin: dict[str, Int64] = field(default_factory=dict)


def run_pre_scores(
    plugins: Sequence[Bound], cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows
) -> None:
    """Raises PluginFailedError."""
    for bound in plugins:
        status = guarded_status(bound.name, "PreScore", bound.plugin.pre_score, cycle, pod, view, rows)
        if status.is_skip:
            cycle.skip_score.add(bound.name)
        elif not status.is_success:
            raise PluginFailedError(failed(bound.name, "PreScore", status.message))


def run_scores(
    plugins: Sequence[Bound],
    cycle: CycleState,
    pod: PodInfo,
    view: NodeView,
    rows: Rows,
    kept: Answers | None = None,
) -> Scores:
    """Raises PluginFailedError. `kept`: raw scores of row-bound plugins, used and brought up to date."""
    scores = Scores(np.zeros(rows.size, np.int64))
    for bound in plugins:
        if bound.name not in cycle.skip_score:
            scores_of = _scored(bound, cycle, pod, view, rows, kept)
            weighted = scores_of * bound.weight if bound.weight != 1 else scores_of
            scores.by_plugin[bound.name] = weighted
            scores.totals += weighted
    return scores


def _scored(
    bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows, kept: Answers | None
) -> Int64:
    plugin = bound.plugin

    def ask(some: Rows) -> Int64:
        return _score_rows(bound, cycle, pod, view, some)

    if not hasattr(plugin, "score_nodes"):
        raw = _score_each(bound, cycle, pod, view, rows)
    elif kept is not None and bound.is_row_bound:
        raw = kept.raw_scores(bound.name).of(view, rows, ask)
    else:
        raw = ask(rows)
    if hasattr(plugin, "normalize"):
        normal = guarded(bound.name, "NormalizeScore", plugin.normalize, cycle, pod, raw, rows)
        raw = _whole(bound.name, normal, rows)
    _check_range(bound.name, raw, view, rows)
    return raw


def _score_rows(bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
    answer = guarded(bound.name, "Score", bound.plugin.score_nodes, cycle, pod, view, rows)
    return _whole(bound.name, answer, rows)


def _whole(name: str, scores: object, rows: Rows) -> Int64:
    array: Int64 = checked(name, "Score", scores, np.ndarray)
    if array.dtype.kind not in "iub" or array.dtype == np.uint64:
        raise PluginFailedError(failed(name, "Score", f"scores are {array.dtype}, not int64"))
    if array.shape != rows.shape:
        n_scores = array.shape[0] if array.ndim == 1 else f"{array.ndim}-dimensional"
        raise PluginFailedError(failed(name, "Score", f"{n_scores} scores for {rows.size} nodes"))
    return array.astype(np.int64, copy=False)


def _score_each(bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
    scores = np.empty(rows.size, np.int64)
    for index, row in enumerate(rows.tolist()):
        score = guarded(bound.name, "Score", bound.plugin.score, cycle, pod, RowRef(view, row))
        if not isinstance(score, int | np.integer):
            detail = f"score of node {view.name(row)} is {shown(score)}, not a whole number"
            raise PluginFailedError(failed(bound.name, "Score", detail))
        scores[index] = max(-(2**63), min(int(score), 2**63 - 1))
    return scores


def _check_range(name: str, scores: Int64, view: NodeView, rows: Rows) -> None:
    if scores.size and scores.view(np.uint64).max() > MAX_NODE_SCORE:  # negative ones are huge there
        worst = int(np.flatnonzero((scores < 0) | (scores > MAX_NODE_SCORE))[0])
        detail = f"score {scores[worst]} of node {view.name(int(rows[worst]))} is not in 0..{MAX_NODE_SCORE}"
        raise PluginFailedError(failed(name, "Score", detail))
