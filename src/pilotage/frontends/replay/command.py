"""The `pilotage replay` command."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import rich_click as click

from pilotage.framework.settings import ProfileSettings
from pilotage.frontends.replay.compare import Result, replay_scenario
from pilotage.frontends.replay.hints import replay_hint
from pilotage.frontends.replay.report import as_json, count_line, failure_block, summary_lines
from pilotage.frontends.replay.scenarios import Scenario, ScenarioError, read_scenarios
from pilotage.runtime.config import default_settings
from pilotage.runtime.plugins_loading import build_registry

_PROGRESS_SECONDS = 5.0


class _InputError(click.ClickException):
    exit_code = 2


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--family", "families", multiple=True, help="Only scenarios of this family (repeatable).")
@click.option(
    "--name", "names", multiple=True, help="Only scenarios of this name; * and ? match (repeatable)."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def replay(files: tuple[Path, ...], families: tuple[str, ...], names: tuple[str, ...], output: str) -> None:
    """Decide recorded scenarios again and compare with what kube-scheduler decided.

    Compared are the feasible nodes, every plugin's score on every node, the totals, the winner, and the texts
    of condition and events; for event hints, whether a request wakes the pod, and under which event. Exit
    status 1 if any scenario failed, 2 for files that cannot be read.

    Example: `pilotage replay decisions.jsonl --family spread --name 'spread-11*'`
    """
    chosen = _selected(_read(files), families, names)
    results = []
    for result in _replayed(chosen):
        results.append(result)
        if output == "text" and not result.has_passed:
            click.echo(failure_block(result) + "\n")
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(as_json(results))))
        click.echo(count_line(results), err=True)
    else:
        click.echo("\n".join(summary_lines(results)))
    if not all(result.has_passed for result in results):
        raise SystemExit(1)


def _read(files: Sequence[Path]) -> list[Scenario]:
    try:
        return [scenario for path in files for scenario in read_scenarios(path)]
    except ScenarioError as exc:
        raise _InputError(str(exc)) from exc


def _selected(scenarios: Sequence[Scenario], families: Sequence[str], names: Sequence[str]) -> list[Scenario]:
    chosen = [
        scenario
        for scenario in scenarios
        if (not families or scenario.family in families)
        and (not names or any(fnmatchcase(scenario.name, pattern) for pattern in names))
    ]
    if not chosen:
        known = ", ".join(sorted({scenario.family for scenario in scenarios}))
        raise _InputError(f"no scenario is selected; families in these files: {known}")
    return chosen


def _replayed(scenarios: Sequence[Scenario]) -> Iterator[Result]:
    """Results as they come; a line of progress on stderr every few seconds."""
    settings, registry = default_profile(), build_registry()
    reported = time.monotonic()
    for number, scenario in enumerate(scenarios, start=1):
        replay_one = replay_hint if scenario.is_hint else replay_scenario
        yield replay_one(scenario, settings, registry)
        if time.monotonic() - reported >= _PROGRESS_SECONDS:
            reported = time.monotonic()
            click.echo(f"replayed {number} of {len(scenarios)}", err=True)


def default_profile() -> ProfileSettings:
    """kube-scheduler's default profile."""
    return default_settings().profiles[0]
