"""DefaultPreemption: names the pods of lower priority that must go so that a pod fits.

Runs when no node can take the pod, or when its own node has no room for its resize. Laws: the answer is a
node and whole victims, found on overlays; nothing is changed here, the engine carries it out. A pod that
finds no node loses its nomination; one that may not preempt keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.asking import AskFailedError, Asking, VictimAsker, Victims
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.failures import NodeFailures, histogram_message
from pilotage.framework.gates import RESIZE_PREEMPTION
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.plugin import Handle, Plugin, PostFilterResult, Preemption, VictimUnit
from pilotage.framework.plugin import NodeFailures as Rejections
from pilotage.framework.status import SUCCESS, Code, error, unresolvable, unschedulable
from pilotage.framework.trials import Trials
from pilotage.plugins.preemption.budgets import Budgets
from pilotage.plugins.preemption.choice import best_candidate
from pilotage.plugins.preemption.dry_run import Candidate, DryRun
from pilotage.plugins.preemption.eligibility import why_not_eligible
from pilotage.plugins.preemption.recheck import still_helps
from pilotage.plugins.preemption.resize import preempt_for_resize
from pilotage.plugins.preemption.search import find_candidates
from pilotage.state.cluster import ClusterState
from pilotage.state.importance import ImportanceIndex
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

NO_CANDIDATE = "no candidate node for preemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many candidates are looked for: the larger of both, at most all nodes that may help."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DefaultPreemption(Plugin):
    args_type = DefaultPreemptionArgs
    takes_part_in_resizes = True

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(read_args(DefaultPreemptionArgs, args), handle)
        self._index = ImportanceIndex()
        self._trials: Trials | None = None
        self._budgets: Budgets | None = None
        self._victim_askers: Sequence[VictimAsker] = ()

    def use_trials(self, trials: Trials) -> None:
        self._trials = trials

    def use_victim_askers(self, askers: Sequence[VictimAsker]) -> None:
        self._victim_askers = askers

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, failures: Rejections
    ) -> PostFilterResult | Asking[PostFilterResult]:
        if pod.is_bound:
            return self._for_resize(cycle, pod, view, failures)
        reason = why_not_eligible(self._cluster, pod, view, failures)
        if reason:
            return PostFilterResult(unschedulable(f"preemption: {reason}"))
        run = self._dry_run(cycle, pod, view)
        try:
            candidates = find_candidates(run, *self._nodes_to_try(failures))
        except PluginFailedError as exc:
            return PostFilterResult(error(f"preemption: {exc.status.message}"), "")
        if not candidates:
            text = histogram_message(view.n_nodes, run.failures)
            return PostFilterResult(unschedulable(f"preemption: {text}"), "")
        if self._victim_askers:
            return self._asking(run, candidates)
        return self._preempt(pod, view, self._best(candidates))

    def _for_resize(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, failures: Rejections
    ) -> PostFilterResult:
        """The pod is on its node already, and is nominated to none."""
        run = self._dry_run(cycle, pod, view)

        def preempt(candidate: Candidate) -> PostFilterResult:
            return replace(self._preempt(pod, view, candidate), nominated_node=None)

        try:
            return preempt_for_resize(run, failures, self._cluster.evicted.__contains__, preempt)
        except PluginFailedError as exc:
            return PostFilterResult(error(f"preemption: {exc.status.message}"))

    def _asking(self, run: DryRun, candidates: Sequence[Candidate]) -> Asking[PostFilterResult]:
        """Others outside narrow the victims; what is left is chosen from as things are by then."""
        view = run.view
        offered: Mapping[str, Victims] = {
            view.name(one.row): Victims(one.victims, one.violations) for one in candidates
        }
        try:
            for asker in self._victim_askers:
                if offered:
                    offered = yield from asker.narrow(run.pod, offered, lambda name: _pods_on(view, name))
        except AskFailedError as exc:
            return PostFilterResult(error(f"preemption: {exc}"))
        rows = {name: view.row(name) for name in offered}
        left = [Candidate(row, *offered[name]) for name, row in rows.items() if row is not None]
        while left:
            best = self._best(left)
            left.remove(best)
            helpful = still_helps(run, best)
            if helpful is not None:
                return self._preempt(run.pod, view, helpful)
        return PostFilterResult(unschedulable(f"preemption: {NO_CANDIDATE}"))

    def _dry_run(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> DryRun:
        assert self._trials is not None, "the plugin serves in no profile"
        if self._budgets is None:
            self._budgets = Budgets(self._cluster)
        reasons = NodeFailures(view, pod)
        reasons.absent = unresolvable(NOT_HELPFUL)
        nominations = self._cluster.nominations
        return DryRun(self._trials, cycle, pod, view, nominations, self._budgets, self._index, reasons)

    def _nodes_to_try(self, failures: Rejections) -> tuple[Rows, int]:
        """In order, from a random one on; and how many candidates are wanted."""
        rows = failures.rows_with(Code.UNSCHEDULABLE)
        if not rows.size:
            return rows, 0
        share = rows.size * self.args.min_candidate_nodes_percentage // 100
        wanted = min(max(share, self.args.min_candidate_nodes_absolute), rows.size)
        return np.roll(rows, -int(self.handle.random.integers(rows.size))), wanted

    def _best(self, candidates: Sequence[Candidate]) -> Candidate:
        spares = self.handle.gates.get(RESIZE_PREEMPTION, True)
        return best_candidate(candidates, self.handle.now(), spares_resizes=spares)

    def _preempt(self, pod: PodInfo, view: NodeView, chosen: Candidate) -> PostFilterResult:
        node = view.name(chosen.row)
        units = tuple(VictimUnit((victim,)) for victim in chosen.victims)
        nominated = self._cluster.nominations.on_node(node)
        outranked = tuple(other for other in nominated if other.priority < pod.priority)
        return PostFilterResult(SUCCESS, node, Preemption(node, units, outranked))

    @property
    def _cluster(self) -> ClusterState:
        cluster = self.handle.cluster
        assert isinstance(cluster, ClusterState)
        return cluster

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Wakes nobody: the end of a preemption does. A plugin that registers nothing is woken by all."""
        return (EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _never),)


def _pods_on(view: NodeView, name: str) -> Sequence[PodInfo]:
    row = view.row(name)
    return () if row is None else view.pods(row)


def _never(_pod: PodInfo, _old: object | None, _new: object | None) -> Hint:
    return Hint.SKIP
