"""Victims for a resize: only on the pod's own node, and only after what leaves that node anyway.

Laws: pods that are terminating (or whose eviction was accepted) are gone before anybody is chosen, so that
neither a long grace period nor a restart makes a second victim; the others are chosen as ever. The pod
itself is not on the view and so is never its own victim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilotage.framework.failures import NodeFailures
from pilotage.framework.plugin import NodeFailures as Rejections
from pilotage.framework.plugin import PostFilterResult, Preemption
from pilotage.framework.status import Code, Status, unschedulable
from pilotage.plugins.preemption.dry_run import NO_VICTIMS, Candidate, DryRun
from pilotage.plugins.preemption.eligibility import NEVER
from pilotage.plugins.preemption.single import Trial, victims_among
from pilotage.state.importance import by_importance
from pilotage.state.podinfo import PodInfo

NOT_NEEDED = "terminating pods make room"
NOT_HELPFUL = "not helpful for the resize"

Preempt = Callable[[Candidate], PostFilterResult]


def preempt_for_resize(
    run: DryRun, rejections: Rejections, is_evicted: Callable[[str], bool], preempt: Preempt
) -> PostFilterResult:
    """Success with nobody to go where terminating pods make enough room. Raises PluginFailedError.

    `is_evicted`: by UID, whether the eviction was accepted; `preempt` makes the answer of a candidate.
    """
    pod = run.pod
    row = run.view.row(pod.node_name)
    if row is None or rejections.code(row) is not Code.UNSCHEDULABLE:
        return _no(NOT_HELPFUL)
    there = by_importance(run.view.pods(row))
    leaving = [other for other in there if other.is_terminating or is_evicted(other.uid)]
    trial = Trial(run, row)
    for other in leaving:
        trial.take(other)
    if leaving and trial.fits(run.scratch()):
        return _room_is_on_its_way(run, row, leaving)
    if pod.pod.spec.preemption_policy == "Never":
        return _no(NEVER)
    gone = {other.uid for other in leaving}
    lower = [other for other in there if other.priority < pod.priority and other.uid not in gone]
    if not lower:
        return _no(NO_VICTIMS)
    failures = NodeFailures(run.view, pod)
    candidate = victims_among(run, trial, lower, failures)
    return _no(failures.status(row).message) if candidate is None else preempt(candidate)


def _room_is_on_its_way(run: DryRun, row: int, leaving: Sequence[PodInfo]) -> PostFilterResult:
    names = ", ".join(other.key for other in leaving)
    status = Status(Code.SUCCESS, (f"preemption: not needed, {NOT_NEEDED}: {names}",))
    return PostFilterResult(status, None, Preemption(run.view.name(row), ()))


def _no(reason: str) -> PostFilterResult:
    return PostFilterResult(unschedulable(f"preemption: {reason}"))
