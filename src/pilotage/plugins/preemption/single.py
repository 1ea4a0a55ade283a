"""Victims on one node, by the profile's filters and their AddPod and RemovePod: right for every plugin.

All pods of lower priority go; if the pod fits then, they come back one by one, those first whose loss a
budget does not allow, then the more important ones; who cannot come back is a victim.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.trials import entitled, passes, succeed
from pilotage.plugins.preemption.dry_run import Candidate, DryRun
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo


def victims_on(run: DryRun, row: int) -> Candidate | None:
    """None where the pod would not fit; `run.failures` tells why. Raises PluginFailedError."""
    only = np.array([row], np.intp)
    lower = run.index.below(run.view, only, run.pod.priority).pods
    if not lower:
        run.record_no_victims(only)
        return None
    return victims_among(run, Trial(run, row), lower, run.failures)


def victims_among(
    run: DryRun, trial: Trial, lower: Sequence[PodInfo], failures: NodeFailures
) -> Candidate | None:
    """As `victims_on`, with those of `lower` who may go, in order of importance, and all still there."""
    for info in lower:
        trial.take(info)
    if not trial.fits(failures):
        return None
    is_violating = run.budgets.violating(lower)
    victims = _not_reprieved(run, trial, lower, is_violating.tolist())
    is_victim = np.array([info.uid in victims for info in lower], np.bool_)
    kept = tuple(info for info in lower if info.uid in victims)
    return Candidate(trial.row, kept, int((is_victim & is_violating).sum()))


def _not_reprieved(
    run: DryRun, trial: Trial, lower: Sequence[PodInfo], is_violating: Sequence[bool]
) -> set[str]:
    """UIDs of the pods that cannot come back."""
    scratch, victims = run.scratch(), set()
    first = [info for info, flag in zip(lower, is_violating, strict=True) if flag]
    then = [info for info, flag in zip(lower, is_violating, strict=True) if not flag]
    for info in (*first, *then):
        trial.put_back(info)
        if not trial.fits(scratch):
            trial.take(info)
            victims.add(info.uid)
    return victims


def fits_without(run: DryRun, row: int, victims: Sequence[PodInfo]) -> bool:
    """Whether the pod fits once these are gone. Raises PluginFailedError."""
    trial = Trial(run, row)
    for info in victims:
        trial.take(info)
    return trial.fits(run.scratch())


class Trial:
    """One row of an overlay, with the cycle state that belongs to it."""

    def __init__(self, run: DryRun, row: int) -> None:
        self.row = row
        self._run = run
        self._overlay = NodeOverlay(run.view)
        self._cycle: CycleState = run.cycle.clone()
        self._beside = entitled(run.nominations, run.view.name(row), run.pod)

    def take(self, info: PodInfo) -> None:
        self._overlay.remove_pod(self.row, info.uid)
        run = self._run
        succeed(run.trials.run_remove_pod(self._cycle, run.pod, info, self.row, self._overlay))

    def put_back(self, info: PodInfo) -> None:
        self._overlay.add_pod(self.row, info)
        run = self._run
        succeed(run.trials.run_add_pod(self._cycle, run.pod, info, self.row, self._overlay))

    def fits(self, failures: NodeFailures) -> bool:
        run = self._run
        return passes(run.trials, self._cycle, run.pod, self._overlay, self.row, self._beside, failures)
