"""The objects of a run: all carry its label, pods stand in its namespace, and nothing else is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilotage.frontends.bench.scenario import Storm

Tree = dict[str, Any]
LABEL = "pilotage.dev/bench"
ROLE = "pilotage.dev/bench-role"
SCHEDULER = "pilotage-bench"
GOOD, BAD = "good", "bad"
_IMAGE = "registry.k8s.io/pause:3.10"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lives. `has_own_nodes`: pods go to the run's nodes only, whatever taints they get."""

    run: str
    has_own_nodes: bool = True
    bad_cpu: str = ""  # "" is the scenario's
    scheduler: str = SCHEDULER

    @property
    def namespace(self) -> str:
        return f"pilotage-bench-{self.run}"

    @property
    def selector(self) -> str:
        return f"{LABEL}={self.run}"


def namespace(place: Place) -> Tree:
    metadata = {"name": place.namespace, "labels": {LABEL: place.run}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def nodes(storm: Storm, place: Place) -> list[Tree]:
    """Nodes on which nothing runs."""
    amounts = {"cpu": storm.node_cpu, "memory": "16Gi", "pods": "110"}
    return [_node(f"{place.namespace}-{index}", place, amounts) for index in range(storm.nodes)]


def _node(name: str, place: Place, amounts: dict[str, str]) -> Tree:
    metadata = {
        "name": name,
        "labels": {LABEL: place.run, "kubernetes.io/hostname": name},
        "annotations": {"pilotage.dev/kubelet": "none"},
    }
    status = {"capacity": amounts, "allocatable": dict(amounts)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def bad_pods(storm: Storm, place: Place) -> list[Tree]:
    cpu = place.bad_cpu or storm.bad_cpu
    return [_pod(f"{BAD}-{index:05}", BAD, cpu, place) for index in range(storm.bad)]


def good_pods(storm: Storm, place: Place) -> list[Tree]:
    return [_pod(f"{GOOD}-{index:05}", GOOD, storm.good_cpu, place) for index in range(storm.good)]


def _pod(name: str, role: str, cpu: str, place: Place) -> Tree:
    container = {"name": "main", "image": _IMAGE, "resources": {"requests": {"cpu": cpu}}}
    spec: Tree = {
        "schedulerName": place.scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    if place.has_own_nodes:
        spec["nodeSelector"] = {LABEL: place.run}
        spec["tolerations"] = [{"operator": "Exists"}]
    metadata = {"name": name, "namespace": place.namespace, "labels": {LABEL: place.run, ROLE: role}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
