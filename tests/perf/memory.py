"""Memory and time to hold a large cluster: lists decoded from JSON pages and handed to the engine.

Usage: `.venv/bin/python tests/perf/memory.py --nodes 5000 --pods 100000`. What a reflector keeps
(`KnownObjects`) and what the engine keeps are both in the figure, as in a running scheduler.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pilotage.api.kinds import by_resource
from pilotage.client.decoding import LeanDecoder
from pilotage.client.known import KnownObjects, Seen
from pilotage.runtime.config import default_settings
from pilotage.runtime.informers import as_event
from pilotage.runtime.plugins_loading import build_registry
from pilotage.scheduling.engine import Engine

Tree = dict[str, Any]
PAGE = 500
MIB = 1024 * 1024
APPS = 500
MOMENT = "2026-01-01T00:00:00Z"


def node(index: int) -> Tree:
    name = f"node-{index:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
    }
    offered = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"}
    conditions = [
        {"type": kind, "status": "False", "reason": f"No{kind}", "message": "kubelet is fine"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example.com/app-{(index + i) % APPS}:v1"], "sizeBytes": 100 * MIB + i}
        for i in range(25)
    ]
    meta = metadata(name, "", f"node-uid-{index}", index + 1, labels)
    status = {"capacity": offered, "allocatable": offered, "conditions": conditions, "images": images}
    return {"metadata": meta, "spec": {"providerID": f"aws:///{name}"}, "status": status}


def metadata(name: str, namespace: str, uid: str, version: int, labels: dict[str, str]) -> Tree:
    return {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": MOMENT,
        "labels": labels,
        "annotations": {"kubernetes.io/config.seen": f"{MOMENT}.{version}", "checksum/config": f"{uid:>064}"},
    }


def pod(index: int, n_nodes: int) -> Tree:
    """A running replica of one of 500 Deployments: one container and, in a fifth of them, a sidecar."""
    app = index % APPS
    labels = {"app": f"app-{app}", "pod-template-hash": f"{app:010x}", "team": f"team-{app % 20}"}
    meta = metadata(
        f"app-{app}-{app:010x}-{index:05x}", f"ns-{app % 50}", f"{index:036x}", 10**6 + index, labels
    )
    meta["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"app-{app}-{app:010x}",
            "uid": f"{app:036x}",
            "controller": True,
        }
    ]
    return {"metadata": meta, "spec": _spec(index, app, n_nodes), "status": _status(index)}


def _spec(index: int, app: int, n_nodes: int) -> Tree:
    amounts = {"cpu": f"{100 + app % 7 * 50}m", "memory": f"{128 + app % 5 * 64}Mi"}
    container: Tree = {
        "name": "main",
        "image": f"registry.example.com/app-{app}:v1",
        "resources": {"requests": amounts, "limits": amounts},
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"KEY_{i}", "value": f"value-{i}"} for i in range(10)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
    }
    spec: Tree = {
        "nodeName": f"node-{index % n_nodes:05}",
        "schedulerName": "default-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
        ],
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
            for key in ("not-ready", "unreachable")
        ],
    }
    if app % 5 == 0:
        spec["initContainers"] = [{**container, "name": "proxy", "restartPolicy": "Always"}]
    _add_placement(spec, app)
    return spec


def _add_placement(spec: Tree, app: int) -> None:
    """A tenth of the apps spread over zones, a tenth keep apart by host."""
    selector = {"matchLabels": {"app": f"app-{app}"}}
    if app % 10 == 1:
        zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}
        spec["topologySpreadConstraints"] = [{**zone, "whenUnsatisfiable": "DoNotSchedule"}]
    if app % 10 == 2:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        preferred = [{"weight": 100, "podAffinityTerm": term}]
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _status(index: int) -> Tree:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "startTime": MOMENT,
        "podIP": f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": MOMENT} for kind in kinds],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "image": "registry.example.com/app:v1",
                "containerID": f"containerd://{index:064x}",
                "allocatedResources": {"cpu": "100m", "memory": "128Mi"},
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            }
        ],
    }


def pages(kind: str, draw: Callable[[int], Tree], count: int) -> Iterator[bytes]:
    """List answers as an API server gives them, without kind in the items."""
    for first in range(0, count, PAGE):
        items = [draw(index) for index in range(first, min(first + PAGE, count))]
        tree = {
            "kind": f"{kind}List",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": items,
        }
        yield msgspec.json.encode(tree)


class Loaded:
    """What a running scheduler keeps of two kinds."""

    def __init__(self) -> None:
        self.engine = Engine(default_settings(), build_registry(), 0)
        self.known: dict[str, KnownObjects] = {}
        self.reading = 0.0  # CPU seconds to decode
        self.telling = 0.0  # CPU seconds in the engine

    def load(self, resource: str, bodies: Iterator[bytes]) -> None:
        """As a reflector does: all pages first, then one change after the other."""
        kind = by_resource(resource)
        assert kind is not None
        decoder = LeanDecoder(kind)
        known = self.known[resource] = KnownObjects(decoder.placeholder)
        items: list[Seen] = []
        for body in bodies:
            began = time.process_time()
            items += decoder.page(body).items
            self.reading += time.process_time() - began
        began = time.process_time()
        for change in known.replaced(items):
            self.engine.handle(as_event(resource, change), 0.0)
        self.telling += time.process_time() - began


def resident() -> float:
    """MiB now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def peak() -> float:
    """MiB at most so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def show(title: str, loaded: Loaded, before: float) -> None:
    gc.collect()
    now = resident()
    print(f"{title}: {now:.0f} MiB resident (+{now - before:.0f}), peak {peak():.0f} MiB,", end=" ")
    print(f"decoding {loaded.reading:.1f} s, engine {loaded.telling:.1f} s of CPU")


def breakdown() -> None:
    """Containers and other tracked objects by type, the most first."""
    counts = Counter(type(thing).__qualname__ for thing in gc.get_objects())
    for name, count in counts.most_common(12):
        print(f"  {count:>10} {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--breakdown", action="store_true")
    options = parser.parse_args()
    loaded = Loaded()
    before = resident()
    print(f"empty: {before:.0f} MiB resident")
    loaded.load("nodes", pages("Node", node, options.nodes))
    show(f"{options.nodes} nodes", loaded, before)
    loaded.load("pods", pages("Pod", lambda index: pod(index, options.nodes), options.pods))
    show(f"{options.pods} bound pods more", loaded, before)
    if options.breakdown:
        breakdown()


if __name__ == "__main__":
    main()
