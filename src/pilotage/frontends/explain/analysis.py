"""One pod explained: the decision, every node's reason or score, and what would have to change."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

import numpy as np

from pilotage.framework.failures import NodeFailures
from pilotage.framework.filtering import Bound, run_filters
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.profile import Profile
from pilotage.framework.scoring import Scores
from pilotage.framework.status import Code, Status
from pilotage.frontends.explain.custom import own_words
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import (
    Candidate,
    Detail,
    Explanation,
    PodState,
    Preemption,
    Rejection,
    Victim,
)
from pilotage.frontends.explain.plugins import EXPLANATIONS
from pilotage.frontends.explain.scenario import Scenario
from pilotage.frontends.explain.wakers import wakers
from pilotage.frontends.explain.whatif import Search, by_number, rejecting_plugins
from pilotage.scheduling.aftermath import Aftermath, after_rejection
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.verdict import Decision
from pilotage.state.podinfo import PodInfo

_DETAILED = 20  # candidates whose scores are explained


class UnknownProfileError(ValueError):
    """The pod's schedulerName is no profile of the configuration; the text names those that are."""


def explain(
    engine: Engine,
    pod: PodInfo,
    state: PodState,
    notes: Sequence[str] = (),
    closely: Container[str] = (),
) -> Explanation:
    """The pod as `engine` would decide it now. Nothing is assumed or written.

    `closely`: nodes of which everything that keeps the pod off is told, not only what comes first.

    Raises UnknownProfileError.
    """
    profile = profile_of(engine, pod)
    cluster = engine.cluster
    decision = decide_now(profile, cluster, pod, np.random.default_rng(0))
    after = after_rejection(profile, cluster.nodes, pod, decision)
    gate = profile.run_pre_enqueue(pod)
    search = Search(profile, cluster)
    look = search.look(Scenario(pod))
    candidates = _candidates(look, decision) if look is not None else []
    is_stuck = look is not None and not decision.is_scheduled
    return Explanation(
        pod=state,
        n_nodes=cluster.nodes.n_nodes,
        gate=gate,
        node=decision.node,
        winners=tuple(c.node for c in candidates if c.is_winner),
        is_nominated=decision.is_scheduled and decision.rows.size < len(candidates),
        is_error=not (decision.is_scheduled or decision.status.is_rejection),
        message=after.message,
        rejections=_rejections(look, closely) if look is not None else (),
        candidates=candidates,
        what_ifs=search.what_ifs(look) if look is not None and is_stuck else (),
        preemption=_preemption(after),
        wakers=wakers(profile, _waits_on(gate, decision)),
        notes=notes,
    )


def profile_of(engine: Engine, pod: PodInfo) -> Profile:
    """Raises UnknownProfileError."""
    name = pod.pod.spec.scheduler_name
    profile = engine.profiles.get(name)
    if profile is None:
        known = ", ".join(sorted(engine.profiles))
        raise UnknownProfileError(
            f'pod {pod.key} is scheduled by "{name}", no profile of this configuration (it has {known})'
        )
    return profile


def _waits_on(gate: Status, decision: Decision) -> Iterable[str]:
    if not gate.is_success:
        return (gate.plugin,)
    return decision.unschedulable_plugins | decision.pending_plugins


def _preemption(after: Aftermath) -> Preemption | None:
    if after.preemption is None:
        return None
    pods = [pod for unit in after.preemption.units for pod in unit.pods]
    return Preemption(
        after.preemption.node, tuple(Victim(pod.namespace, pod.name, pod.priority) for pod in pods)
    )


# Nodes that cannot take it


def _rejections(look: Look, closely: Container[str]) -> list[Rejection]:
    failures, found = look.survey.failures, []
    for row, plugin in rejecting_plugins(look):
        rejection = _rejection(look, row, plugin, failures.status(row))
        if rejection.node in closely:
            rejection = replace(rejection, others=_obstacles(look, row, plugin))
        found.append(rejection)
    return sorted(found, key=lambda rejection: by_number(rejection.node))


def _rejection(look: Look, row: int, plugin: str, status: Status) -> Rejection:
    detail = detail_of(look, row, plugin, status)
    is_curable = status.code is Code.UNSCHEDULABLE
    return Rejection(look.view.name(row), plugin, status.reasons, is_curable, detail)


def detail_of(look: Look, row: int, plugin: str, status: Status) -> Detail:
    """The numbers, from the plugin's own `explain` or from ours; and who is nominated there."""
    own = own_words(look, plugin, row)
    known = EXPLANATIONS.get(plugin)
    detail = Detail(own) if own else known.detail(look, row, status) if known is not None else Detail()
    beside = look.place(row).beside
    if not beside:
        return detail
    names = ", ".join(pod.key for pod in beside)
    text = f"{detail.text} (with the pods nominated to it: {names})"
    return Detail(text.strip(), detail.group, {**detail.numbers, "nominated": [pod.key for pod in beside]})


# Nodes that can


def _candidates(look: Look, decision: Decision) -> list[Candidate]:
    """Best first; nothing is scored where only one node is left."""
    rows = look.survey.rows
    if rows.size < 2:
        return [Candidate(look.view.name(row), {}, 0, True) for row in rows.tolist()]
    scores = _scores(look)
    if scores is None:
        return [Candidate(look.view.name(row), {}, 0, False) for row in rows.tolist()]
    best, chosen = int(scores.totals.max()), decision.row
    is_nominated = decision.is_scheduled and decision.rows.size < rows.size
    order = np.argsort(-scores.totals, kind="stable").tolist()
    found = []
    for rank, index in enumerate(order):
        row, total = int(rows[index]), int(scores.totals[index])
        parts = {plugin: int(values[index]) for plugin, values in scores.by_plugin.items()}
        is_winner = row == chosen if is_nominated else total == best
        details = _score_details(look, row, parts) if rank < _DETAILED else {}
        found.append(Candidate(look.view.name(row), parts, total, is_winner, details))
    return found


def _scores(look: Look) -> Scores | None:
    rows = look.survey.rows
    try:
        look.profile.run_pre_score(look.cycle, look.pod, look.view, rows)
        return look.profile.run_scores(look.cycle, look.pod, look.view, rows)
    except PluginFailedError:
        return None


def _score_details(look: Look, row: int, parts: Iterable[str]) -> dict[str, str]:
    texts = {plugin: EXPLANATIONS[plugin].score(look, row) for plugin in parts if plugin in EXPLANATIONS}
    return {plugin: text for plugin, text in texts.items() if text}


# Single nodes


def _obstacles(look: Look, row: int, first: str) -> tuple[Rejection, ...]:
    """What else keeps the pod off the node: each filter asked by itself."""
    if not look.survey.outcome.status.is_success:
        return ()
    bounds = [
        b for b in look.profile.at("filter") if b.name != first and b.name not in look.cycle.skip_filter
    ]
    found = [(bound.name, _verdict(look, bound, row)) for bound in bounds]
    return tuple(_rejection(look, row, name, status) for name, status in found if status.is_rejection)


def _verdict(look: Look, bound: Bound, row: int) -> Status:
    place = look.place(row)
    failures = NodeFailures(place.view, look.pod)
    try:
        run_filters([bound], place.cycle, look.pod, place.view, np.array([row], np.intp), failures)
    except PluginFailedError as problem:
        return problem.status
    return failures.status(row)
