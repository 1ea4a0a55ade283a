"""Wiring of a whole local cluster: embedded server process, simulated nodes, and the scheduler over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilotage.api.kinds import Kind, by_kind, by_resource
from pilotage.client.api import ApiClient, Json
from pilotage.client.credentials import StaticCredentials
from pilotage.client.http import HttpTransport
from pilotage.client.tls import Tls
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.yamltext import YamlTextError, parse_documents, read_text
from pilotage.localcluster.kubelet.nodes import ANNOTATION
from pilotage.localcluster.nodes import NodeTemplateError, from_pools, generate
from pilotage.localcluster.process import ServerProcess
from pilotage.runtime.config import default_settings

# The embedded server has no other clients to protect, so kube-scheduler's 50/100 would only slow people down.
LOCAL_QPS, LOCAL_BURST = 2000.0, 4000
DEFAULT_NODES = 3
_AT_ONCE = 16
_READY_SECONDS, _POLL_SECONDS = 60.0, 0.05


class ClusterError(RuntimeError):
    """The local cluster cannot be set up; the text is one line that says why."""


def local_settings(registry: Registry) -> Settings:
    """The defaults without a client limit."""
    return replace(default_settings(registry), qps=LOCAL_QPS, burst=LOCAL_BURST)


def connect(server: ServerProcess) -> HttpTransport:
    """A new connection pool to the embedded server; belongs to the loop that uses it first."""
    return HttpTransport(StaticCredentials(server.url, server.token, Tls(ca_data=server.ca_pem)))


def write_kubeconfig(server: ServerProcess, path: Path) -> Path:
    """Raises ClusterError where it cannot be written or would overwrite somebody else's file."""
    try:
        return server.write_kubeconfig(path)
    except FileExistsError as problem:
        raise ClusterError(str(problem)) from None
    except OSError as problem:
        raise ClusterError(f"cannot write the kubeconfig {path}: {problem.strerror}") from None


def load_nodes(count: int | None, template: str | Path | None) -> list[Json]:
    """Node objects: `count` of them; without, as many as the template's pools have, else three.

    Raises NodeTemplateError naming the file and the fault.
    """
    if template is None:
        return generate(DEFAULT_NODES if count is None else count)
    document = _read_template(Path(template))
    try:
        if count is None and "pools" in document:
            return from_pools(document)
        return generate(DEFAULT_NODES if count is None else count, document)
    except NodeTemplateError as problem:
        raise NodeTemplateError(f"{template}: {problem}") from None


def _read_template(path: Path) -> Mapping[str, Any]:
    try:
        documents = parse_documents(read_text(path))
    except YamlTextError as problem:
        raise NodeTemplateError(f"{path}: {problem}") from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise NodeTemplateError(f"{path}: expected one document, a Node or `pools`")
    document: Mapping[str, Any] = documents[0]
    return document


def _kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


async def create_nodes(
    client: ApiClient, nodes: Sequence[Mapping[str, Any]], on_created: Callable[[], None] = lambda: None
) -> None:
    """Creates Node objects, a few at a time. Raises ApiError for the first refused one, TransportError."""
    waiting = iter(nodes)

    async def worker() -> None:
        for node in waiting:
            await client.create(_kind("nodes"), node)
            on_created()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(worker())
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None


async def wait_for_nodes(client: ApiClient) -> None:
    """Until every node that has a simulated kubelet is Ready. Raises ClusterError after a minute."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + _READY_SECONDS
    while True:
        nodes = (await client.list(_kind("nodes")))["items"]
        waiting = sum(not _is_settled(node) for node in nodes)
        if not waiting:
            return
        if clock.time() > deadline:
            raise ClusterError(f"{waiting} of {len(nodes)} nodes did not become Ready")
        await asyncio.sleep(_POLL_SECONDS)


def _is_settled(node: Mapping[str, Any]) -> bool:
    if (node["metadata"].get("annotations") or {}).get(ANNOTATION) == "none":
        return True
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def create_objects(client: ApiClient, objects: Iterable[Json]) -> None:
    """Creates objects one after another, in their order."""
    for tree in objects:
        kind = by_kind(tree["apiVersion"], tree["kind"])
        assert kind is not None, f"unknown kind {tree['kind']}"
        await client.create(kind, tree)
