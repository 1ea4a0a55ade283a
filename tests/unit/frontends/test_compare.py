"""`pilotage compare`: what counts as a difference, and variations that any API server would take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotage.frontends.compare.judging import Agreement, Judgement, best_nodes, judge
from pilotage.frontends.compare.text import as_json, difference_block, summary_lines
from pilotage.frontends.compare.varying import vary
from pilotage.frontends.compare.watching import Verdict
from pilotage.frontends.replay.scenarios import Scenario, read_scenarios
from pilotage.frontends.replay.world import build_world
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings

RECORDED = Path(__file__).parents[2] / "conformance" / "data" / "decisions.jsonl.gz"
SCENARIOS = read_scenarios(RECORDED)
REGISTRY = default_registry()
SETTINGS = default_settings().profiles[0]
NAMES = ("a", "b")


def judged(scenario: Scenario, first: Verdict, second: Verdict) -> Judgement:
    return judge(scenario, first, second, SETTINGS, REGISTRY)


def with_several_best() -> tuple[Scenario, list[str], str]:
    """A scenario, its best nodes (two or more), and a feasible node that is not best."""
    for scenario in SCENARIOS:
        expect = scenario.expect
        assert expect is not None
        if expect.best and len(expect.best) > 1 and set(expect.total) - set(expect.best):
            return scenario, sorted(expect.best), min(set(expect.total) - set(expect.best))
    raise AssertionError("no scenario with equal nodes")


def test_the_same_verdicts_agree() -> None:
    verdict = Verdict("n1")
    assert judged(SCENARIOS[0], verdict, verdict).agreement is Agreement.SAME


def test_nodes_of_equal_total_are_a_free_choice() -> None:
    scenario, best, other = with_several_best()
    assert best_nodes(scenario, SETTINGS, REGISTRY) == set(best)
    assert judged(scenario, Verdict(best[0]), Verdict(best[1])).agreement is Agreement.EQUAL
    assert judged(scenario, Verdict(best[0]), Verdict(other)).agreement is Agreement.DIFFERENT


def test_a_node_and_none_differ_and_are_told_in_full() -> None:
    scenario, best, _ = with_several_best()
    refusal = Verdict(condition=("Unschedulable", "0/3 nodes are available"), events=("0/3 nodes",))
    judgement = judged(scenario, Verdict(best[0]), refusal)
    assert judgement.agreement is Agreement.DIFFERENT
    block = difference_block(judgement, NAMES)
    assert f"node: {best[0]} / none" in block
    assert "condition: Unschedulable: 0/3 nodes are available" in block
    assert summary_lines([judgement])[-1] == ("1 scenarios: 0 same, 0 equal by the rules, 1 different")
    (row,) = as_json([judgement], NAMES)["scenarios"]
    assert row["agreement"] == "different"
    assert row["verdicts"][1]["condition"] == ["Unschedulable", "0/3 nodes are available"]


@pytest.mark.parametrize(
    "change",
    [
        {"condition": ("Unschedulable", "another text")},
        {"condition": ("SchedulerError", "text")},
        {"nominated": "n9"},
        {"events": ("another event",)},
    ],
)
def test_every_part_of_a_refusal_counts(change: dict[str, object]) -> None:
    refusal = Verdict(condition=("Unschedulable", "text"), events=("event",))
    other = replace(refusal, **change)  # type: ignore[arg-type]
    assert judged(SCENARIOS[0], refusal, other).agreement is Agreement.DIFFERENT


def test_victims_of_another_rank_differ() -> None:
    scenario = next(one for one in SCENARIOS if one.expect is not None and one.expect.victims)
    assert scenario.expect is not None
    node, victims = scenario.expect.bound or "", frozenset(scenario.expect.victims)
    recorded = Verdict(node, victims=victims)
    assert judged(scenario, recorded, Verdict(node)).agreement is Agreement.DIFFERENT
    nobody = Verdict(node, victims=frozenset({"nobody"}))
    assert judged(scenario, recorded, nobody).agreement is Agreement.DIFFERENT


def test_variations_are_repeatable_different_and_readable() -> None:
    for scenario in SCENARIOS[::5]:
        one, again, other = vary(scenario, 1, 7), vary(scenario, 1, 7), vary(scenario, 2, 7)
        assert (one.objects, one.pod) == (again.objects, again.pod)
        assert one.name != other.name
        build_world(one, SETTINGS, REGISTRY).decide()
    changed = [vary(scenario, 1, 7) for scenario in SCENARIOS]
    assert sum(
        (one.objects, one.pod) != (scenario.objects, scenario.pod)
        for one, scenario in zip(changed, SCENARIOS, strict=True)
    ) > 0.8 * len(SCENARIOS)


def test_variations_leave_no_pod_on_a_node_that_is_not_there() -> None:
    for scenario in SCENARIOS:
        objects = vary(scenario, 3, 1).objects
        nodes = {tree["metadata"]["name"] for tree in objects if tree["kind"] == "Node"}
        bound = {tree["spec"].get("nodeName") for tree in objects if tree["kind"] == "Pod"} - {None}
        assert bound <= nodes
        names = [(tree["kind"], tree["metadata"]["name"]) for tree in objects]
        assert len(set(names)) == len(names)
