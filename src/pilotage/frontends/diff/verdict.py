"""One pod's verdict under one configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.profile import Profile
from pilotage.framework.scoring import Scores
from pilotage.frontends.snapshot.objects import SnapshotError
from pilotage.scheduling.aftermath import after_rejection
from pilotage.scheduling.decide import decide_now, survey
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.verdict import Decision
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Rows


def _no_rows() -> Rows:
    return np.zeros(0, np.intp)


@dataclass
class Verdict:
    """`rows`: nodes that can take the pod, ascending; `scores` are aligned with them (None: nothing scored).

    `node`: the one that was taken, `winners`: all that are as good. `message`: why none was found or why the
    pod was not decided. `victims`: who would go from `preempted`.
    """

    rows: Rows = field(default_factory=_no_rows)
    scores: Scores | None = None
    node: str = ""
    winners: tuple[str, ...] = ()
    message: str = ""
    preempted: str = ""
    victims: tuple[str, ...] = ()
    decision: Decision | None = None


def judge(engine: Engine, pod: PodInfo, seed: int) -> Verdict:
    """Decides the pod on the engine's cluster as it is; assumes nothing."""
    profile = engine.profiles.get(pod.pod.spec.scheduler_name)
    if profile is None:
        return Verdict(message=f'not decided: there is no profile "{pod.pod.spec.scheduler_name}"')
    gate = profile.run_pre_enqueue(pod)
    if not gate.is_success:
        return Verdict(message=f"not decided: {gate.message} ({gate.plugin})")
    decision = decide_now(profile, engine.cluster, pod, np.random.default_rng(seed))
    if not decision.is_scheduled:
        return _rejected(engine, profile, pod, decision)
    verdict = Verdict(node=decision.node, winners=(decision.node,), decision=decision)
    _survey(engine, profile, pod, verdict)
    return verdict


def _rejected(engine: Engine, profile: Profile, pod: PodInfo, decision: Decision) -> Verdict:
    after = after_rejection(profile, engine.cluster.nodes, pod, decision)
    if after.preemption is None:
        return Verdict(message=after.message)
    pods = [victim.key for unit in after.preemption.units for victim in unit.pods]
    return Verdict(message=after.message, preempted=after.preemption.node, victims=tuple(sorted(pods)))


def _survey(engine: Engine, profile: Profile, pod: PodInfo, verdict: Verdict) -> None:
    """All nodes that could take it, and their scores, wherever it is nominated."""
    cycle, nodes = CycleState(), engine.cluster.nodes
    try:
        found = survey(profile, engine.cluster, pod, cycle)
        verdict.rows = np.sort(found.rows)
        if found.rows.size < 2:
            return
        profile.run_pre_score(cycle, pod, nodes, verdict.rows)
        verdict.scores = profile.run_scores(cycle, pod, nodes, verdict.rows)
    except PluginFailedError as problem:
        verdict.message = problem.status.message
        return
    assert verdict.decision is not None
    if verdict.decision.scores is not None:
        best = verdict.rows[verdict.scores.totals == verdict.scores.totals.max()]
        verdict.winners = tuple(nodes.name(int(row)) for row in best)


def place(engine: Engine, pod: PodInfo, verdict: Verdict) -> None:
    """Counts the pod on its node, as the scheduler does once it has decided; undone if Reserve refuses."""
    if verdict.decision is None or not verdict.node:
        return
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    known = engine.cluster.pod(pod.uid)
    if known is None:
        raise SnapshotError(f"pod {pod.key} is in the snapshot twice, under two UIDs")
    engine.cluster.assume(known, verdict.node)
    status = profile.run_reserve(verdict.decision.cycle, known, verdict.node)
    if not status.is_success:
        profile.run_unreserve(verdict.decision.cycle, known, verdict.node)
        engine.cluster.forget(pod.uid)
        verdict.node, verdict.winners, verdict.message = "", (), status.message
