"""Whether a candidate that was found before somebody outside was asked still is one."""

from __future__ import annotations

from dataclasses import replace

from pilotage.framework.guard import PluginFailedError
from pilotage.plugins.preemption.dry_run import Candidate, DryRun
from pilotage.plugins.preemption.single import fits_without


def still_helps(run: DryRun, candidate: Candidate) -> Candidate | None:
    """The candidate with the victims that are still on the node, if the pod fits once they are gone."""
    there = {other.uid for other in run.view.pods(candidate.row)}
    victims = tuple(victim for victim in candidate.victims if victim.uid in there)
    now = replace(run, cycle=run.trials.begin_cycle(run.pod))
    outcome = run.trials.run_pre_filter(now.cycle, run.pod, run.view)
    names, name = outcome.node_names, run.view.name(candidate.row)
    if not outcome.status.is_success or (names is not None and name not in names):
        return None
    try:
        return candidate._replace(victims=victims) if fits_without(now, candidate.row, victims) else None
    except PluginFailedError:
        return None
