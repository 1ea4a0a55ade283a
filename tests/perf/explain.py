"""How long an explanation takes: N nodes, M bound pods, one pod that fits nowhere.

Usage: `.venv/bin/python tests/perf/explain.py --nodes 5000 --pods 20000`. Prints seconds for reading
the objects into an engine and for the explanation itself, what-ifs included.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from pilotage.frontends.explain.analysis import explain
from pilotage.frontends.explain.state import pod_state
from pilotage.frontends.explain.text import lines
from pilotage.frontends.snapshot.loading import load
from pilotage.frontends.snapshot.objects import snapshot_of_trees
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings
from pilotage.state.podinfo import PodInfo
from pilotage.testing import builders as b

ZONE = "topology.kubernetes.io/zone"
SPOT = {"key": "spot", "value": "a", "effect": "NoSchedule"}


def trees(nodes: int, pods: int) -> list[dict[str, Any]]:
    """A fifth of the nodes tainted, half of them with the wrong disk, all of them rather full."""
    made = [
        b.node(
            f"node-{i}",
            cpu=8,
            zone=f"zone-{i % 3}",
            labels={"disk": "ssd" if i % 2 else "hdd"},
            taints=[SPOT] if i % 5 == 0 else (),
        )
        for i in range(nodes)
    ]
    for number in range(pods):
        pod = b.pod(f"pod-{number}", cpu="1500m", memory="1Gi", labels={"app": "web"})
        pod["spec"]["nodeName"] = f"node-{number % nodes}"
        made.append(pod)
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    wanted = b.pod(
        "wanted",
        cpu=6,
        labels={"app": "web"},
        node_selector={"disk": "ssd"},
        topologySpreadConstraints=[spread],
    )
    return [*made, wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20000)
    options = parser.parse_args()
    registry = default_registry()
    snapshot = snapshot_of_trees(trees(options.nodes, options.pods), "bench")
    pod = snapshot.pod("default", "wanted")
    assert pod is not None
    begin = time.perf_counter()
    engine = load(snapshot, default_settings(registry), registry, time.time())
    loaded = time.perf_counter()
    found = explain(engine, PodInfo(pod), pod_state(pod, 0))
    shown = lines(found)
    end = time.perf_counter()
    sys.stdout.write("\n".join(shown) + "\n\n")
    sys.stdout.write(f"loading {loaded - begin:.2f} s, explaining {end - loaded:.2f} s\n")


if __name__ == "__main__":
    main()
