"""From command line options to an API client, and from its failures to one clear line."""

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


def last_kubeconfig() -> Path:
    """Where `pilotage up` leaves the kubeconfig of the newest embedded cluster."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "pilotage" / "kubeconfig"


def kubeconfig_options(command: F) -> F:
    """`--kubeconfig` and `--context`, as kubectl has them."""
    command = click.option("--context", default=None, metavar="NAME", help="Context of the kubeconfig.")(
        command
    )
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
    chosen = choose_kubeconfig(kubeconfig)
    try:
        access = credentials.load(chosen, context)
    except credentials.CredentialsError as problem:
        raise click.ClickException(str(problem)) from None

    async def session() -> T:
        transport = HttpTransport(access)
        try:
            return await work(ApiClient(transport), access.namespace or "default")
        finally:
            await transport.close()

    try:
        return asyncio.run(session())
    except ApiError as problem:
        raise click.ClickException(from_server(problem)) from None
    except TransportError as problem:
        raise click.ClickException(unreachable(access.server, problem, chosen)) from None


def from_server(problem: ApiError) -> str:
    """A refusal in kubectl's words."""
    reason = f" ({problem.reason})" if problem.reason else ""
    return f"Error from server{reason}: {problem.message}"


def unreachable(server: str, problem: TransportError, kubeconfig: str | None) -> str:
    """Why no answer came, and what to do where that is known."""
    cause = problem.__cause__
    cause = getattr(cause, "os_error", cause)
    if isinstance(cause, ConnectionRefusedError):
        if kubeconfig == str(last_kubeconfig()):
            return "the cluster of the last 'pilotage up' has ended: start one with 'pilotage up'"
        return f"nothing listens at {server}: is the cluster of this kubeconfig running?"
    if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
        return f"no answer from {server}: {os.strerror(cause.errno)}"
    return f"no answer from {server}: {problem}"
