"""From command line options to an API client, and from failures to one clear line and an exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from pilotage.client import credentials
from pilotage.client.api import ApiClient
from pilotage.client.errors import ApiError
from pilotage.client.http import HttpTransport
from pilotage.client.transport import TransportError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def last_kubeconfig() -> Path:
    """Where `pilotage up` leaves the kubeconfig of the newest embedded cluster."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "pilotage" / "kubeconfig"


def kubeconfig_options(command: F) -> F:
    """`--kubeconfig` and `--context`, as kubectl has them."""
    command = click.option("--context", default=None, help="Context of the kubeconfig to use.")(command)
    return click.option(
        "--kubeconfig",
        default=None,
        metavar="FILE",
        help="Default: $KUBECONFIG, else the cluster of the last `pilotage up`, else ~/.kube/config.",
    )(command)


def choose_kubeconfig(given: str | None) -> str | None:
    """The file that the option, the environment or the last `up` names; None leaves it to the library."""
    if given or os.environ.get("KUBECONFIG"):
        return given
    last = last_kubeconfig()
    return str(last) if last.is_file() else None


def call_api(
    kubeconfig: str | None, context: str | None, work: Callable[[ApiClient, str], Awaitable[T]]
) -> T:
    """Runs `work(client, default namespace)`. Failures become `click.ClickException`s."""

    async def session() -> T:
        access = credentials.load(choose_kubeconfig(kubeconfig), context)
        transport = HttpTransport(access)
        try:
            return await work(ApiClient(transport), access.namespace or "default")
        finally:
            await transport.close()

    try:
        return asyncio.run(session())
    except credentials.CredentialsError as problem:
        raise click.ClickException(str(problem)) from None
    except ApiError as problem:
        raise click.ClickException(f"Error from server ({problem.reason}): {problem.message}") from None
    except TransportError as problem:
        raise click.ClickException(f"no answer from the API server: {problem}") from None
