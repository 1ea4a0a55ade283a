"""A storm in real time over HTTP, on an embedded server or on any cluster.

Laws: three processes share the machine (server, scheduler, measuring client), as they do where the baseline
was measured; on somebody's cluster everything made carries one label and is gone at the end, also after
Ctrl-C, and nodes are made only when asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pilotage.api.quantity import milli_value
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.client.credentials import load
from pilotage.client.http import HttpTransport
from pilotage.frontends.bench import objects
from pilotage.frontends.bench.cleaning import remove
from pilotage.frontends.bench.driving import Progress, create, drive, kind, until_accepted
from pilotage.frontends.bench.objects import Place
from pilotage.frontends.bench.report import Report, make_report
from pilotage.frontends.bench.scenario import Storm
from pilotage.frontends.bench.schedulerprocess import scheduler_process
from pilotage.localcluster.process import ServerProcess

Warn: TypeAlias = Callable[[str], None]
_HISTORY = 200_000
_REQUEST_SECONDS = 120.0  # thousands of pods are deleted by one request


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster, and whether nodes may be made there. `scheduler`: one that runs there is measured."""

    kubeconfig: str
    context: str | None = None
    creates_nodes: bool = False
    scheduler: str = ""
    is_ours: bool = False  # nothing in it outlives the run


class NoNodesError(RuntimeError):
    """A cluster without nodes, and none may be made."""


def run_embedded(storm: Storm, timeout: float, show: Progress) -> Report:
    """On a server that lives as long as the run, without kubelets and controllers."""
    with (
        tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder,
        ServerProcess.start(services=False, history=_HISTORY) as server,
    ):
        path = server.write_kubeconfig(Path(folder) / "kubeconfig")
        return run_on(Target(str(path), creates_nodes=True, is_ours=True), storm, timeout, show)


def run_on(
    target: Target, storm: Storm, timeout: float, show: Progress, warn: Warn = lambda text: None
) -> Report:
    """`warn` is told what could not be removed.

    Raises ApiError, TransportError, CredentialsError, SchedulerError, NoNodesError.
    """
    return asyncio.run(_run_on(target, storm, timeout, show, warn))


async def _run_on(target: Target, storm: Storm, timeout: float, show: Progress, warn: Warn) -> Report:
    transport = HttpTransport(load(target.kubeconfig, target.context), user_agent="pilotage-bench")
    client = ApiClient(transport, field_manager="pilotage-bench", timeout=_REQUEST_SECONDS)
    try:
        place = await _place(client, target, storm)
        async with _borrowed(client, target, storm, place, warn):
            return await _measured(client, target, storm, place, timeout, show)
    finally:
        await transport.close()


@contextlib.asynccontextmanager
async def _borrowed(
    client: ApiClient, target: Target, storm: Storm, place: Place, warn: Warn
) -> AsyncIterator[None]:
    """The run's namespace, once it takes pods; all that was made is gone afterwards."""
    is_refused = False
    try:
        try:
            await create(client, [objects.namespace(place)])
        except ApiError:
            is_refused = True
            raise
        await until_accepted(client, objects.good_pods(storm, place)[0])
        yield
    finally:
        if not target.is_ours and not is_refused and (left := await remove(client, place)):
            warn(left)


async def _measured(
    client: ApiClient, target: Target, storm: Storm, place: Place, timeout: float, show: Progress
) -> Report:
    if target.creates_nodes:
        await create(client, objects.nodes(storm, place))
    where = f"{'embedded server' if target.is_ours else 'the cluster of the kubeconfig'}, real time"
    if target.scheduler:
        times = await drive(client, storm, place, timeout, show)
        return make_report(storm, times, None, place=where, scheduler=target.scheduler)
    async with scheduler_process(storm, target.kubeconfig, target.context) as scheduler:
        times = await drive(client, storm, place, timeout, show)
        traffic = await scheduler.stop()
    return make_report(storm, times, traffic, place=where)


async def _place(client: ApiClient, target: Target, storm: Storm) -> Place:
    place = Place(secrets.token_hex(4), scheduler=target.scheduler or objects.SCHEDULER)
    if target.creates_nodes:
        return place
    nodes = (await client.list(kind("nodes")))["items"]
    if not nodes:
        raise NoNodesError("this cluster has no nodes: --create-nodes makes some for the time of the run")
    return replace(place, has_own_nodes=False, bad_cpu=f"{too_much(nodes, storm)}m")


def too_much(nodes: list[Json], storm: Storm) -> int:
    """Milli-CPU that fit on none of the nodes."""
    most = max(milli_value((node["status"].get("allocatable") or {}).get("cpu", "0")) for node in nodes)
    return max(milli_value(storm.bad_cpu), 2 * most)
