"""`pilotage demo`: the main job, from nothing to a readable result in under a minute."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotage.client.api import ApiError
from pilotage.client.transport import TransportError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli import EXIT_INTERRUPTED
from pilotage.frontends.cli.connection import last_kubeconfig
from pilotage.frontends.cli.failures import say
from pilotage.frontends.demo.report import print_report
from pilotage.frontends.demo.resize import run_resize
from pilotage.frontends.demo.runner import DemoError, run_demo
from pilotage.frontends.demo.summary import Summary
from pilotage.frontends.local import ClusterError, connect, local_settings, write_kubeconfig
from pilotage.localcluster.process import ServerProcess, ServerStartError
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.runtime.run import RunOptions, loop_factory, run_scheduler

_FAULTS = (
    ApiError,
    ClusterError,
    DemoError,
    PluginLoadError,
    ProfileError,
    ServerStartError,
    TransportError,
)
NextCommands = list[tuple[str, str]]


@click.group(invoke_without_command=True)
@click.pass_context
@click.option("--keep", is_flag=True, help="Leave the cluster running until Ctrl-C.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines.",
)
def demo(ctx: click.Context, keep: bool, output: str) -> int:
    """Schedule a realistic workload on an embedded cluster of 50 nodes and show what came of it.

    Example: `pilotage demo --keep`, then `pilotage get pods -A` in another terminal.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    return _told(lambda: _demo(keep, is_json=output == "json"))


@demo.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines.",
)
def resize(output: str) -> int:
    """Tell the story of a resize that finds no room: who waits, who goes, who gets what, and when.

    Example: `pilotage demo resize`, and docs/guides/resize.md for the rules behind it.
    """
    return _told(lambda: _resize(is_json=output == "json"))


def _told(work: Callable[[], int]) -> int:
    set_up_logging(level=logging.WARNING)
    try:
        return work()
    except KeyboardInterrupt:
        say("interrupted: the cluster is gone", prefix="")
        return EXIT_INTERRUPTED
    except _FAULTS as problem:
        raise click.ClickException(str(problem)) from None


def _demo(keep: bool, *, is_json: bool) -> int:
    registry = build_registry()
    settings = local_settings(registry)
    with ServerProcess.start() as server:
        kubeconfig = write_kubeconfig(server, last_kubeconfig()) if keep else None
        with _progress() as progress, asyncio.Runner(loop_factory=loop_factory()) as runner:
            summary = runner.run(run_demo(server, settings, registry, progress))
        _show(summary, next_commands(kubeconfig), is_json=is_json)
        if not keep:
            return 0
        say("\nThe cluster is running. Ctrl-C ends it.", prefix="")
        code = run_scheduler(settings, transport=connect(server), registry=registry, options=RunOptions())
    say("stopped", prefix="")
    return code


def _resize(*, is_json: bool) -> int:
    registry = build_registry()
    settings = local_settings(registry)
    with ServerProcess.start() as server, asyncio.Runner(loop_factory=loop_factory()) as runner:
        timeline = runner.run(run_resize(server, settings, registry))
    if is_json:
        click.echo(msgspec.json.format(msgspec.json.encode(timeline.moments), indent=2))
        return 0
    click.echo("One node of 4 CPU: web (priority 1000) has 1, batch-a 1.5 and batch-b 1 (priority 0).\n")
    for moment in timeline.moments:
        click.echo(f"{moment.seconds:6.2f} s  {moment.who:<10} {moment.what}")
    return 0


def _show(summary: Summary, commands: NextCommands, *, is_json: bool) -> None:
    if is_json:
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2))
    else:
        print_report(Console(), summary, commands)
    sys.stdout.flush()


def _progress() -> Progress:
    """Two bars while it runs; on something that is no terminal, only how they ended."""
    return Progress(
        TextColumn("{task.description:<13}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=Console(stderr=True),
    )


def next_commands(kubeconfig: Path | None) -> NextCommands:
    """Three commands that work as they stand, whatever the current folder is."""
    program = Path(sys.argv[0]).absolute()
    if kubeconfig is not None:
        option = f" --kubeconfig {kubeconfig}" if os.environ.get("KUBECONFIG") else ""
        pending = "--field-selector status.phase=Pending"
        return [
            (f"{program} get pods -A -o wide{option}", "every pod and its node"),
            (f"{program} get pods -A {pending}{option}", "what is waiting"),
            (f"KUBECONFIG={kubeconfig} kubectl get events -A", "what the scheduler said, with kubectl"),
        ]
    example = program.parents[-1 if len(program.parents) < 3 else 2] / "examples" / "first-steps.yaml"
    if not example.is_file():  # installed from a wheel
        return [
            (f"{program} demo --keep", "the same cluster, left running; then, in another terminal:"),
            (f"{program} get pods -A -o wide", "every pod and its node"),
            (f"{program} get events -A", "what the scheduler said"),
        ]
    return [
        (f"{program} up --nodes 3", "a cluster of your own, until Ctrl-C; then, in another terminal:"),
        (f"{program} apply -f {example}", "two pods: one runs, one stays pending"),
        (f"{program} get pods -o wide", "where they are"),
    ]
