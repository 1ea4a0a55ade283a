"""Wiring of a whole local cluster: embedded server process, simulated nodes, and the scheduler over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from pilotage.api.kinds import by_kind, by_resource
from pilotage.client.api import ApiClient, Json
from pilotage.client.credentials import StaticCredentials
from pilotage.client.http import HttpTransport
from pilotage.client.tls import Tls
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.localcluster.nodes import NodeTemplateError, generate
from pilotage.localcluster.process import ServerProcess
from pilotage.runtime.config import default_settings, load_settings

# The embedded server has no other clients to protect, so kube-scheduler's 50/100 would only slow people down.
LOCAL_QPS, LOCAL_BURST = 2000.0, 4000
_AT_ONCE = 16


def local_settings(config: str | None, registry: Registry) -> Settings:
    """A configuration file as it is, or the defaults without a client limit. Raises ConfigError."""
    if config is not None:
        return load_settings(config, registry)
    return replace(default_settings(registry), qps=LOCAL_QPS, burst=LOCAL_BURST)


def connect(server: ServerProcess) -> HttpTransport:
    """A new connection pool to the embedded server; belongs to the loop that uses it first."""
    return HttpTransport(StaticCredentials(server.url, server.token, Tls(ca_data=server.ca_pem)))


def load_nodes(count: int, template: str | Path | None) -> list[Json]:
    """`count` Node objects. Raises NodeTemplateError naming the file and the fault."""
    if template is None:
        return generate(count)
    try:
        document = yaml.safe_load(Path(template).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise NodeTemplateError(f"{template}: {' '.join(str(problem).split())}") from None
    if not isinstance(document, Mapping):
        raise NodeTemplateError(f"{template}: expected a Node or a document with pools")
    try:
        return generate(count, document)
    except NodeTemplateError as problem:
        raise NodeTemplateError(f"{template}: {problem}") from None


async def create_nodes(
    client: ApiClient, nodes: Sequence[Mapping[str, Any]], on_created: Callable[[], None] = lambda: None
) -> None:
    """Creates Node objects, a few at a time. Raises what the first refused one raises."""
    waiting = iter(nodes)
    kind = by_resource("nodes")
    assert kind is not None

    async def worker() -> None:
        for node in waiting:
            await client.create(kind, node)
            on_created()

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())


async def create_objects(client: ApiClient, objects: Iterable[Json]) -> None:
    """Creates objects one after another, in their order."""
    for tree in objects:
        kind = by_kind(tree["apiVersion"], tree["kind"])
        assert kind is not None, f"unknown kind {tree['kind']}"
        await client.create(kind, tree)
