"""`pilotage bench`: measurements from outside, each one a subcommand."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import rich_click as click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotage.client.api import ApiError
from pilotage.client.credentials import CredentialsError
from pilotage.client.transport import TransportError
from pilotage.framework.gates import ASYNC_API_CALLS, GATES
from pilotage.frontends.bench import driving
from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.realtime import NoNodesError, Target, run_embedded, run_on
from pilotage.frontends.bench.report import Report
from pilotage.frontends.bench.scenario import PRESETS, STORM, Storm
from pilotage.frontends.bench.schedulerprocess import SchedulerError
from pilotage.frontends.bench.text import print_report
from pilotage.frontends.bench.virtual import run_virtual
from pilotage.frontends.cli import EXIT_FAILED
from pilotage.frontends.cli.configuring import config_fault
from pilotage.frontends.cli.connection import from_server
from pilotage.frontends.cli.failures import say
from pilotage.localcluster.process import ServerStartError
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.feature_gates import parse_feature_gates
from pilotage.runtime.logging_setup import set_up_logging

_FAULTS = (CredentialsError, NoNodesError, SchedulerError, ServerStartError, TransportError)
_FIELDS = ("nodes", "bad", "good", "rate", "delay", "qps", "burst", "latency", "reject", "seed")
_OURS_ONLY = ("qps", "burst", "latency", "reject", "gate", "feature_gates")  # of a scheduler that we start
_SLACK_SECONDS = 60.0


@click.group()
def bench() -> None:
    """Measure the scheduler: in real time on an embedded server or a cluster, or in virtual time.

    Example: `pilotage bench storm --preset a1`
    """


@bench.command()
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=STORM,
    show_default=True,
    help="What the options below start from; a1: QPS 5, burst 5, 1 node, 200 bad pods, 1 good one, at once.",
)
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="Nodes of 4 CPU.  [default: 50]")
@click.option(
    "--bad", type=click.IntRange(min=0), metavar="N", help="Pods that fit nowhere.  [default: 2000]"
)
@click.option("--good", type=click.IntRange(min=1), metavar="N", help="Pods that fit.  [default: 60]")
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Good pods a second; 0: all at once.  [default: 5]",
)
@click.option(
    "--delay",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="From the last bad pod to the first good one.  [default: 5]",
)
@click.option(
    "--qps",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="The scheduler's client limit.  [default: 50]",
)
@click.option("--burst", type=click.IntRange(min=1), metavar="N", help="The same.  [default: 100]")
@click.option(
    "--latency",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Added to every request of the scheduler.  [default: 0]",
)
@click.option(
    "--reject",
    type=click.FloatRange(0, 1),
    metavar="FRACTION",
    help="Share of the scheduler's calls answered 429 with Retry-After 1.  [default: 0]",
)
@click.option("--seed", type=int, metavar="N", help="Of everything that is drawn.  [default: 0]")
@click.option("--gate/--no-gate", "gate", default=None, help="SchedulerAsyncAPICalls on or off.")
@click.option(
    "--feature-gates",
    multiple=True,
    metavar="NAME=BOOL,...",
    help="Feature gates to set, repeatable (docs/reference/configuration.md).",
)
@click.option("--virtual", is_flag=True, help="In virtual time: seconds instead of minutes, no CPU counted.")
@click.option(
    "--kubeconfig",
    default=None,
    metavar="FILE",
    help="Run on that cluster, in a namespace of its own.  [default: an embedded server]",
)
@click.option("--context", default=None, metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--scheduler-name",
    default=None,
    metavar="NAME",
    help="Measure that scheduler of the cluster, to compare.  [default: a Pilotage, started for the run]",
)
@click.option("--create-nodes", is_flag=True, help="Create the nodes there too, for the time of the run.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=None,
    metavar="SECONDS",
    help="From the last pod to giving up.  [default: three times what the limit needs, and a minute]",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines.",
)
def storm(output: str, **given: Any) -> int:
    """Bind pods while thousands that fit nowhere have their conditions written: how long does a bind wait?

    The scheduler, in a process of its own, is measured from a watch. Exit status 1 when an aim is missed.

    Example: `pilotage bench storm --latency 0.3`, or at once `pilotage bench storm --virtual`
    """
    set_up_logging(level=logging.ERROR)
    try:
        report = _run(given)
    except ConfigError as problem:
        raise click.ClickException(config_fault(problem)) from None
    except ApiError as problem:
        raise click.ClickException(from_server(problem)) from None
    except _FAULTS as problem:
        raise click.ClickException(str(problem)) from None
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        print_report(Console(), report)
    sys.stdout.flush()
    return 0 if report.has_passed else EXIT_FAILED


def _run(given: dict[str, Any]) -> Report:
    scenario = _scenario(given)
    target = _target(given)
    timeout = given["timeout"] or 3 * (scenario.bad + scenario.good) / scenario.qps + _SLACK_SECONDS
    with _progress(scenario) as show:
        if given["virtual"]:
            return run_virtual(scenario, timeout, show)
        if target is None:
            return run_embedded(scenario, timeout, show)
        return run_on(target, scenario, timeout, show, lambda text: say(text, prefix="warning: "))


def _scenario(given: dict[str, Any]) -> Storm:
    """The preset with what stands on the command line. Raises ConfigError."""
    texts = list(given["feature_gates"])
    if given["gate"] is not None:
        texts.append(f"{ASYNC_API_CALLS}={str(given['gate']).lower()}")
    gates = parse_feature_gates(texts)
    for warning in gates.warnings:
        say(warning, prefix="warning: ")
    chosen = {name: given[name] for name in _FIELDS if given[name] is not None}
    changed = {name: value for name, value in gates.values.items() if value is not GATES[name].default}
    return replace(PRESETS[given["preset"]], **chosen, gates=changed)


def _target(given: dict[str, Any]) -> Target | None:
    """None: an embedded server. Raises UsageError for options that do not go together."""
    kubeconfig, needs = given["kubeconfig"], ("context", "scheduler_name", "create_nodes")
    if kubeconfig is None:
        for name in needs:
            if given[name]:
                raise click.UsageError(f"{_flag(name)} needs --kubeconfig")
        return None
    if given["virtual"]:
        raise click.UsageError("--virtual and --kubeconfig do not go together")
    if given["nodes"] is not None and not given["create_nodes"]:
        raise click.UsageError("--nodes on a cluster needs --create-nodes")
    if given["scheduler_name"] and any(given[name] not in (None, ()) for name in _OURS_ONLY):
        raise click.UsageError(f"--scheduler-name takes none of {', '.join(map(_flag, _OURS_ONLY))}")
    return Target(kubeconfig, given["context"], given["create_nodes"], given["scheduler_name"] or "")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@contextlib.contextmanager
def _progress(scenario: Storm) -> Iterator[driving.Progress]:
    """Three bars while it runs; on something that is no terminal, only how they ended."""
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        created = progress.add_task("Bad pods", total=scenario.bad)
        bound = progress.add_task("Good pods bound", total=scenario.good)
        judged = progress.add_task("Conditions", total=scenario.bad)

        def show(times: PodTimes) -> None:
            progress.update(created, completed=times.created_bad)
            progress.update(bound, completed=len(times.bound))
            progress.update(judged, completed=len(times.judged))

        yield show
