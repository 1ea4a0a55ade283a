"""Nodes full of low-priority pods, then many pods of high priority: the whole scheduler, in virtual time.

Reports CPU microseconds per decision that preempts, requests per preemptor, and the virtual seconds until all
are bound. The server is the embedded one, in this process; nothing is timed but the engine's slices.

Run: `python tests/perf/preemption_storm.py [--nodes 5000] [--preemptors 1000] [--qps 50]`.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import numpy as np

from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import Attempt, PreemptionTried
from pilotage.testing.builders import priority_class
from pilotage.testing.harness import Harness
from pilotage.testing.requestlog import Record

PODS_PER_NODE = 4


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--preemptors", type=int, default=1000)
    parser.add_argument("--qps", type=int, default=50)
    return parser.parse_args()


class Stopwatch:
    """CPU seconds of each engine slice of one pod, by what came out of it."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {"preempting": [], "other": []}
        self._schedule = Engine.schedule

    def schedule(self, engine: Engine, now: float, limit: int) -> Any:
        begin = time.process_time()
        effects = self._schedule(engine, now, limit)
        took = time.process_time() - begin
        if any(isinstance(effect, PreemptionTried) and effect.victims for effect in effects):
            self.seconds["preempting"].append(took)
        elif any(isinstance(effect, Attempt) for effect in effects):
            self.seconds["other"].append(took)
        return effects


def fill(h: Harness, n_nodes: int) -> None:
    """Low-priority pods are created on their nodes, as a cluster that was there before would show them."""
    h.create(priority_class(1000))
    for index in range(n_nodes):
        h.create(h.node(f"n{index}", cpu=PODS_PER_NODE))
        for number in range(PODS_PER_NODE):
            h.create(h.pod(f"low{index}-{number}", cpu=1, grace=0, nodeName=f"n{index}"))


def main() -> None:
    args = arguments()
    watch = Stopwatch()
    Engine.schedule = lambda self, now, limit: watch.schedule(self, now, limit)  # type: ignore[method-assign]  # measured from outside
    client = {"qps": args.qps, "burst": 2 * args.qps}
    with Harness(
        seed=1, services=None, scheduler=False, settings={"clientConnection": client}, history=200_000
    ) as h:
        fill(h, args.nodes)
        h.start_scheduler()
        h.run_for(1)
        begin, bound = h.now, Bound(h)
        h.create(*(h.pod(f"high{index}", cpu=1, priority=1000, grace=0) for index in range(args.preemptors)))
        took = h.run_until(lambda: bound() == args.preemptors, timeout=4000)
        report(h, args, watch, begin, took)


class Bound:
    """How many binds were answered so far; each record is looked at once."""

    def __init__(self, h: Harness) -> None:
        self._log = h.faults.log
        self._open: list[Record] = []
        self._seen = len(self._log.records)
        self.count = 0

    def __call__(self) -> int:
        records = self._log.records
        new, self._seen = records[self._seen :], len(records)
        self._open = [*self._open, *(record for record in new if record.path.endswith("/binding"))]
        self.count += sum(1 for record in self._open if record.status == 201)
        self._open = [record for record in self._open if record.status is None]
        return self.count


def report(h: Harness, args: argparse.Namespace, watch: Stopwatch, begin: float, took: float) -> None:
    deleted = Counter(r.path.rpartition("/")[2] for r in h.requests(method="DELETE", client="scheduler"))
    since = h.requests(client="scheduler", since=begin)
    sent = Counter(f"{r.method} {_kind(r.path)}" for r in since if r.verb != "watch")
    preempting = np.array(watch.seconds["preempting"]) * 1e6
    other = np.array(watch.seconds["other"]) * 1e6
    half, most = np.percentile(preempting, [50, 99])
    n_deletes = sum(deleted.values())
    print(f"{args.nodes} nodes with {PODS_PER_NODE} pods each, {args.preemptors} preemptors, QPS {args.qps}")
    print(f"decisions that preempt: {preempting.size}, {half:.0f} us (median), {most:.0f} us (99 %) of CPU")
    print(f"other decisions: {other.size}, {np.median(other):.0f} us (median)")
    print(
        f"deletes: {n_deletes / args.preemptors:.3f} per preemptor; most for one pod {max(deleted.values())}"
    )
    print("requests: " + ", ".join(f"{kind} {count}" for kind, count in sent.most_common(8)))
    print(f"all bound after {took:.1f} virtual seconds")


def _kind(path: str) -> str:
    parts = path.split("/")
    if parts[-1] in ("binding", "status"):
        return f"{parts[-3]}/{parts[-1]}"
    return parts[-2] if parts[-1].startswith(("low", "high")) else parts[-1]


if __name__ == "__main__":
    main()
