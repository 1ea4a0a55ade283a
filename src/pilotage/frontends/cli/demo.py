"""`pilotage demo`: the main job, from nothing to a readable result in under a minute."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import msgspec
import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotage.client.api import ApiError
from pilotage.client.transport import TransportError
from pilotage.frontends.cli.connection import EXIT_INTERRUPTED, last_kubeconfig
from pilotage.frontends.demo.report import print_report
from pilotage.frontends.demo.runner import DemoError, run_demo
from pilotage.frontends.local import connect, local_settings
from pilotage.localcluster.process import ServerProcess, ServerStartError
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.run import RunOptions, loop_factory, run_scheduler


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running until Ctrl-C.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def demo(keep: bool, output: str) -> None:
    """Schedule a realistic workload on an embedded cluster of 50 nodes and show what came of it.

    Example: `pilotage demo --keep`, then `pilotage get pods -A` in another terminal.
    """
    set_up_logging(level=logging.WARNING)
    registry = build_registry()
    settings = local_settings(None, registry)
    try:
        with ServerProcess.start() as server:
            with _progress() as progress, asyncio.Runner(loop_factory=loop_factory()) as runner:
                summary = runner.run(run_demo(server, settings, registry, progress))
            kubeconfig = server.write_kubeconfig(last_kubeconfig()) if keep else None
            if output == "json":
                click.echo(msgspec.json.encode(summary))
            else:
                print_report(Console(), summary, _next_commands(kubeconfig))
            if keep:
                click.echo("\nThe cluster is running. Ctrl-C ends it.", err=True)
                transport = connect(server)
                sys.exit(
                    run_scheduler(settings, transport=transport, registry=registry, options=RunOptions())
                )
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except (ServerStartError, DemoError, ApiError, TransportError, FileExistsError) as problem:
        raise click.ClickException(str(problem)) from None


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def _next_commands(kubeconfig: Path | None) -> list[tuple[str, str]]:
    """Three commands that work as they stand, whatever the current folder is."""
    pilotage = str(Path(sys.argv[0]).absolute())
    if kubeconfig is not None:
        return [
            (f"{pilotage} get pods -A -o wide", "every pod and its node"),
            (f"{pilotage} get pods -A --field-selector status.phase=Pending", "what is waiting"),
            (f"KUBECONFIG={kubeconfig} kubectl get events -A", "what the scheduler said, with kubectl"),
        ]
    example = Path(pilotage).parents[2] / "examples" / "first-steps.yaml"
    return [
        (f"{pilotage} up --nodes 3", "a cluster of your own, until Ctrl-C; then, in another terminal:"),
        (f"{pilotage} apply -f {example}", "two pods: one runs, one stays pending"),
        (f"{pilotage} get pods -o wide", "where they are"),
    ]
