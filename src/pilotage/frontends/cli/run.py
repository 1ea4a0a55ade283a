"""`pilotage run`: the scheduler alone, against any cluster."""

from __future__ import annotations

import logging

import rich_click as click

from pilotage.client.credentials import CredentialsError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli.configuring import read_config
from pilotage.frontends.cli.failures import say
from pilotage.runtime.config import default_settings
from pilotage.runtime.logging_setup import LogFormat, set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.runtime.run import RunOptions, run_scheduler


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
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def run(
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    health_port: int,
    health_host: str,
    log_format: str,
    verbose: bool,
) -> int:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Example: `pilotage run --kubeconfig ~/.kube/config --config scheduler.yaml`.
    """
    set_up_logging(LogFormat(log_format), level=logging.DEBUG if verbose else logging.INFO)
    try:
        registry = build_registry()
        file_kubeconfig = ""
        if config is None:
            settings = default_settings(registry)
        else:
            loaded = read_config(config, registry)
            if loaded.leader_election.leader_elect:
                say("leader election is not built yet: run one replica only", prefix="warning: ")
            settings, file_kubeconfig = loaded.settings, loaded.client.kubeconfig
        return run_scheduler(
            settings,
            kubeconfig=kubeconfig or file_kubeconfig or None,
            context=context,
            registry=registry,
            options=RunOptions(health_host=health_host, health_port=health_port),
            on_ready=lambda _: click.echo("ready"),
        )
    except (CredentialsError, PluginLoadError, ProfileError) as problem:
        raise click.ClickException(str(problem)) from None
