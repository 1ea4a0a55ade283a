"""Engine alone: microseconds per pod for a few workloads, decisions and bookkeeping, no IO.

Usage: `make bench`, or `.venv/bin/python tests/perf/engine.py --nodes 1000`. Every bind is answered
at once with success and the informer's bound pod. Read ratios between rows of one run, not absolutes.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.framework.calls import BindPod, CallResult, Outcome
from pilotage.localcluster.nodes import generate
from pilotage.localcluster.rest.pod_admission import complete_pod
from pilotage.runtime.config import default_settings
from pilotage.runtime.metrics import Metrics
from pilotage.runtime.plugins_loading import build_registry
from pilotage.runtime.timing import time_hints, time_points
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import CallFinished, Effect, Submit, Upserted

Tree = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DONE = Outcome(CallResult.DONE)


def pod_tree(index: int, app: str, **spec: Any) -> Tree:
    requests = {"cpu": "100m", "memory": "128Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{index}", "namespace": "default", "uid": f"u{index}", "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"requests": requests}}], **spec},
    }


def basic(index: int) -> Tree:
    return pod_tree(index, "basic")


def node_affinity(index: int) -> Tree:
    zone = {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod_tree(index, "affine", affinity=affinity)


def spread(index: int) -> Tree:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    return pod_tree(index, "spread", topologySpreadConstraints=[constraint])


def soft_anti_affinity(index: int) -> Tree:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "soft"}}}
    preferred = [{"weight": 10, "podAffinityTerm": term}]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return pod_tree(index, "soft", affinity=affinity)


def unschedulable(index: int) -> Tree:
    tree = pod_tree(index, "big")
    tree["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "64"}
    return tree


WORKLOADS: dict[str, Callable[[int], Tree]] = {
    "basic": basic,
    "node affinity": node_affinity,
    "zone spread": spread,
    "soft anti-affinity": soft_anti_affinity,
    "unschedulable": unschedulable,
}


def view(resource: str, tree: Tree) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, tree)


def pods(make: Callable[[int], Tree], count: int) -> Iterator[tuple[Any, Tree]]:
    for index in range(count):
        tree = make(index)
        complete_pod(tree, ())
        yield view("pods", tree), tree


def answer_binds(engine: Engine, effects: list[Effect], trees: dict[str, Tree], now: float) -> int:
    """Answers every awaited bind with success and shows the bound pod; returns how many there were."""
    bound = 0
    for effect in effects:
        if not isinstance(effect, Submit) or not effect.awaited:
            continue
        call = effect.call
        assert isinstance(call, BindPod)
        engine.handle(CallFinished(effect.ticket, DONE), now)
        tree = trees[call.key.uid]
        tree["spec"]["nodeName"] = call.node
        engine.handle(Upserted("pods", view("pods", tree)), now)
        bound += 1
    return bound


def observed_engine(metrics: Metrics) -> Engine:
    """As `Metrics.attach` leaves one, without a driver."""
    engine = Engine(default_settings(), metrics.timed(build_registry()), 0)
    for profile in engine.profiles.values():
        time_points(profile, metrics.plugins)
    engine.ask_hints_through(time_hints(metrics.plugins.hint_ran))
    return engine


def measure(
    make: Callable[[int], Tree], n_nodes: int, n_pods: int, metrics: Metrics | None = None
) -> tuple[float, float, int]:
    """(microseconds per pod deciding, microseconds per pod in all, pods bound)"""
    engine = observed_engine(metrics) if metrics else Engine(default_settings(), build_registry(), 0)
    for node in generate(n_nodes):
        node["status"]["allocatable"]["cpu"] = "32"
        engine.handle(Upserted("nodes", view("nodes", node)), 0.0)
    return measure_on(engine, make, n_pods, metrics)


def measure_on(
    engine: Engine, make: Callable[[int], Tree], n_pods: int, metrics: Metrics | None = None
) -> tuple[float, float, int]:
    """As `measure`, on an engine that knows its nodes."""
    trees: dict[str, Tree] = {}
    arrivals = []
    for pod, tree in pods(make, n_pods):
        trees[pod.metadata.uid] = tree
        arrivals.append(Upserted("pods", pod))
    gc.collect()
    gc.freeze()
    begin = time.perf_counter()
    for event in arrivals:
        engine.handle(event, 1.0)
    deciding, bound, now = 0.0, 0, 1.0
    while engine.has_work:
        start = time.perf_counter()
        effects = engine.schedule(now, 100)
        if metrics is not None:
            for effect in effects:
                metrics.effect(effect, now)
        deciding += time.perf_counter() - start
        bound += answer_binds(engine, effects, trees, now)
    total = time.perf_counter() - begin
    gc.unfreeze()
    engine.check_invariants()
    return deciding / n_pods * 1e6, total / n_pods * 1e6, bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--workload", choices=[*WORKLOADS], default=None)
    parser.add_argument("--metrics", action="store_true", help="as with /metrics: what measuring costs")
    options = parser.parse_args()
    print(f"{options.nodes} nodes, {options.pods} pods")
    print(f"{'workload':20} {'decide us/pod':>14} {'all us/pod':>12} {'bound':>7}")
    for name, make in WORKLOADS.items():
        if options.workload in (None, name):
            decide, total, bound = measure(
                make, options.nodes, options.pods, Metrics() if options.metrics else None
            )
            print(f"{name:20} {decide:14.0f} {total:12.0f} {bound:7}", flush=True)


if __name__ == "__main__":
    main()
