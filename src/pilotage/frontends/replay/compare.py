"""What differs between a decision and its recording.

Law: every field that the recording has is compared, or its limit is named in the result. Until preemption
is built a rejection's text is compared up to the preemption suffix, and victims and nominations are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pilotage.api.decode import DecodeError
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings
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

_SUFFIX: Final = re.compile(r"(?<=\.) (?:(?:no new claims to deallocate, )?preemption: .*|not found)$", re.S)


class Aspect(Enum):
    """What is compared."""

    FEASIBLE = "feasible nodes"
    SCORE = "score"
    TOTAL = "total"
    WINNER = "winner"
    CONDITION = "condition"
    EVENTS = "events"
    MOVED = "moved"
    LABEL = "label of the event"
    ERROR = "error"


class Limit(Enum):
    """What could not be compared in full."""

    TEXT = "condition and event texts compared up to the preemption suffix"
    PREEMPTION = "victims, nomination and the later binding not compared"
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
    decision = world.decide()
    mismatches = [
        *_feasible(world, decision, expect),
        *_scores(world, decision, expect),
        *_winner(decision, expect),
        *_texts(decision, expect),
    ]
    return Result(scenario, tuple(mismatches), _limits(expect))


def text_head(text: str) -> str:
    """The text without what PostFilter added."""
    return _SUFFIX.sub("", text)


def _limits(expect: Expectation) -> frozenset[Limit]:
    limits = set()
    if any(text_head(text) != text for text in _expected_texts(expect)):
        limits.add(Limit.TEXT)
    if expect.victims or expect.nominated:
        limits.add(Limit.PREEMPTION)
    return frozenset(limits)


def _expected_texts(expect: Expectation) -> list[str]:
    return [*expect.events, *([expect.condition.message] if expect.condition is not None else [])]


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


def _texts(decision: Decision, expect: Expectation) -> Iterator[Mismatch]:
    """The first condition and the event of the first attempt."""
    actual = None if decision.is_scheduled else _condition(decision)
    if expect.condition is not None or not expect.victims:
        wanted = _headed(expect.condition)
        if wanted != actual:
            yield Mismatch(Aspect.CONDITION, _spelled(wanted), _spelled(actual))
    events = [] if actual is None else [note(actual.message)]
    heads = [text_head(text) for text in expect.events]
    if heads != events:
        yield Mismatch(Aspect.EVENTS, heads, events)


def _condition(decision: Decision) -> Condition:
    reason = "Unschedulable" if decision.status.is_rejection else "SchedulerError"
    return Condition("False", reason, text_head(decision.message))


def _headed(condition: Condition | None) -> Condition | None:
    if condition is None:
        return None
    return Condition(condition.status, condition.reason, text_head(condition.message))


def _spelled(condition: Condition | None) -> str:
    if condition is None:
        return "none"
    return f"{condition.status} {condition.reason}: {condition.message}"
