"""`pilotage replay` as a user meets it: what it prints, and its exit status."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pilotage.frontends.replay.command import replay

DATA = Path(__file__).parent / "data"
DECISIONS = DATA / "decisions.jsonl.gz"


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(replay, [str(arg) for arg in args])


def recorded(family: str) -> dict[str, Any]:
    """The first scenario of a family where something was scored."""
    with gzip.open(DECISIONS) as file:
        for line in file:
            scenario: dict[str, Any] = json.loads(line)
            if scenario["family"] == family and scenario["expect"].get("best"):
                return scenario
    raise AssertionError(family)


def write(folder: Path, *scenarios: dict[str, Any] | str) -> Path:
    path = folder / "scenarios.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in scenarios]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_a_family_that_passes() -> None:
    result = run(DECISIONS, "--family", "spread")
    assert result.exit_code == 0
    lines = result.stdout.strip().splitlines()
    assert lines[-1] == "30 passed, 0 failed"


def test_one_block_per_mismatch_names_what_where_and_who(tmp_path: Path) -> None:
    scenario = recorded("spread")
    expect = scenario["expect"]
    node = next(iter(expect["total"]))
    expect["scores"]["NodeResourcesFit"][node] += 1
    expect["total"][node] += 1
    expect["best"] = [node]
    result = run(write(tmp_path, scenario))
    right = expect["scores"]["NodeResourcesFit"][node]
    assert result.exit_code == 1
    assert result.stdout.startswith(f"FAILED {scenario['name']} (family spread, ")
    assert f"score of NodeResourcesFit\n    node {node}: expected {right}, got {right - 1}\n" in result.stdout
    assert result.stdout.strip().splitlines()[-1] == "0 passed, 1 failed"


def test_a_node_that_should_be_feasible_comes_with_the_reason(tmp_path: Path) -> None:
    scenario = recorded("resources")
    scenario["objects"] = [o for o in scenario["objects"] if o["kind"] != "Pod"]
    for one in scenario["objects"]:
        one["spec"]["unschedulable"] = True
    result = run(write(tmp_path, scenario))
    text = "expected feasible, got rejected: node(s) were unschedulable by NodeUnschedulable"
    assert text in result.stdout
    assert "winner" in result.stdout
    assert result.exit_code == 1


def test_objects_that_no_server_would_take_fail_their_scenario(tmp_path: Path) -> None:
    scenario = recorded("resources")
    scenario["pod"]["spec"]["priorityClassName"] = "no-such-class"
    result = run(write(tmp_path, scenario))
    assert "no PriorityClass with name no-such-class was found" in result.stdout
    assert result.stdout.strip().endswith("0 passed, 1 failed")


def test_json_has_the_same_facts(tmp_path: Path) -> None:
    good, bad = recorded("taints"), recorded("spread")
    bad["expect"]["best"] = ["nowhere"]
    result = run(write(tmp_path, good, bad), "-o", "json")
    document = json.loads(result.stdout)
    assert (document["passed"], document["failed"]) == (1, 1)
    assert [one["passed"] for one in document["scenarios"]] == [True, False]
    (mismatch,) = document["scenarios"][1]["mismatches"]
    assert mismatch["what"] == "winner"
    assert mismatch["expected"] == "nowhere"
    assert result.exit_code == 1
    assert result.stderr.strip() == "1 passed, 1 failed"


def test_names_may_be_patterns() -> None:
    result = run(DECISIONS, "--name", "taints-110000*")
    assert result.exit_code == 0
    assert result.stdout.strip().endswith("1 passed, 0 failed")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "scenarios.jsonl:1: not a recorded scenario: "),
        ('{"name": "x"}', "scenarios.jsonl:1: not a recorded scenario: Object missing required field"),
        (
            '{"name": "x", "family": "f", "objects": [{}], "pod": {}, "expect": {"bound": null}}',
            "scenarios.jsonl:1: objects[0] has no kind or no metadata.name",
        ),
        ("", "no scenarios in it"),
    ],
)
def test_malformed_files_are_told_by_line(
    line: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    write(tmp_path, line)
    monkeypatch.chdir(tmp_path)
    result = run("scenarios.jsonl")
    assert text in result.stderr
    assert result.exit_code == 2


def test_a_family_that_is_not_there_is_told() -> None:
    result = run(DECISIONS, "--family", "nope")
    assert result.exit_code == 2
    assert "no scenario is selected" in result.stderr
