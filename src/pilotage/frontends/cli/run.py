"""`pilotage run`: the scheduler alone, against any cluster."""

from __future__ import annotations

import logging
import sys

import rich_click as click

from pilotage.client.credentials import CredentialsError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli.connection import kubeconfig_options
from pilotage.runtime.config import default_settings, load_config
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.logging_setup import LogFormat, set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.runtime.run import RunOptions, run_scheduler


@click.command()
@kubeconfig_options
@click.option("--config", type=click.Path(), default=None, help="A KubeSchedulerConfiguration file.")
@click.option("--health-port", type=click.IntRange(0, 65535), default=10251, show_default=True)
@click.option(
    "--health-host", default="127.0.0.1", show_default=True, help="/healthz /readyz /livez /metrics"
)
@click.option("--log-format", type=click.Choice([form.value for form in LogFormat]), default="text")
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def run(
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    health_port: int,
    health_host: str,
    log_format: str,
    verbose: bool,
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Without `--kubeconfig` the file of `--config` (clientConnection.kubeconfig), $KUBECONFIG, ~/.kube/config
    or the service account of the pod is used.

    Example: `pilotage run --kubeconfig ~/.kube/config --config scheduler.yaml`.
    """
    set_up_logging(LogFormat(log_format), level=logging.DEBUG if verbose else logging.INFO)
    try:
        registry = build_registry()
        file_kubeconfig = ""
        if config is None:
            settings = default_settings(registry)
        else:
            loaded = load_config(config, registry)
            settings, file_kubeconfig = loaded.settings, loaded.client.kubeconfig
        code = run_scheduler(
            settings,
            kubeconfig=kubeconfig or file_kubeconfig or None,
            context=context,
            registry=registry,
            options=RunOptions(health_host=health_host, health_port=health_port),
            on_ready=lambda _: click.echo("ready"),
        )
    except (ConfigError, CredentialsError, PluginLoadError, ProfileError) as problem:
        raise click.ClickException(str(problem)) from None
    sys.exit(code)
