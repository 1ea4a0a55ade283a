"""Where `explain` and `diff` get a cluster from: a dump file, or a cluster that is asked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import rich_click as click

from pilotage.client.api import ApiClient
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.cli.configuring import read_config
from pilotage.frontends.cli.connection import call_api, kubeconfig_options
from pilotage.frontends.snapshot.dump import read_dump
from pilotage.frontends.snapshot.live import read_cluster, read_events
from pilotage.frontends.snapshot.objects import Snapshot, SnapshotError
from pilotage.runtime.config import default_settings

F = TypeVar("F", bound=Callable[..., Any])


def snapshot_options(command: F) -> F:
    """`--dump`, `--kubeconfig` and `--context`."""
    dump = click.option(
        "--dump",
        default=None,
        metavar="FILE",
        help="Objects from a file (`kubectl get nodes,pods,... -A -o json`), - for standard input, "
        "instead of a cluster.",
    )
    return dump(kubeconfig_options(command))


def read_snapshot(
    dump: str | None, kubeconfig: str | None, context: str | None, about: tuple[str | None, str] | None = None
) -> tuple[Snapshot, str]:
    """(the cluster, the default namespace). `about`: a pod whose events are wanted. Raises ClickException."""
    if dump is not None:
        if kubeconfig or context:
            raise click.UsageError("--dump goes together neither with --kubeconfig nor with --context")
        try:
            return read_dump(dump), "default"
        except SnapshotError as problem:
            raise click.ClickException(str(problem)) from None

    async def work(client: ApiClient, default: str) -> tuple[Snapshot, str]:
        snapshot = await read_cluster(client)
        if about is not None:
            namespace, name = about
            snapshot = replace(snapshot, events=await read_events(client, namespace or default, name))
        return snapshot, default

    return call_api(kubeconfig, context, work)


def settings_of(config: str | None, registry: Registry) -> Settings:
    """The file's settings, or the defaults. Raises ClickException."""
    return default_settings(registry) if config is None else read_config(config, registry).settings
