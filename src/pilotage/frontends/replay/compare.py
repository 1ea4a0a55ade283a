"""What differs between a decision and its recording.

Law: every field that the recording has is compared. Where preemption may choose among equals (nodes, or
pods without a start time), an answer is right when kube-scheduler's ordered criteria rank it as the
recorded one; the pod must then end where its victims were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pilotage.api.decode import DecodeError
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings
from pilotage.frontends.replay.outcome import Answer, Outcome, play
from pilotage.frontends.replay.scenarios import Condition, Expectation, Scenario
from pilotage.frontends.replay.world import (
    UnknownKindError,
    World,
    build_world,
    scores_by_plugin,
    totals,
)
from pilotage.localcluster.rest.errors import RestError
from pilotage.scheduling.texts import note
from pilotage.scheduling.verdict import Decision


class Aspect(Enum):
    """What is compared."""

    FEASIBLE = "feasible nodes"
    SCORE = "score"
    TOTAL = "total"
    WINNER = "winner"
    CONDITION = "condition"
    EVENTS = "events"
    VICTIMS = "victims"
    NOMINATED = "nominated node"
    BOUND = "node after preemption"
    MOVED = "moved"
    LABEL = "label of the event"
    ERROR = "error"


class Limit(Enum):
    """What could not be compared in full."""

    NOT_BUILT = "nothing compared and not counted: the plugin that rejects the pod is not built yet"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference, with the node and the plugin that it is about where there is one."""

    aspect: Aspect
    expected: Any
    actual: Any
    node: str = ""
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    scenario: Scenario
    mismatches: tuple[Mismatch, ...] = ()
    limits: frozenset[Limit] = frozenset()

    @property
    def has_passed(self) -> bool:
        return not self.mismatches

    @property
    def is_compared(self) -> bool:
        return Limit.NOT_BUILT not in self.limits


def replay_scenario(scenario: Scenario, settings: ProfileSettings, registry: Registry) -> Result:
    """Decides a scenario again. Objects that cannot be used are a mismatch, not an exception."""
    expect = scenario.expect
    assert expect is not None, "a hint is no decision"
    try:
        world = build_world(scenario, settings, registry)
    except (DecodeError, RestError, UnknownKindError) as exc:
        return Result(scenario, (Mismatch(Aspect.ERROR, "usable objects", str(exc)),))
    outcome = play(world, _expected_answer(expect))
    decision = outcome.decision
    mismatches = [
        *_feasible(world, decision, expect),
        *_scores(world, decision, expect),
        *_winner(decision, expect),
        *_texts(outcome, expect),
        *_preemption(outcome, expect),
    ]
    return Result(scenario, tuple(mismatches))


def _feasible(world: World, decision: Decision, expect: Expectation) -> Iterator[Mismatch]:
    found = _feasible_names(world, decision)
    for node in sorted(expect.feasible - found):
        why = _why_not(world, decision, node)
        yield Mismatch(Aspect.FEASIBLE, "feasible", why.text, node, why.plugin)
    for node in sorted(found - expect.feasible):
        yield Mismatch(Aspect.FEASIBLE, "rejected", "feasible", node)


def _feasible_names(world: World, decision: Decision) -> frozenset[str]:
    return frozenset(world.cluster.nodes.name(int(row)) for row in decision.rows)


@dataclass(frozen=True, slots=True)
class _Why:
    text: str
    plugin: str = ""


def _why_not(world: World, decision: Decision, node: str) -> _Why:
    row = world.cluster.nodes.row(node)
    if row is None:
        return _Why("not in the cluster")
    if decision.failures is None:
        return _Why(f"rejected: {decision.message or 'for no known reason'}")
    status = decision.failures.status(row)
    return _Why(f"rejected: {status.message or status.code.name}", status.plugin)


def _scores(world: World, decision: Decision, expect: Expectation) -> Iterator[Mismatch]:
    """On nodes that are feasible on both sides; the others are told of already.

    A plugin that is absent and one whose scores are all 0 are the same thing.
    """
    actual = scores_by_plugin(world, decision)
    nodes = sorted(expect.feasible & _feasible_names(world, decision))
    for plugin in sorted({*expect.scores, *actual}):
        for one in _differences(nodes, expect.scores.get(plugin, {}), actual.get(plugin, {})):
            yield Mismatch(Aspect.SCORE, one.expected, one.actual, one.node, plugin)
    for one in _differences(nodes, expect.total, totals(world, decision)):
        yield Mismatch(Aspect.TOTAL, one.expected, one.actual, one.node)


@dataclass(frozen=True, slots=True)
class _Difference:
    node: str
    expected: int
    actual: int


def _differences(
    nodes: Iterable[str], expected: Mapping[str, int], actual: Mapping[str, int]
) -> Iterator[_Difference]:
    for node in nodes:
        one, other = expected.get(node, 0), actual.get(node, 0)
        if one != other:
            yield _Difference(node, one, other)


def _winner(decision: Decision, expect: Expectation) -> Iterator[Mismatch]:
    winners = expect.winners
    if decision.node not in winners and (winners or decision.node):
        wanted = " or ".join(sorted(winners)) or "none"
        yield Mismatch(Aspect.WINNER, wanted, decision.node or "none", decision.node)


def _texts(outcome: Outcome, expect: Expectation) -> Iterator[Mismatch]:
    """The first condition and the event of the first attempt."""
    actual = None if outcome.decision.is_scheduled else _condition(outcome)
    if (expect.condition is not None or not expect.victims) and expect.condition != actual:
        yield Mismatch(Aspect.CONDITION, _spelled(expect.condition), _spelled(actual))
    events = [] if actual is None else [note(actual.message)]
    if expect.events != events:
        yield Mismatch(Aspect.EVENTS, expect.events, events)


def _condition(outcome: Outcome) -> Condition:
    reason = "Unschedulable" if outcome.decision.status.is_rejection else "SchedulerError"
    return Condition("False", reason, outcome.message)


def _spelled(condition: Condition | None) -> str:
    if condition is None:
        return "none"
    return f"{condition.status} {condition.reason}: {condition.message}"


def _expected_answer(expect: Expectation) -> Answer | None:
    """The recorder may have missed the nomination; the pod was bound to that node right after."""
    if not expect.victims:
        return None
    return Answer(expect.nominated or expect.bound or "", frozenset(expect.victims))


def _preemption(outcome: Outcome, expect: Expectation) -> Iterator[Mismatch]:
    """Victims and nomination, and where the pod went once the victims were gone."""
    expected, actual = _expected_answer(expect), outcome.preempted
    if actual != expected and (actual is None or outcome.rank != outcome.expected_rank):
        yield Mismatch(Aspect.VICTIMS, _told(expected), _told(actual))
        return
    nominated = actual.node if actual is not None else expect.nominated or ""
    if outcome.nominated != nominated and not outcome.decision.is_scheduled:
        yield Mismatch(Aspect.NOMINATED, nominated or "none", outcome.nominated or "none")
    if actual is None:
        return
    bound = expect.bound if actual == expected else actual.node
    if outcome.bound != (bound or ""):
        yield Mismatch(Aspect.BOUND, bound or "none", outcome.bound or "none")


def _told(answer: Answer | None) -> str:
    return "none" if answer is None else f"{', '.join(sorted(answer.victims))} on {answer.node}"
