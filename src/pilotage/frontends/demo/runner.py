"""Runs the demo: embedded cluster, fifty nodes, the workload, the scheduler, all over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml
from rich.progress import Progress, TaskID

from pilotage.api.kinds import Kind, by_resource
from pilotage.calls.reports import Statistics
from pilotage.client.api import ApiClient, Json
from pilotage.framework.calls import CallResult
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.demo.summary import Summary, is_running, summarise
from pilotage.frontends.local import connect, create_nodes, create_objects
from pilotage.localcluster.nodes import from_pools
from pilotage.localcluster.process import ServerProcess
from pilotage.runtime.run import RunOptions, serve
from pilotage.runtime.scheduler import Scheduler

_SETTLED_SECONDS = 1.0
_LIMIT_SECONDS = 45.0
_POLL_SECONDS = 0.1


class DemoError(RuntimeError):
    """The demo could not be brought to its end."""


def demo_nodes() -> list[Json]:
    return from_pools(yaml.safe_load(_data("nodes.yaml")))


def demo_objects() -> list[Json]:
    return [document for document in yaml.safe_load_all(_data("workload.yaml")) if document]


def _data(name: str) -> str:
    return files("pilotage.frontends.demo").joinpath(name).read_text()


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


@dataclass(slots=True)
class PodLog:
    """What a watch showed of the pods: when each was first seen, bound and judged (loop seconds)."""

    seen: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    changed: float = 0.0

    def record(self, event: str, pod: Mapping[str, Any], now: float) -> None:
        uid = pod["metadata"]["uid"]
        if event == "DELETED":
            return
        self.seen.setdefault(uid, now)
        if is_running(pod) and uid not in self.running:
            self.running.add(uid)
            self.changed = now
        if pod["spec"].get("nodeName"):
            if uid not in self.bound:
                self.bound[uid], self.changed = now, now
            self.refused.discard(uid)
        elif uid not in self.refused and _is_refused(pod):
            self.refused.add(uid)
            self.changed = now

    @property
    def decided(self) -> int:
        return len(self.bound) + len(self.refused)

    def is_settled(self, expected: int) -> bool:
        return self.decided >= expected and len(self.running) >= len(self.bound)

    def bind_seconds(self) -> list[float]:
        return [time - self.seen[uid] for uid, time in self.bound.items()]


def _is_refused(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


async def run_demo(
    server: ServerProcess,
    settings: Settings,
    registry: Registry,
    progress: Progress,
) -> Summary:
    """The whole demo against a running server."""
    transport = connect(server)
    stop = asyncio.Event()
    started: asyncio.Future[Scheduler] = asyncio.get_running_loop().create_future()
    client = ApiClient(transport)
    try:
        await _create_nodes(client, progress)
        scheduling = asyncio.create_task(
            serve(transport, settings, registry, stop, RunOptions(), started.set_result)
        )
        try:
            return await _workload(client, scheduling, started, progress)
        finally:
            stop.set()
            await scheduling
    finally:
        await transport.close()


async def _create_nodes(client: ApiClient, progress: Progress) -> None:
    nodes = demo_nodes()
    bar = progress.add_task("Nodes created", total=len(nodes), detail="")
    await create_nodes(client, nodes, lambda: progress.advance(bar))


async def _workload(
    client: ApiClient,
    scheduling: asyncio.Task[None],
    started: asyncio.Future[Scheduler],
    progress: Progress,
) -> Summary:
    await asyncio.wait((scheduling, started), return_when=asyncio.FIRST_COMPLETED)
    if not started.done():
        await scheduling
        raise DemoError("the scheduler ended before it was ready")
    log = PodLog()
    watching = asyncio.create_task(_watch_pods(client, log))
    try:
        begin = asyncio.get_running_loop().time()
        await create_objects(client, demo_objects())
        await _until_settled(log, progress)
        elapsed = max(log.bound.values(), default=begin) - begin
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    pods = await client.list(kind("pods"))
    nodes = await client.list(kind("nodes"))
    calls = count_calls(started.result().statistics().calls)
    return summarise(pods["items"], nodes["items"], log.bind_seconds(), elapsed, calls)


async def _watch_pods(client: ApiClient, log: PodLog) -> None:
    clock = asyncio.get_running_loop()
    async for event, pod in client.watch(kind("pods")):
        log.record(event, pod, clock.time())


async def _until_settled(log: PodLog, progress: Progress) -> None:
    """Every expected pod runs or has its reason, and nothing has changed for a moment."""
    expected = sum(tree["spec"]["replicas"] for tree in demo_objects() if tree["kind"] == "Deployment")
    bar = progress.add_task("Pods decided", total=expected, detail="")
    clock = asyncio.get_running_loop()
    deadline = clock.time() + _LIMIT_SECONDS
    while not log.is_settled(expected) or clock.time() - log.changed < _SETTLED_SECONDS:
        _show(progress, bar, log)
        if clock.time() > deadline:
            raise DemoError(
                f"after {_LIMIT_SECONDS:.0f} s only {log.decided} of {expected} pods were decided and"
                f" {len(log.running)} of {len(log.bound)} bound ones ran: is this machine very busy?"
            )
        await asyncio.sleep(_POLL_SECONDS)
    _show(progress, bar, log)


def _show(progress: Progress, bar: TaskID, log: PodLog) -> None:
    text = f"{len(log.bound)} bound, {len(log.running)} running, {len(log.refused)} pending"
    progress.update(bar, completed=log.decided, description="Pods decided", detail=text)


def count_calls(calls: Statistics) -> dict[str, int]:
    """Requests sent, and wishes that needed none: merged into a newer one, or skipped as needless."""

    def ended(result: CallResult) -> int:
        return sum(count for (_, how), count in calls.ended.items() if how is result)

    return {
        "sent": sum(calls.requests.values()),
        "merged": ended(CallResult.OVERWRITTEN),
        "skipped": ended(CallResult.SKIPPED),
        "failed": ended(CallResult.FAILED),
    }
