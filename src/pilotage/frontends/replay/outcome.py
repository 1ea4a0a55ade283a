"""A scenario played to its end: the first decision, what preemption removes, and where the pod goes then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.framework.plugin import Preemption
from pilotage.frontends.replay.world import World
from pilotage.plugins.preemption.budgets import Budgets
from pilotage.plugins.preemption.choice import CRITERIA
from pilotage.plugins.preemption.dry_run import Candidate
from pilotage.scheduling.aftermath import after_rejection
from pilotage.scheduling.verdict import Decision
from pilotage.state.importance import by_importance
from pilotage.state.podinfo import PodInfo


@dataclass(frozen=True, slots=True)
class Answer:
    """A node and the names of the pods that go from it."""

    node: str
    victims: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`message`: of the first attempt if it found no node. `bound`: the final node, if any."""

    decision: Decision
    message: str = ""
    nominated: str = ""
    preempted: Answer | None = None
    rank: tuple[float, ...] = ()
    expected_rank: tuple[float, ...] | None = None
    bound: str = ""


def play(world: World, expected: Answer | None) -> Outcome:
    """Decides; carries out what preemption wants, all of it at once, and decides again.

    `expected` is ranked beside what was chosen, by kube-scheduler's criteria, before anything is removed.
    """
    decision = world.decide()
    if decision.is_scheduled:
        return Outcome(decision, bound=decision.node)
    after = after_rejection(world.profile, world.cluster.nodes, world.pod, decision)
    chosen = after.preemption
    if chosen is None:
        return Outcome(decision, after.message, after.nominated or "")
    answer = Answer(chosen.node, frozenset(pod.name for pod in _pods(chosen)))
    rank = rank_of(world, answer)
    assert rank is not None, "victims that are not there"
    expected_rank = None if expected is None else rank_of(world, expected)
    bound = _carried_out(world, chosen)
    return Outcome(decision, after.message, after.nominated or "", answer, rank, expected_rank, bound)


def _pods(preemption: Preemption) -> Iterable[PodInfo]:
    return (pod for unit in preemption.units for pod in unit.pods)


def _carried_out(world: World, preemption: Preemption) -> str:
    """Grace 0: the victims are gone at once. The node of the next decision."""
    cluster = world.cluster
    for victim in _pods(preemption):
        cluster.delete_pod(victim.uid)
    for other in preemption.outranked:
        cluster.nominations.remove(other.uid)
    cluster.nominations.add(world.pod, preemption.node)
    return world.decide().node


def rank_of(world: World, answer: Answer) -> tuple[float, ...] | None:
    """Where the answer stands by the ordered criteria, lower is better; None when it cannot be one."""
    row = world.cluster.nodes.row(answer.node)
    if row is None:
        return None
    lower = [pod for pod in by_importance(world.cluster.nodes.pods(row)) if pod.priority < world.pod.priority]
    is_violating = Budgets(world.cluster).violating(lower)
    victims = [index for index, pod in enumerate(lower) if pod.name in answer.victims]
    if not victims or len(victims) != len(answer.victims):
        return None
    candidate = Candidate(row, tuple(lower[i] for i in victims), int(is_violating[victims].sum()))
    return tuple(criterion(candidate, world.now) for criterion in CRITERIA)
