"""Microseconds per preemption decision: every node full of low-priority pods.

Run: `python tests/perf/preemption.py [nodes]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from pilotage.framework.profile import Profile
from pilotage.scheduling.aftermath import after_rejection
from pilotage.scheduling.decide import decide_now
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from statekit import cluster, node, pod, profile

PODS_PER_NODE = 4
DECISIONS = 200


def full_cluster(n_nodes: int) -> ClusterState:
    nodes = [node(f"n{i}") for i in range(n_nodes)]
    pods = [pod(f"low{i}", {"cpu": "1"}, on=f"n{i // PODS_PER_NODE}") for i in range(n_nodes * PODS_PER_NODE)]
    return cluster(*nodes, *pods)


def preempt(state: ClusterState, built: Profile, info: PodInfo, rng: np.random.Generator) -> float:
    """Decides, removes the victims and nominates the pod. CPU seconds of PostFilter."""
    decision = decide_now(built, state, info, rng)
    began = time.process_time()
    after = after_rejection(built, state.nodes, info, decision)
    took = time.process_time() - began
    assert after.preemption is not None, after.message
    assert len(after.preemption.units) == 1
    for unit in after.preemption.units:
        for victim in unit.pods:
            state.delete_pod(victim.uid)
    state.nominations.add(info, after.preemption.node)
    return took


def durations(n_nodes: int) -> Iterator[float]:
    state, rng = full_cluster(n_nodes), np.random.default_rng(0)
    built = profile(state)
    for index in range(DECISIONS):
        info = pod(f"high{index}", {"cpu": "1"}, priority=100)
        state.upsert_pod(info)
        yield preempt(state, built, info, rng) * 1e6


def main() -> None:
    n_nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    first, *then = durations(n_nodes)
    half, most = np.percentile(then, [50, 99])
    print(
        f"{n_nodes} nodes, {PODS_PER_NODE} pods each: PostFilter {half:.0f} us (median), {most:.0f} us (99 %)"
    )
    print(f"first decision {first:.0f} us")


if __name__ == "__main__":
    main()
