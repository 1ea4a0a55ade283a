"""Whether two verdicts on one scenario agree, and where not, why that may be.

Law: verdicts that differ agree only where kube-scheduler's rules leave a choice: nodes of equal total, or
preemptions that its ordered criteria rank as equal. Totals and ranks are those of our engine, which recorded
decisions hold to kube-scheduler's; a choice outside them is a difference, whoever is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings
from pilotage.frontends.compare.watching import Verdict
from pilotage.frontends.replay.outcome import Answer, rank_of
from pilotage.frontends.replay.scenarios import Scenario
from pilotage.frontends.replay.world import build_world


class Agreement(Enum):
    SAME = "same"
    EQUAL = "equal by the rules"  # another node or other victims, of the same score or rank
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Judgement:
    scenario: Scenario
    first: Verdict
    second: Verdict
    agreement: Agreement
    reasons: tuple[str, ...] = ()


def judge(
    scenario: Scenario, first: Verdict, second: Verdict, settings: ProfileSettings, registry: Registry
) -> Judgement:
    """Raises DecodeError, RestError or UnknownKindError where the engine cannot read the objects."""
    reasons = list(_differences(first, second))
    if not reasons:
        return Judgement(scenario, first, second, Agreement.SAME)
    if _is_free_choice(scenario, first, second, settings, registry):
        return Judgement(scenario, first, second, Agreement.EQUAL, tuple(reasons))
    return Judgement(scenario, first, second, Agreement.DIFFERENT, tuple(reasons))


def _differences(first: Verdict, second: Verdict) -> list[str]:
    found = []
    if first.node != second.node:
        found.append(f"node: {first.node or 'none'} / {second.node or 'none'}")
    if first.victims != second.victims:
        found.append(f"victims: {_names(first)} / {_names(second)}")
    # A preemptor is bound so soon that its condition and nomination may be missed.
    is_seen = not (first.victims and second.victims)
    if is_seen and first.condition != second.condition:
        found.append(f"condition: {first.condition or 'none'} / {second.condition or 'none'}")
    if is_seen and first.nominated != second.nominated and not (first.node and second.node):
        found.append(f"nominated: {first.nominated or 'none'} / {second.nominated or 'none'}")
    if first.events and second.events and first.events != second.events:
        found.append(f"event: {first.events[0]} / {second.events[0]}")
    return found


def _names(verdict: Verdict) -> str:
    return ", ".join(sorted(verdict.victims)) or "none"


def _is_free_choice(
    scenario: Scenario, first: Verdict, second: Verdict, settings: ProfileSettings, registry: Registry
) -> bool:
    world = build_world(scenario, settings, registry)
    if first.victims and second.victims:
        ranks = [rank_of(world, Answer(verdict.node, verdict.victims)) for verdict in (first, second)]
        return ranks[0] is not None and ranks[0] == ranks[1]
    if first.victims or second.victims or first.condition or second.condition:
        return False
    nodes = {first.node or first.nominated, second.node or second.nominated}
    return nodes <= best_nodes(scenario, settings, registry)


def best_nodes(scenario: Scenario, settings: ProfileSettings, registry: Registry) -> frozenset[str]:
    """The nodes of the highest total; a single feasible one is best without a score."""
    world = build_world(scenario, settings, registry)
    decision = world.decide()
    if decision.scores is None:
        return frozenset({decision.node}) if decision.node else frozenset()
    totals = decision.scores.totals
    best = decision.rows[totals == totals.max()]
    return frozenset(world.cluster.nodes.name(int(row)) for row in best)
