"""The whole loop over HTTP: an embedded cluster of N nodes, M pods from Deployments, until all are bound.

Usage: `.venv/bin/python tests/perf/end_to_end.py --nodes 1000 --pods 5000`. Checks that every pod is bound
exactly once and no node is over its allocatable; prints pods/s and the scheduler's own microseconds per pod.
Server and scheduler share the machine's cores: read ratios, not absolutes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pilotage.api.kinds import by_resource
from pilotage.api.quantity import milli_value, value
from pilotage.client.api import ApiClient
from pilotage.frontends.local import connect, create_nodes, local_settings
from pilotage.localcluster.nodes import generate
from pilotage.localcluster.process import ServerProcess
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.run import RunOptions, loop_factory, serve
from pilotage.runtime.scheduler import Scheduler
from pilotage.scheduling.messages import Effect, Event

PODS, NODES = by_resource("pods"), by_resource("nodes")
CREATORS = 8


@dataclass
class Seen:
    """Per pod UID the nodes that a watch showed it on: more than one would be a double bind."""

    nodes: dict[str, set[str]] = field(default_factory=dict)

    @property
    def bound(self) -> int:
        return sum(1 for names in self.nodes.values() if names)


class Timing:
    """Observer: seconds spent deciding and handling facts."""

    def __init__(self) -> None:
        self.deciding = self.handling = 0.0
        self.decisions = 0

    def effect(self, effect: Effect, now: float) -> None: ...

    def handled(self, event: Event, seconds: float) -> None:
        self.handling += seconds

    def decided(self, seconds: float) -> None:
        self.deciding += seconds
        self.decisions += 1


def pod(index: int) -> dict[str, Any]:
    requests = {"cpu": ("100m", "250m", "500m")[index % 3], "memory": ("128Mi", "512Mi", "1Gi")[index % 3]}
    container = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": requests}}
    name = f"load-{index}"
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": f"a{index % 20}"}},
        "spec": {"containers": [container]},
    }


async def watch(client: ApiClient, seen: Seen) -> None:
    assert PODS is not None
    async for _, tree in client.watch(PODS):
        names = seen.nodes.setdefault(tree["metadata"]["uid"], set())
        if node := tree["spec"].get("nodeName"):
            names.add(node)


async def create_pods(client: ApiClient, count: int) -> None:
    waiting = iter(range(count))
    assert PODS is not None
    kind = PODS

    async def worker() -> None:
        for index in waiting:
            await client.create(kind, pod(index))

    async with asyncio.TaskGroup() as group:
        for _ in range(CREATORS):
            group.create_task(worker())


def check(pods: list[dict[str, Any]], nodes: list[dict[str, Any]], seen: Seen, expected: int) -> list[str]:
    problems = []
    twice = sum(1 for names in seen.nodes.values() if len(names) > 1)
    if twice:
        problems.append(f"{twice} pods were seen on more than one node")
    unbound = expected - sum(1 for tree in pods if tree["spec"].get("nodeName"))
    if unbound:
        problems.append(f"{unbound} pods are not bound")
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for tree in pods:
        requests = tree["spec"]["containers"][0]["resources"]["requests"]
        cpu[tree["spec"].get("nodeName", "")] += milli_value(requests["cpu"])
        memory[tree["spec"].get("nodeName", "")] += value(requests["memory"])
    for node in nodes:
        name, room = node["metadata"]["name"], node["status"]["allocatable"]
        if cpu[name] > milli_value(room["cpu"]) or memory[name] > value(room["memory"]):
            problems.append(f"{name} is over its allocatable: {cpu[name]}m cpu, {memory[name]} bytes")
    return problems


async def main_async(server: ServerProcess, n_nodes: int, n_pods: int) -> int:
    assert PODS is not None
    assert NODES is not None
    transport, registry = connect(server), build_registry()
    client, stop, timing, seen = ApiClient(transport), asyncio.Event(), Timing(), Seen()
    await create_nodes(client, generate(n_nodes))
    ready: asyncio.Future[Scheduler] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        serve(transport, local_settings(registry), registry, stop, RunOptions(), ready.set_result)
    )
    scheduler = await ready
    scheduler.add_observer(timing)
    watching = asyncio.create_task(watch(client, seen))
    begin, cpu = time.perf_counter(), time.process_time()
    creating = asyncio.create_task(create_pods(client, n_pods))
    while seen.bound < n_pods and time.perf_counter() - begin < 600:
        await asyncio.sleep(0.25)
        if sys.stderr.isatty():
            print(f"\r{seen.bound}/{n_pods} bound", end="", file=sys.stderr, flush=True)
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    await creating
    watching.cancel()
    pods = (await client.list(PODS))["items"]
    problems = check(pods, (await client.list(NODES))["items"], seen, n_pods)
    calls = scheduler.statistics().calls
    stop.set()
    await running
    await transport.close()
    print(f"\n{n_nodes} nodes, {n_pods} pods: {n_pods / elapsed:.0f} pods/s end to end ({elapsed:.1f} s)")
    per_pod = timing.deciding / max(timing.decisions, 1) * 1e6
    print(f"engine: {per_pod:.0f} us per decision, {timing.handling / n_pods * 1e6:.0f} us per pod for facts")
    print(f"this process (scheduler, creator and watcher): {cpu / n_pods * 1e6:.0f} us CPU per pod")
    print(f"requests by call type: {dict(calls.requests)}")
    for problem in problems:
        print(f"FAILED: {problem}")
    print("every pod bound exactly once, no node over its allocatable" if not problems else "")
    return 1 if problems else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    options = parser.parse_args()
    with ServerProcess.start() as server, asyncio.Runner(loop_factory=loop_factory()) as runner:
        sys.exit(runner.run(main_async(server, options.nodes, options.pods)))


if __name__ == "__main__":
    main()
