"""What explain says agrees with what kube-scheduler did, on recorded decisions (data/README.md)."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import msgspec
import pytest

from explainkit import explained
from pilotage.frontends.explain.document import document
from pilotage.frontends.explain.layout import WIDEST
from pilotage.frontends.explain.model import Explanation
from pilotage.frontends.explain.text import lines
from pilotage.frontends.replay.scenarios import Expectation, Scenario, read_scenarios
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings

DATA = Path(__file__).parent / "data" / "decisions2.jsonl.gz"
EVERY = 4

pytestmark = pytest.mark.slow
registry = default_registry()
settings = default_settings(registry)


@cache
def scenarios() -> tuple[Scenario, ...]:
    return tuple(read_scenarios(DATA)[::EVERY])


def told(scenario: Scenario) -> Explanation:
    meta = scenario.pod["metadata"]
    trees = [*scenario.objects, scenario.pod]
    namespace = meta.get("namespace", "default")
    return explained(trees, meta["name"], namespace=namespace, settings=settings, registry=registry)


@pytest.mark.parametrize("family", sorted({scenario.family for scenario in scenarios()}))
def test_verdicts_texts_and_winners_are_those_that_were_recorded(family: str) -> None:
    for scenario in scenarios():
        if scenario.family == family and scenario.expect is not None:
            found = told(scenario)
            check(scenario.name, found, scenario.expect)
            check_parts(scenario.name, found)


def check(name: str, found: Explanation, expected: Expectation) -> None:
    if expected.feasible:
        assert {candidate.node for candidate in found.candidates} == expected.feasible, name
    if expected.condition is not None:
        assert found.message == expected.condition.message, name
    if expected.best is not None:
        assert set(found.winners) == set(expected.best), name
    for candidate in found.candidates:
        for plugin, scores in expected.scores.items():
            assert candidate.scores.get(plugin, 0) == scores[candidate.node], (name, plugin)


def check_parts(name: str, found: Explanation) -> None:
    """Every node is told once, with numbers that fit its verdict; the counts are those of the condition."""
    assert len(found.candidates) + len(found.rejections) == found.n_nodes, name
    reasons = Counter(reason for rejection in found.rejections for reason in rejection.reasons)
    if found.rejections and not found.node and "preemption" in found.message:
        for reason, number in reasons.items():
            assert f"{number} {reason}" in found.message, name
    for rejection in found.rejections:
        assert rejection.detail.text, (name, rejection)
        for entry in rejection.detail.numbers.get("resources", ()):
            assert entry["needs"] > entry["free"], (name, rejection)
    for what_if in found.what_ifs:
        assert what_if.nodes, name
    msgspec.json.encode(document(found, None))
    assert all(len(line) <= WIDEST or " " not in line.strip() for line in lines(found)), name
