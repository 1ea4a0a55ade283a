"""`pilotage up`: a whole cluster in the foreground."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import rich_click as click

from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.client.transport import TransportError
from pilotage.framework.profile import ProfileError
from pilotage.frontends.cli import EXIT_INTERRUPTED
from pilotage.frontends.cli.configuring import read_config
from pilotage.frontends.cli.connection import last_kubeconfig
from pilotage.frontends.cli.failures import say
from pilotage.frontends.local import (
    ClusterError,
    connect,
    create_nodes,
    load_nodes,
    local_settings,
    wait_for_nodes,
    write_kubeconfig,
)
from pilotage.localcluster.nodes import NodeTemplateError
from pilotage.localcluster.process import ServerProcess, ServerStartError
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.runtime.run import RunOptions, run_scheduler

FAULTS = (PluginLoadError, ProfileError, NodeTemplateError, ServerStartError, ClusterError)
_MANY_NODES = 100
_POLL_SECONDS = 0.5
_watching: list[asyncio.Task[None]] = []  # a loop alone does not keep its tasks


@click.command()
@click.option(
    "--nodes",
    type=click.IntRange(min=0),
    default=None,
    metavar="N",
    help="Simulated nodes.  [default: 3, or all that the template's pools have]",
)
@click.option(
    "--node-template",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="YAML: a Node to repeat, or `zones` and `pools` (docs/reference/node-template.md).",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    metavar="PORT",
    help="Of the API server; 0 picks a free one.",
)
@click.option(
    "--write-kubeconfig",
    "kubeconfig",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="Where to write the kubeconfig.  [default: a file that `pilotage get` finds by itself]",
)
@click.option(
    "--config",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="A KubeSchedulerConfiguration (docs/reference/configuration.md).",
)
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    default=None,
    metavar="PORT",
    help="Serve the scheduler's /healthz /readyz /livez /metrics there.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log what the scheduler does.")
def up(
    nodes: int | None,
    node_template: str | None,
    port: int,
    kubeconfig: str | None,
    config: str | None,
    health_port: int | None,
    verbose: bool,
) -> int:
    """Start a whole cluster: API server, simulated nodes, controllers, scheduler. Ctrl-C ends all of it.

    Example: `pilotage up --nodes 5`, then in another terminal `pilotage get nodes`.
    """
    set_up_logging(level=logging.INFO if verbose else logging.WARNING)
    path = Path(kubeconfig).absolute() if kubeconfig else last_kubeconfig()
    try:
        registry = build_registry()
        settings = read_config(config, registry).settings if config else local_settings(registry)
        objects = load_nodes(nodes, node_template)
        with ServerProcess.start(port) as server:
            write_kubeconfig(server, path)
            asyncio.run(_fill(server, objects))
            code = run_scheduler(
                settings,
                transport=connect(server),
                registry=registry,
                options=RunOptions(health_port=health_port),
                on_ready=lambda _: _on_ready(server, path, len(objects)),
            )
            if not server.is_running:
                raise ClusterError("the API server ended by itself")
    except FAULTS as problem:
        raise click.ClickException(str(problem)) from None
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    say("stopped", prefix="")
    return code


async def _fill(server: ServerProcess, objects: list[Json]) -> None:
    """Creates the nodes and waits for their kubelets. Raises NodeTemplateError, ClusterError."""
    transport = connect(server)
    client = ApiClient(transport)
    try:
        if sys.stderr.isatty() and len(objects) > _MANY_NODES:
            with click.progressbar(length=len(objects), label="Creating nodes", file=sys.stderr) as bar:
                await create_nodes(client, objects, lambda: bar.update(1))
        else:
            await create_nodes(client, objects)
        await wait_for_nodes(client)
    except ApiError as problem:
        raise NodeTemplateError(f"a node was refused: {problem.message}") from None
    except TransportError as problem:
        raise ClusterError(f"the embedded server gave no answer: {problem}") from None
    finally:
        await transport.close()


def _on_ready(server: ServerProcess, path: Path, nodes: int) -> None:
    _announce(server, path, nodes)
    _watching.append(asyncio.get_running_loop().create_task(_stop_with(server)))


async def _stop_with(server: ServerProcess) -> None:
    """A cluster whose server has died cannot go on: stop as on a signal."""
    while server.is_running:
        await asyncio.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _announce(server: ServerProcess, path: Path, nodes: int) -> None:
    program = Path(sys.argv[0]).absolute()
    is_found = path == last_kubeconfig() and not os.environ.get("KUBECONFIG")
    option = "" if is_found else f" --kubeconfig {path}"
    lines = (
        f"API server   {server.url}",
        f"nodes        {nodes} simulated",
        f"kubeconfig   {path}",
        "",
        "Use it from another terminal:",
        f"  {program} get nodes{option}",
        f"  export KUBECONFIG={path}",
        "  kubectl get nodes",
        "",
        "Ctrl-C ends the cluster and everything in it.",
        "ready",
    )
    click.echo("\n".join(lines))
    sys.stdout.flush()
