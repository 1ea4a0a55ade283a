"""`pilotage run`: the scheduler alone, against any cluster, with kube-scheduler's own flags."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import rich_click as click

import pilotage
from pilotage.client.credentials import CredentialsError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli.configuring import config_fault
from pilotage.frontends.cli.failures import say
from pilotage.frontends.cli.run_options import given_flags, scheduler_flags
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.config_write import effective_yaml
from pilotage.runtime.flags import Effective, Flags, resolve, secure_address
from pilotage.runtime.logging_setup import LogFormat, set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError
from pilotage.runtime.run import OK, RunOptions, run_scheduler

_DEBUG_LEVEL = 4  # klog's: from here on a developer's details


class _Verbosity(click.ParamType[int]):
    """A number as klog has it; `-v=2` too."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(str(value).removeprefix("="))
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)


def _print_version(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(f"pilotage {pilotage.__version__}")
        ctx.exit()


@click.command()
@click.option(
    "--kubeconfig",
    default=None,
    metavar="FILE",
    help="Default: the one that --config names, else $KUBECONFIG, else ~/.kube/config, else the pod's own.",
)
@click.option("--context", default=None, metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--config",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="A KubeSchedulerConfiguration (docs/reference/configuration.md).",
)
@click.option(
    "--pilotage-config",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="Lanes, workers, plugins by path (docs/reference/pilotage-config.md).",
)
@click.option(
    "--write-config-to",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="Write the effective KubeSchedulerConfiguration there, and end.",
)
@click.option(
    "--feature-gates",
    multiple=True,
    metavar="NAME=BOOL,...",
    help="Feature gates to set, repeatable (docs/reference/configuration.md).",
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=10251,
    show_default=True,
    metavar="PORT",
    help="Of /healthz /readyz /livez /metrics; 0 picks a free one.",
)
@click.option(
    "--health-host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where that port is."
)
@click.option(
    "--log-format",
    type=click.Choice([form.value for form in LogFormat]),
    default="text",
    show_default=True,
    help="For people or for machines.",
)
@click.option(
    "-v",
    "--v",
    "--verbose",
    "verbosity",
    type=_Verbosity(),
    is_flag=False,
    flag_value="4",
    default="0",
    metavar="[LEVEL]",
    help="Log more: from 4 on, or without a number, each decision.",
)
@scheduler_flags
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version, and end.",
)
def run(
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    pilotage_config: str | None,
    write_config_to: str | None,
    feature_gates: tuple[str, ...],
    health_port: int,
    health_host: str,
    log_format: str,
    verbosity: int,
    **others: Any,
) -> int:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Takes kube-scheduler's flags. Example: `pilotage run --kubeconfig ~/.kube/config --config scheduler.yaml`.
    """
    is_detailed = verbosity >= _DEBUG_LEVEL
    set_up_logging(LogFormat(log_format), level=logging.DEBUG if is_detailed else logging.INFO)
    flags = Flags(config, pilotage_config, kubeconfig, feature_gates, given_flags(others))
    try:
        effective = resolve(flags)
        for warning in effective.warnings:
            say(warning, prefix="warning: ")
        if write_config_to is not None:
            return _write(effective, write_config_to)
        return run_scheduler(
            effective.loaded.settings,
            kubeconfig=effective.kubeconfig or None,
            context=context,
            server=others["master"] or "",
            registry=effective.registry,
            options=_options(effective, flags, health_host, health_port),
            on_ready=lambda _: click.echo("ready"),
        )
    except ConfigError as problem:
        raise click.ClickException(config_fault(problem)) from None
    except (CredentialsError, PluginLoadError, ProfileError) as problem:
        raise click.ClickException(str(problem)) from None


def _options(effective: Effective, flags: Flags, health_host: str, health_port: int) -> RunOptions:
    secure_host, secure_port = secure_address(flags.given)
    loaded = effective.loaded
    election = loaded.leader_election
    return RunOptions(
        health_host=health_host,
        health_port=health_port,
        secure_host=secure_host,
        secure_port=secure_port,
        election=election if election.leader_elect else None,
        delay_cache=loaded.delay_cache_until_active,
        tuning=effective.pilotage.calls,
    )


def _write(effective: Effective, path: str) -> int:
    try:
        Path(path).write_text(effective_yaml(effective.loaded), encoding="utf-8")
    except OSError as problem:
        raise click.ClickException(f"{path}: cannot be written: {problem.strerror}") from None
    return OK
