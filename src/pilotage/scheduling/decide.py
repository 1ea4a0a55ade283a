"""One pod's decision on live state: PreFilter, Filter, PreScore, Score, and the choice among the best.

Laws:
- Nothing is assumed or written here; state is only read, so a decision may be dropped and taken again.
- The nominated node is looked at first and alone. On a node to which pods of equal or higher priority are
  nominated the filters must pass with them and without them.
- All nodes are looked at unless percentageOfNodesToScore is set below 100.
- Equal totals are settled by the generator that is passed in, uniformly.
- A generator: it stops where somebody outside is asked (`Question`). State may have moved on meanwhile, so
  the nodes are then filtered again, from PreFilter on, and the decision starts over if none is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pilotage.framework.asking import AskFailedError, Asking, Question
from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures, histogram_message
from pilotage.framework.filtering import PreFilterOutcome
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.profile import Profile
from pilotage.framework.scoring import Scores
from pilotage.framework.status import Code, Status, error, unresolvable, unschedulable
from pilotage.framework.trials import entitled
from pilotage.scheduling.askers import Asker, Rater, Screening
from pilotage.scheduling.verdict import NO_NODES, Decision, pre_filter_message
from pilotage.state.additions import with_nominated
from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

MIN_FEASIBLE_NODES = 100  # sampling never looks for fewer
MAX_RESTARTS = 5


Deciding: TypeAlias = Asking[Decision]


class _OvertakenError(Exception):
    """What was found before somebody was asked no longer holds: start over."""


def decide(
    profile: Profile,
    cluster: ClusterState,
    pod: PodInfo,
    cycle: CycleState,
    rng: np.random.Generator,
    *,
    start: int = 0,
    percentage: int = 0,
    askers: Sequence[Asker] = (),
    raters: Sequence[Rater] = (),
) -> Deciding:
    """Decides one pod. `start` and the global `percentage` (0: all nodes) matter only when sampling.

    Never raises what a plugin raises: that is a decision with an error status. The decision's `cycle` is the
    given one unless the decision started over.
    """
    remarks: list[str] = []
    skips_nominated = False
    for _ in range(MAX_RESTARTS):
        attempt = _Attempt(profile, cluster, pod, cycle, rng, start, percentage, askers, raters, remarks)
        attempt.skips_nominated = skips_nominated
        try:
            decision = yield from attempt.run()
        except _OvertakenError:
            cycle, skips_nominated = CycleState(), attempt.skips_nominated
        else:
            decision.remarks = tuple(remarks)
            return decision
    status = error("the chosen node was taken by other pods while somebody outside was asked")
    return Decision(cycle, status, message=status.message, remarks=tuple(remarks))


def decide_now(profile: Profile, cluster: ClusterState, pod: PodInfo, rng: np.random.Generator) -> Decision:
    """Decides one pod with nobody to ask, in one go."""
    deciding = decide(profile, cluster, pod, CycleState(), rng)
    try:
        next(deciding)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision
    raise AssertionError("a decision without askers asked")


class Survey(NamedTuple):
    """`rows`: nodes that can take the pod. `failures` tells why each other node cannot."""

    outcome: PreFilterOutcome
    rows: Rows
    failures: NodeFailures


def survey(
    profile: Profile, cluster: ClusterState, pod: PodInfo, cycle: CycleState, view: NodeView | None = None
) -> Survey:
    """Asks PreFilter and the filters about every node, wherever the pod is nominated; nobody else is asked.

    `view`: a what-if in place of the cluster's nodes. Raises PluginFailedError.
    """
    attempt = _Attempt(profile, cluster, pod, cycle, np.random.default_rng(0), 0, 0, ())
    if view is not None:
        attempt.view, attempt.failures = view, NodeFailures(view, pod)
    outcome = profile.run_pre_filter(cycle, pod, attempt.view)
    if outcome.status.is_success:
        attempt.failures.absent = outcome.absent
        return Survey(outcome, attempt.filter(attempt.searched_rows(outcome)), attempt.failures)
    if not outcome.status.is_rejection:
        raise PluginFailedError(outcome.status)
    attempt.failures.absent = outcome.status
    return Survey(outcome, np.zeros(0, np.intp), attempt.failures)


@dataclass(slots=True)
class _Attempt:
    """One pass over the nodes."""

    profile: Profile
    cluster: ClusterState
    pod: PodInfo
    cycle: CycleState
    rng: np.random.Generator
    start: int
    percentage: int
    askers: Sequence[Asker]
    raters: Sequence[Rater] = ()
    remarks: list[str] = field(default_factory=list)  # for the log
    view: NodeView = field(init=False)
    failures: NodeFailures = field(init=False)
    n_nodes: int = field(init=False)  # when the attempt began
    has_asked: bool = False
    skips_nominated: bool = False
    evaluated: int = 0

    def __post_init__(self) -> None:
        self.view = self.cluster.nodes
        self.failures = NodeFailures(self.view, self.pod)
        self.n_nodes = self.view.n_nodes

    def run(self) -> Deciding:
        if not self.n_nodes:
            status = unresolvable(NO_NODES)
            return Decision(self.cycle, status, message=NO_NODES, clears_nomination=True)
        outcome = self.profile.run_pre_filter(self.cycle, self.pod, self.view)
        for rejection in outcome.rejections:
            self.failures.blame(rejection)
        if not outcome.status.is_success:
            return self._pre_filter_failed(outcome)
        self.failures.absent = outcome.absent
        self.failures.unschedulable_plugins.update(outcome.narrowed_by)
        try:
            return (yield from self._choose(outcome))
        except PluginFailedError as exc:
            return self._failed(exc.status)

    def _choose(self, outcome: PreFilterOutcome) -> Deciding:
        nominated = yield from self._nominated_row(outcome)
        if nominated is not None:
            return self._chosen(nominated, np.array([nominated], np.intp))
        rows = self._search(self.searched_rows(outcome))
        rows = yield from self._screen(rows)
        if not rows.size:
            return self._unschedulable()
        if rows.size == 1:
            return self._chosen(int(rows[0]), rows)
        self.profile.run_pre_score(self.cycle, self.pod, self.view, rows)
        scores = self.profile.run_scores(self.cycle, self.pod, self.view, rows)
        if self.raters:
            rows, scores = yield from self._rated(rows, scores)
        best = np.flatnonzero(scores.totals == scores.totals.max())
        winner = best[self.rng.integers(best.size)] if best.size > 1 else best[0]
        decision = self._chosen(int(rows[winner]), rows)
        decision.scores = scores
        return decision

    # Which nodes

    def searched_rows(self, outcome: PreFilterOutcome, only: Sequence[str] | None = None) -> Rows:
        """Rows that PreFilter left, of `only` these names where given."""
        names = outcome.node_names
        if names is None and only is None:
            return self.view.live_rows
        wanted = sorted(names) if names is not None else list(only or ())
        if only is not None:
            wanted = [name for name in wanted if name in only]
        found = [row for row in map(self.view.row, wanted) if row is not None]
        return np.array(found, np.intp)

    def _search(self, rows: Rows) -> Rows:
        """Filters rows until enough are found, beginning at the start index; all of them as a rule."""
        wanted = self._n_wanted(rows.size)
        if wanted >= rows.size:
            self.evaluated = rows.size
            return self.filter(rows)
        order = np.roll(rows, -(self.start % rows.size))
        found: list[Rows] = []
        n_found = 0
        while n_found < wanted and self.evaluated < order.size:
            batch = order[self.evaluated : self.evaluated + wanted - n_found]
            self.evaluated += batch.size
            found.append(self.filter(batch))
            n_found += found[-1].size
        return np.concatenate(found)

    def _n_wanted(self, n_nodes: int) -> int:
        own = self.profile.settings.percentage_of_nodes_to_score
        percentage = self.percentage if own is None else own
        if percentage <= 0 or percentage >= 100:
            return n_nodes
        return max(n_nodes * percentage // 100, MIN_FEASIBLE_NODES)

    def _nominated_row(self, outcome: PreFilterOutcome) -> Asking[int | None]:
        """The row of the node that the pod is nominated to, if it passes; why it fails is not recorded."""
        nominations = self.cluster.nominations
        name = nominations.node_of(self.pod.uid) or self.pod.pod.status.nominated_node_name
        rows = self.searched_rows(outcome, [name]) if name and not self.skips_nominated else ()
        if not len(rows):
            return None
        recorded, self.failures = self.failures, NodeFailures(self.view, self.pod)
        try:
            left = yield from self._screen(self.filter(np.asarray(rows)))
        except (PluginFailedError, _OvertakenError):
            left = np.zeros(0, np.intp)
        finally:
            self.failures = recorded
        if not left.size and self.has_asked:  # time has passed: look at all nodes as they are now
            self.skips_nominated = True
            raise _OvertakenError
        return int(left[0]) if left.size else None

    # Filtering

    def filter(self, rows: Rows) -> Rows:
        """Rows that pass, nominated pods considered. Raises PluginFailedError."""
        rows = self._with_nominated(rows) if len(self.cluster.nominations) else rows
        return self.profile.run_filters(self.cycle, self.pod, self.view, rows, self.failures)

    def _with_nominated(self, rows: Rows) -> Rows:
        """Drops rows that fail once the pods nominated to them are there."""
        if rows.size > 1 and self.profile.is_row_bound(self.cycle):
            return self._all_beside(rows)
        nominations, view = self.cluster.nominations, self.view
        names = nominations.nodes() if rows.size > 1 else map(view.name, rows.tolist())
        out = []
        for name in names:
            row = view.row(name)
            others = entitled(nominations, name, self.pod) if row is not None else ()
            if row is not None and others and row in rows and not self._passes_beside(row, others):
                out.append(row)
        return rows[~np.isin(rows, out)] if out else rows

    def _all_beside(self, rows: Rows) -> Rows:
        """No filter looks beyond the row itself: one run tells for all rows."""
        overlay = with_nominated(self.cluster.nominations, self.view, self.pod)
        beside = rows[np.isin(rows, overlay.rows)] if overlay is not None else rows[:0]
        if overlay is None or not beside.size:
            return rows
        passed = self.profile.run_trial(self.cycle, self.pod, overlay, beside, self.failures)
        return rows if passed.size == beside.size else rows[~np.isin(rows, beside) | np.isin(rows, passed)]

    def _passes_beside(self, row: int, others: Sequence[PodInfo]) -> bool:
        overlay = NodeOverlay(self.view)
        cycle = self.cycle.clone()
        for other in others:
            overlay.add_pod(row, other)
            status = self.profile.run_add_pod(cycle, self.pod, other, row, overlay)
            if not status.is_success:
                raise PluginFailedError(status)
        only = np.array([row], np.intp)
        return bool(self.profile.run_trial(cycle, self.pod, overlay, only, self.failures).size)

    # Asking

    def _screen(self, rows: Rows) -> Asking[Rows]:
        """Rows that every asker leaves. Raises _OvertakenError when none of them can be had any more."""
        asked = False
        for asker in self.askers:
            names = [self.view.name(int(row)) for row in rows]
            request = asker.request(self.pod, names) if names else None
            if request is not None:
                asked = True
                screening = yield from self._ask(asker, request, names)
                rows = self._screened(asker, screening, rows, names)
        return self._fresh(rows) if asked and rows.size else rows

    def _ask(self, asker: Asker, request: Any, names: Sequence[str]) -> Asking[Screening]:
        self.has_asked = True
        try:
            response = yield Question(request, asker.timeout)
            return asker.screen(response, names)
        except (AskFailedError, ValueError) as exc:
            text = f"{asker.label}: {exc}"
            if asker.is_ignorable:
                self.remarks.append(f"{text} (ignored)")
                return Screening()
            raise PluginFailedError(error(text).by(asker.name)) from exc

    def _rated(self, rows: Rows, scores: Scores) -> Asking[tuple[Rows, Scores]]:
        """Scores with what the raters add, and the rows that still can be had."""
        names = [self.view.name(int(row)) for row in rows]
        asked = False
        for rater in self.raters:
            request = rater.request(self.pod, names)
            if request is not None:
                asked = True
                ratings = yield from self._ask_rater(rater, request)
                added = np.array([ratings.get(name, 0) for name in names], np.int64)
                scores.by_plugin[rater.label] = added
                scores.totals = scores.totals + added
        if not asked:
            return rows, scores
        there = [row for name, row in zip(names, rows, strict=True) if self.view.row(name) == row]
        fresh = self._fresh(np.array(there, np.intp))
        kept = np.isin(rows, fresh)
        by_plugin = {name: values[kept] for name, values in scores.by_plugin.items()}
        return rows[kept], Scores(scores.totals[kept], by_plugin)

    def _ask_rater(self, rater: Rater, request: Any) -> Asking[Mapping[str, int]]:
        self.has_asked = True
        try:
            response = yield Question(request, rater.timeout)
            return rater.rate(response)
        except (AskFailedError, ValueError) as exc:
            self.remarks.append(f"{rater.label}: {exc} (ignored)")
            return {}

    def _fresh(self, rows: Rows) -> Rows:
        """Those of `rows` that can take the pod as things are now. Raises _OvertakenError when none can."""
        names = [self.view.name(int(row)) for row in rows]
        self.cycle = CycleState()
        outcome = self.profile.run_pre_filter(self.cycle, self.pod, self.view)
        recorded, self.failures = self.failures, NodeFailures(self.view, self.pod)
        try:
            found = self.searched_rows(outcome, names) if outcome.status.is_success else rows[:0]
            left = self.filter(found) if found.size else found
        finally:
            self.failures = recorded
        if not left.size:
            raise _OvertakenError
        return rows[np.isin(rows, left)]

    def _screened(self, asker: Asker, screening: Screening, rows: Rows, names: Sequence[str]) -> Rows:
        keep = np.array([self.view.row(n) == r for n, r in zip(names, rows, strict=True)], np.bool_)
        for index, name in enumerate(names):
            if not keep[index]:  # the node went away while we waited
                continue
            if name in screening.unresolvable:
                status = unresolvable(screening.unresolvable[name])
            elif name in screening.failed:
                status = unschedulable(screening.failed[name])
            else:
                continue
            keep[index] = False
            self.failures.record(int(rows[index]), status.by(asker.name))
        return rows[keep]

    # Verdicts

    def _chosen(self, row: int, rows: Rows) -> Decision:
        return Decision(self.cycle, node=self.view.name(row), row=row, rows=rows, evaluated=self.evaluated)

    def _failed(self, status: Status) -> Decision:
        return Decision(self.cycle, status, message=status.message, evaluated=self.evaluated)

    def _pre_filter_failed(self, outcome: PreFilterOutcome) -> Decision:
        if not outcome.status.is_rejection:
            return self._failed(outcome.status)
        self.failures.absent = outcome.status
        self.failures.unschedulable_plugins.update(outcome.narrowed_by)
        message = pre_filter_message(self.n_nodes, outcome.status)
        return self._rejected(outcome.status, message)

    def _unschedulable(self) -> Decision:
        message = histogram_message(self.n_nodes, self.failures)
        return self._rejected(Status(Code.UNSCHEDULABLE, (message,)), message)

    def _rejected(self, status: Status, message: str) -> Decision:
        return Decision(
            self.cycle,
            status,
            failures=self.failures,
            message=message,
            unschedulable_plugins=frozenset(self.failures.unschedulable_plugins),
            pending_plugins=frozenset(self.failures.pending_plugins),
            evaluated=self.evaluated,
        )
