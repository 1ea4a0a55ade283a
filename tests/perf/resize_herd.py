"""Thousands of deferred resizes: plugin calls per event, and what they cost ordinary pods.

Usage: `.venv/bin/python tests/perf/resize_herd.py` (5,000 nodes, 2,000 deferred pods). Counts are exact;
of times read the ratio alone, which comes from turns of one run.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from engine import basic, measure_on, pod_tree, view

from pilotage.framework.events import HintFn
from pilotage.localcluster.nodes import generate
from pilotage.localcluster.rest.pod_admission import complete_pod
from pilotage.runtime.config import default_settings
from pilotage.runtime.plugins_loading import build_registry
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import Deleted, Tick, Upserted
from pilotage.scheduling.queue_hints import HintResult, Occurrence, ask_hint
from pilotage.scheduling.queue_record import Record

Tree = dict[str, Any]
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def held(index: int, node: str, wants: str, has: str, *conditions: Tree) -> Tree:
    """A pod on a node that has `has` CPU and wants `wants`."""
    tree = pod_tree(index, "held", nodeName=node)
    complete_pod(tree, ())
    tree["spec"]["priority"] = 10
    tree["spec"]["containers"][0]["resources"]["requests"]["cpu"] = wants
    amounts = {"cpu": has, "memory": "128Mi"}
    container = {"name": "c", "allocatedResources": amounts, "resources": {"requests": amounts}}
    tree["status"] = {"phase": "Running", "conditions": list(conditions), "containerStatuses": [container]}
    return tree


class Herd:
    """`n_deferred` pods, `per_node` on a node, on nodes that equally important pods fill up."""

    def __init__(self, n_nodes: int, n_deferred: int, per_node: int) -> None:
        self.engine = Engine(default_settings(), build_registry(), 0)
        self.calls: Counter[str] = Counter()
        self.nodes = list(generate(n_nodes))
        for node in self.nodes:
            node["status"]["allocatable"]["cpu"] = "32"
            self.engine.handle(Upserted("nodes", view("nodes", node)), 0.0)
        self.full = [node["metadata"]["name"] for node in self.nodes[: n_deferred // per_node]]
        for index, tree in enumerate(self._pods(per_node)):
            tree["metadata"]["resourceVersion"] = str(index + 1)
            self.engine.handle(Upserted("pods", view("pods", tree)), 0.0)
        self.engine.ask_hints_through(self._ask)
        self.version = 10 * n_deferred
        self.now = 1.0

    def _pods(self, per_node: int) -> Iterator[Tree]:
        number = 1_000_000
        for node in self.full:
            yield held(number, node, "16", "16")
            for _ in range(per_node):
                number += 1
                yield held(number, node, "20", f"{16000 // per_node}m", DEFERRED)
            number += 1

    def _ask(self, plugin: str, hint: HintFn | None, record: Record, occurrence: Occurrence) -> HintResult:
        self.calls[plugin] += 1
        return ask_hint(plugin, hint, record, occurrence)

    def park(self) -> float:
        """Microseconds per cycle of a deferred pod."""
        begin, cycles = time.perf_counter(), self.engine.statistics().active
        while self.engine.has_work:
            self.engine.schedule(self.now, 100)
        return (time.perf_counter() - begin) / max(1, cycles) * 1e6

    def event(self, event: Upserted | Deleted) -> tuple[int, float]:
        """Plugin calls and microseconds of one event."""
        self.calls.clear()
        begin = time.perf_counter()
        self.engine.handle(event, self.now)
        found = self.calls.total(), (time.perf_counter() - begin) * 1e6
        self.now += 12.0
        self.engine.handle(Tick(), self.now)
        self.park()
        return found

    def node_grows(self, name: str) -> Upserted:
        self.version += 1
        tree = next(node for node in self.nodes if node["metadata"]["name"] == name)
        tree["metadata"]["resourceVersion"] = str(self.version)
        tree["status"]["allocatable"]["memory"] = f"{100 + self.version % 7}Gi"
        return Upserted("nodes", view("nodes", tree))

    def pod_leaves(self, index: int, node: str) -> Deleted:
        self.version += 1
        tree = held(index, node, "1m", "1m")
        tree["metadata"]["resourceVersion"] = str(self.version)
        self.engine.handle(Upserted("pods", view("pods", tree)), self.now)
        return Deleted("pods", view("pods", tree))


def report_events(herd: Herd, n_events: int) -> None:
    free = [node["metadata"]["name"] for node in herd.nodes[len(herd.full) :]]
    for label, names in (("with deferred pods", herd.full), ("without", free)):
        for kind in ("node grows", "pod leaves"):
            found = []
            for index in range(n_events):
                name = names[index % len(names)]
                event = herd.node_grows(name) if kind == "node grows" else herd.pod_leaves(index, name)
                found.append(herd.event(event))
            calls = [count for count, _ in found]
            micros = statistics.median(spent for _, spent in found)
            average = sum(calls) / len(calls)
            print(f"{kind} on a node {label:20} {average:8.2f} {max(calls):6} {micros:10.0f}", flush=True)


def throughput(n_nodes: int, n_deferred: int, n_pods: int, turns: int) -> None:
    """Ordinary pods per second without and with deferred ones, turn about: `n_pods` on each in a turn."""
    herds = [Herd(n_nodes, number, 1) for number in (0, n_deferred)]
    for herd in herds:
        herd.engine.ask_hints_through(ask_hint)
        herd.park()
    spent: list[list[float]] = [[], []]
    for turn in range(turns):
        gc.collect()
        for herd, found in zip(herds, spent, strict=True):
            found.append(measure_on(herd.engine, partial(_later, turn * n_pods), n_pods)[1])
    without, beside = (statistics.median(found[1:]) for found in spent)
    print(f"ordinary pods: {without:.0f} us each alone, {beside:.0f} us beside the deferred ones")
    print(f"throughput beside / alone: {without / beside:.2f} (median of {turns - 1} turns)")


def _later(first: int, index: int) -> Tree:
    return basic(first + index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--deferred", type=int, default=2000)
    parser.add_argument("--pods", type=int, default=200, help="ordinary pods of a turn, for the ratio")
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--turns", type=int, default=11)
    options = parser.parse_args()
    print(f"{options.nodes} nodes, {options.deferred} deferred pods")
    for per_node in (1, 20):
        herd = Herd(options.nodes, options.deferred, per_node)
        print(f"\n{per_node} on a node: {herd.park():.0f} us per cycle of a deferred pod")
        print(f"{'event':44} {'calls':>8} {'most':>6} {'median us':>10}")
        report_events(herd, options.events)
    print()
    throughput(options.nodes, options.deferred, options.pods, options.turns)


if __name__ == "__main__":
    main()
