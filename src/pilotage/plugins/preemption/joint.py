"""Victims on many nodes at once, where no filter looks beyond the node itself.

The rules are those of `single`, one vector step per reprieve for all nodes: the k-th pod of every node
comes back, one run of the filters says on which nodes it may stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.framework.failures import NodeFailures
from pilotage.plugins.preemption.dry_run import Candidate, DryRun
from pilotage.state.additions import with_nominated
from pilotage.state.importance import LowerPods
from pilotage.state.removals import RemovalOverlay
from pilotage.state.view import Bool, Rows


def victims_on_all(run: DryRun, rows: Rows) -> Sequence[Candidate]:
    """Candidates among `rows`, in their order. Raises PluginFailedError."""
    lower = _lower_pods(run, rows)
    if not lower.rows.size:
        return ()
    nodes = _Nodes(run, lower)
    left = nodes.passing(np.arange(lower.rows.size), run.failures)
    if not left.size:
        return ()
    is_violating = _violating(run, lower, left)
    nodes.reprieve(left, _order(lower, is_violating))
    return _candidates(lower, left, nodes.is_victim(), is_violating)


def rows_worth_trying(run: DryRun, rows: Rows) -> Rows:
    """Rows that pass those first filters that look at the row alone, once all lower pods are gone."""
    lower = _lower_pods(run, rows)
    if not lower.rows.size:
        return lower.rows
    view = RemovalOverlay(run.view, lower)
    return run.trials.run_trial(run.cycle, run.pod, view, lower.rows, run.failures, leading_only=True)


def _lower_pods(run: DryRun, rows: Rows) -> LowerPods:
    """Of those rows that have some; the others are recorded as having none."""
    has_lower = run.index.has_below(run.view, rows, run.pod.priority)
    run.record_no_victims(rows[~has_lower])
    return run.index.below(run.view, rows[has_lower], run.pod.priority)


class _Nodes:
    """Overlays of all rows; rows are named by their index in `lower`.

    Rows to which other pods are nominated have a second overlay, with those pods on it.
    """

    def __init__(self, run: DryRun, lower: LowerPods) -> None:
        self._run = run
        self._lower = lower
        self._plain = RemovalOverlay(run.view, lower)
        self._beside: RemovalOverlay | None = None
        self._has_beside = np.zeros(lower.rows.size, np.bool_)
        self._nominate()

    def _nominate(self) -> None:
        overlay = with_nominated(self._run.nominations, self._run.view, self._run.pod)
        if overlay is not None:
            self._has_beside = np.isin(self._lower.rows, overlay.rows)
            self._beside = RemovalOverlay(overlay, self._lower) if self._has_beside.any() else None

    def passing(self, which: Rows, failures: NodeFailures) -> Rows:
        """Those of `which` that pass with the nominated pods, where there are any, and without them."""
        if self._beside is not None:
            is_beside = self._has_beside[which]
            passed = self._run_filters(self._beside, which[is_beside], failures)
            which = which[~is_beside | np.isin(which, passed)]
        return self._run_filters(self._plain, which, failures)

    def _run_filters(self, view: RemovalOverlay, which: Rows, failures: NodeFailures) -> Rows:
        run, rows = self._run, self._lower.rows[which]
        passed = run.trials.run_trial(run.cycle, run.pod, view, rows, failures)
        return which if passed.size == rows.size else which[np.isin(rows, passed)]

    def reprieve(self, left: Rows, order: Rows) -> None:
        """Puts back what can stay on the rows `left`; `order`: pods in order of reprieve, row after row."""
        starts, counts, scratch = self._lower.starts[:-1], self._lower.counts, self._run.scratch()
        for turn in range(int(counts[left].max())):
            which = left[counts[left] > turn]
            self._move(order[starts[which] + turn], which, put_back=True)
            stays = self.passing(which, scratch)
            if stays.size < which.size:
                out = which[~np.isin(which, stays)]
                self._move(order[starts[out] + turn], out, put_back=False)

    def _move(self, pods: Rows, which: Rows, *, put_back: bool) -> None:
        rows = self._lower.rows[which]
        for view in (self._plain, self._beside):
            if view is not None:
                (view.put_back if put_back else view.take)(pods, rows)

    def is_victim(self) -> Bool:
        """[pods of `lower`]; holds for the rows that were reprieved."""
        return self._plain.is_taken()


def _violating(run: DryRun, lower: LowerPods, left: Rows) -> Bool:
    """[pods of `lower`] whether a budget forbids it; looked at on the rows `left` only."""
    found = np.zeros(len(lower.pods), np.bool_)
    if run.budgets.is_empty:
        return found
    for index in left.tolist():
        first, after = lower.starts[index : index + 2].tolist()
        found[first:after] = run.budgets.violating(lower.pods[first:after])
    return found


def _order(lower: LowerPods, is_violating: Bool) -> Rows:
    """Indexes of pods row after row: violating ones first, then by importance."""
    every = np.arange(len(lower.pods))
    if not is_violating.any():
        return every
    row_of = np.repeat(np.arange(lower.rows.size), lower.counts)
    return np.lexsort((every, ~is_violating, row_of))


def _candidates(lower: LowerPods, left: Rows, is_victim: Bool, is_violating: Bool) -> Sequence[Candidate]:
    found = np.flatnonzero(is_victim)
    bounds = np.searchsorted(found, lower.starts)
    violations = np.concatenate([[0], np.cumsum(is_violating[found])])
    counts = (violations[bounds[1:]] - violations[bounds[:-1]])[left].tolist()
    pods, victims, edges = lower.pods, found.tolist(), bounds.tolist()
    rows = lower.rows[left].tolist()
    return [
        Candidate(row, tuple([pods[v] for v in victims[edges[index] : edges[index + 1]]]), count)
        for row, index, count in zip(rows, left.tolist(), counts, strict=True)
    ]
