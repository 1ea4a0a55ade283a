"""Recorded decisions of kube-scheduler (data/README.md), decided again in process.

No family has a mismatch, whole texts, victims and nominations included, and nothing is left out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.frontends.replay.compare import Result, replay_scenario
from pilotage.frontends.replay.hints import replay_hint
from pilotage.frontends.replay.report import failure_block
from pilotage.frontends.replay.scenarios import Scenario, read_scenarios
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry

DATA = Path(__file__).parent / "data"
DECISIONS = ("decisions.jsonl.gz", "decisions2.jsonl.gz")

# family -> number of scenarios
IN_SCOPE = {
    "large": 28,
    "mixed": 58,
    "node_affinity": 58,
    "pod_affinity": 58,
    "ports_images": 58,
    "preemption": 86,
    "resize": 58,
    "resources": 52,
    "spread": 58,
    "taints": 58,
    "volumes": 58,
}
PREEMPTIONS = 69  # scenarios with victims


@cache
def scenarios() -> tuple[Scenario, ...]:
    return tuple(one for name in DECISIONS for one in read_scenarios(DATA / name))


@cache
def default_profile() -> tuple[ProfileSettings, Registry]:
    registry = default_registry()
    points = {
        point: tuple(
            PluginRef(ref.name, ref.weight)
            for ref in DEFAULT_MULTIPOINT
            if point in registry.points(ref.name)
        )
        for point in EXTENSION_POINTS
    }
    return ProfileSettings("default-scheduler", points), registry


@cache
def results(family: str) -> tuple[Result, ...]:
    settings, registry = default_profile()
    return tuple(replay_scenario(one, settings, registry) for one in scenarios() if one.family == family)


def test_every_recorded_family_is_accounted_for() -> None:
    found: dict[str, int] = {}
    for scenario in scenarios():
        found[scenario.family] = found.get(scenario.family, 0) + 1
    assert found == IN_SCOPE


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(IN_SCOPE))
def test_family_has_no_mismatch(family: str) -> None:
    failed = [failure_block(result) for result in results(family) if not result.has_passed]
    assert not failed, "\n\n".join(failed)
    assert len(results(family)) == IN_SCOPE[family]


@pytest.mark.slow
def test_nothing_is_compared_only_in_part() -> None:
    every = [result for family in IN_SCOPE for result in results(family)]
    assert not [limit for result in every for limit in result.limits]
    expectations = [result.scenario.expect for result in every]
    assert sum(bool(expect and expect.victims) for expect in expectations) == PREEMPTIONS


@pytest.mark.slow
def test_every_hint_wakes_the_pod_under_the_recorded_event() -> None:
    settings, registry = default_profile()
    hints = read_scenarios(DATA / "hints.jsonl.gz")
    found = [replay_hint(hint, settings, registry) for hint in hints]
    failed = [failure_block(result) for result in found if not result.has_passed]
    assert not failed, "\n\n".join(failed)
    assert len(hints) == 359
    assert all(result.is_compared for result in found)
