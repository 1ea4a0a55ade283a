"""`pilotage up`: a whole cluster in the foreground."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import rich_click as click

from pilotage.client.api import ApiClient, ApiError
from pilotage.client.transport import TransportError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli.connection import last_kubeconfig
from pilotage.frontends.local import connect, create_nodes, load_nodes, local_settings
from pilotage.localcluster.nodes import NodeTemplateError
from pilotage.localcluster.process import ServerProcess, ServerStartError
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.runtime.run import RunOptions, run_scheduler

_FAULTS = (ConfigError, PluginLoadError, ProfileError, NodeTemplateError, ServerStartError, FileExistsError)


@click.command()
@click.option("--nodes", type=click.IntRange(min=0), default=3, show_default=True, help="Simulated nodes.")
@click.option(
    "--node-template",
    type=click.Path(),
    default=None,
    help="YAML: a Node to repeat, or `zones` and `pools` (see docs/reference/node-template.md).",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free one."
)
@click.option("--write-kubeconfig", type=click.Path(), default=None, help="Where to write the kubeconfig.")
@click.option("--config", type=click.Path(), default=None, help="A KubeSchedulerConfiguration file.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens.")
def up(
    nodes: int,
    node_template: str | None,
    port: int,
    write_kubeconfig: str | None,
    config: str | None,
    verbose: bool,
) -> None:
    """Start a whole cluster: API server, simulated nodes, controllers, scheduler. Ctrl-C ends all of it.

    Example: `pilotage up --nodes 5`, then in another terminal `pilotage get nodes`.
    """
    set_up_logging(level=logging.INFO if verbose else logging.WARNING)
    path = Path(write_kubeconfig) if write_kubeconfig else last_kubeconfig()
    try:
        registry = build_registry()
        settings = local_settings(config, registry)
        objects = load_nodes(nodes, node_template)
        with ServerProcess.start(port) as server:
            server.write_kubeconfig(path)
            asyncio.run(_fill(server, objects))
            code = run_scheduler(
                settings,
                transport=connect(server),
                registry=registry,
                options=RunOptions(health_port=0),
                on_ready=lambda _: _announce(server, path, len(objects), is_default=not write_kubeconfig),
            )
    except _FAULTS as problem:
        raise click.ClickException(str(problem)) from None
    except KeyboardInterrupt:
        code = 130
    click.echo("stopped", err=True)
    sys.exit(code)


async def _fill(server: ServerProcess, objects: list[dict[str, object]]) -> None:
    transport = connect(server)
    try:
        if sys.stderr.isatty() and len(objects) > 100:
            with click.progressbar(length=len(objects), label="Creating nodes", file=sys.stderr) as bar:
                await _create(ApiClient(transport), objects, lambda: bar.update(1))
        else:
            await _create(ApiClient(transport), objects, lambda: None)
    finally:
        await transport.close()


async def _create(client: ApiClient, objects: list[dict[str, object]], step: Callable[[], None]) -> None:
    try:
        await create_nodes(client, objects, step)
    except* (ApiError, TransportError) as problems:
        raise NodeTemplateError(f"a node was refused: {problems.exceptions[0]}") from None


def _announce(server: ServerProcess, path: Path, nodes: int, *, is_default: bool) -> None:
    pilotage = sys.argv[0]
    click.echo(f"API server   {server.url}")
    click.echo(f"nodes        {nodes} simulated")
    click.echo(f"kubeconfig   {path}")
    click.echo("\nUse it from another terminal:")
    click.echo(f"  export KUBECONFIG={path}")
    click.echo("  kubectl get nodes")
    click.echo(f"  {pilotage} get nodes" + ("" if is_default else f" --kubeconfig {path}"))
    click.echo("\nCtrl-C ends the cluster and everything in it.")
    click.echo("ready")
    sys.stdout.flush()
