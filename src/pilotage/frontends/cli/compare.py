"""`pilotage compare`: two schedulers on one cluster, scenario after scenario."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random

import msgspec
import rich_click as click

from pilotage.client.api import ApiClient
from pilotage.client.transport import Transport
from pilotage.framework.registry import Registry
from pilotage.frontends.cli import EXIT_FAILED
from pilotage.frontends.cli.connection import call_api, kubeconfig_options
from pilotage.frontends.compare.judging import Agreement, Judgement
from pilotage.frontends.compare.running import Comparison, Pace
from pilotage.frontends.compare.stage import StageError
from pilotage.frontends.compare.text import as_json, count_line, difference_block, summary_lines
from pilotage.frontends.compare.varying import vary
from pilotage.frontends.replay.scenarios import Scenario, ScenarioError, read_scenarios
from pilotage.runtime.config import default_settings, load_settings
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.run import RunOptions, serve

_PROGRESS_EVERY = 20


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--first", default="default-scheduler", metavar="NAME", show_default=True, help="A schedulerName."
)
@click.option(
    "--second", default="pilotage", metavar="NAME", show_default=True, help="The other schedulerName."
)
@click.option("--start", is_flag=True, help="Run Pilotage there under the second name, for the time.")
@click.option(
    "--vary",
    "variations",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    show_default=True,
    help="Random variations of each scenario, played in its place.",
)
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Of all that is drawn.")
@click.option("--family", "families", multiple=True, help="Only scenarios of this family (repeatable).")
@click.option("--name", "patterns", multiple=True, help="Only of this name; * and ? match (repeatable).")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N, drawn by the seed.")
@kubeconfig_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def compare(
    files: tuple[Path, ...],
    first: str,
    second: str,
    start: bool,
    variations: int,
    seed: int,
    families: tuple[str, ...],
    patterns: tuple[str, ...],
    limit: int | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> int:
    """Have two schedulers decide the same scenarios on one cluster, and print what they decide differently.

    FILEs are recordings as `pilotage replay` reads them; what they say was decided is not looked at. With
    `--vary N` each is played in N random variations instead. The cluster must be empty, without kubelets and
    controllers; what a scenario puts there is removed after it. Exit status 1 if anything differs.

    Example: `pilotage compare decisions.jsonl --start --vary 2 --limit 500`
    """
    set_up_logging(level=logging.ERROR)
    chosen = _chosen(files, families, patterns)
    if variations:
        chosen = [vary(one, number, seed) for one in chosen for number in range(1, variations + 1)]
    if limit is not None and limit < len(chosen):
        picked = set(Random(seed).sample(range(len(chosen)), limit))
        chosen = [one for index, one in enumerate(chosen) if index in picked]
    names = (first, second)

    async def work(client: ApiClient, _namespace: str) -> list[Judgement]:
        registry = build_registry()
        async with _started(client.transport, second, registry) if start else contextlib.nullcontext():
            settings = default_settings().profiles[0]
            comparison = Comparison(client, names, settings, registry, Pace())
            return await _told(comparison, chosen, names, is_text=output == "text")

    try:
        judgements = call_api(kubeconfig, context, work)
    except StageError as problem:
        raise click.ClickException(str(problem)) from None
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(as_json(judgements, names))))
        click.echo(count_line(judgements), err=True)
    else:
        click.echo("\n".join(summary_lines(judgements)))
    return EXIT_FAILED if any(one.agreement is Agreement.DIFFERENT for one in judgements) else 0


def _chosen(files: Sequence[Path], families: Sequence[str], patterns: Sequence[str]) -> list[Scenario]:
    try:
        found = [one for path in files for one in read_scenarios(path) if not one.is_hint]
    except ScenarioError as problem:
        raise click.UsageError(str(problem)) from None
    chosen = [
        one
        for one in found
        if (not families or one.family in families)
        and (not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns))
    ]
    if not chosen:
        known = ", ".join(sorted({one.family for one in found}))
        raise click.UsageError(f"no scenario is selected; families in these files: {known}")
    return chosen


async def _told(
    comparison: Comparison, chosen: Sequence[Scenario], names: tuple[str, str], *, is_text: bool
) -> list[Judgement]:
    """Differences as they come; a line of progress on stderr now and then."""
    judgements: list[Judgement] = []
    async for judgement in comparison.run(chosen):
        judgements.append(judgement)
        if is_text and judgement.agreement is Agreement.DIFFERENT:
            click.echo(difference_block(judgement, names) + "\n")
        if len(judgements) % _PROGRESS_EVERY == 0:
            click.echo(f"{len(judgements)} of {len(chosen)}: {count_line(judgements)}", err=True)
    return judgements


@contextlib.asynccontextmanager
async def _started(transport: Transport, name: str, registry: Registry) -> AsyncIterator[None]:
    """Pilotage for the pods of one schedulerName, in this process."""
    settings = load_settings(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name}],
        },
        registry,
    )
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(
        serve(transport, settings, registry, stop, RunOptions(), lambda _: ready.set())
    )
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield
    finally:
        waiting.cancel()
        stop.set()
        await asyncio.gather(task, waiting, return_exceptions=True)
