"""What a kubelet reports of a pod and of a node (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilotage.api.nodes import Node
from pilotage.api.pods import Container, ContainerStatus, Pod, ResourceRequirements
from pilotage.localcluster.rest.timestamps import time_text

KUBELET_VERSION = "v1.37.0"
DEFAULT_CAPACITY = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
_HEALTH = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


def running(pod: Pod, pod_ip: str, host_ip: str, now: float) -> dict[str, Any]:
    """The status patch (strategic) of a pod whose containers all started."""
    time = time_text(now)
    ip = host_ip if pod.spec.host_network else pod_ip
    return {
        "phase": "Running",
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": time,
        "conditions": [
            _condition(kind, "True", time)
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        ],
        "containerStatuses": [_started(pod, container, time) for container in pod.spec.containers],
        "initContainerStatuses": [
            _started(pod, container, time)
            if container.restart_policy == "Always"
            else _ended(pod, container, time)
            for container in pod.spec.init_containers or ()
        ],
        **_pod_level(pod),
    }


def taken_resize(pod: Pod) -> dict[str, Any]:
    """The status patch (strategic) of a running pod whose spec is allocated to it, and not in force yet."""

    def shown(container: Container, before: ContainerStatus) -> dict[str, Any]:
        return {"allocatedResources": container.resources.requests or {}, "resources": _actual(before)}

    level = pod.spec.resources
    return _containers(pod, shown) | (
        {"allocatedResources": level.requests} if level and level.requests else {}
    )


def finished_resize(pod: Pod) -> dict[str, Any]:
    """The same once what is allocated is in force; the spec may wish something else by then."""

    def shown(container: Container, before: ContainerStatus) -> dict[str, Any]:
        allocated = before.allocated_resources or {}
        is_newest = allocated == (container.resources.requests or {})
        limits = container.resources.limits if is_newest else _actual(before).get("limits")
        parts = {"requests": allocated, "limits": limits}
        return {
            "allocatedResources": allocated,
            "resources": {name: amounts for name, amounts in parts.items() if amounts},
        }

    level = pod.status.allocated_resources
    return _containers(pod, shown) | ({"resources": {"requests": level}} if level else {})


def _containers(
    pod: Pod, shown: Callable[[Container, ContainerStatus], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Both lists of container statuses whole, with the amounts that `shown` gives."""
    time = pod.status.start_time or ""
    known = {s.name: s for s in (*(pod.status.init_container_statuses or ()), *_main(pod))}

    def entry(container: Container) -> dict[str, Any]:
        return _started(pod, container, time) | shown(container, known.get(container.name, ContainerStatus()))

    return {
        "containerStatuses": [entry(container) for container in pod.spec.containers],
        "initContainerStatuses": [
            entry(container) if container.restart_policy == "Always" else _ended(pod, container, time)
            for container in pod.spec.init_containers or ()
        ],
    }


def _main(pod: Pod) -> list[ContainerStatus]:
    return pod.status.container_statuses or []


def _actual(status: ContainerStatus) -> dict[str, Any]:
    return _amounts(status.resources) if status.resources is not None else {}


def _amounts(resources: ResourceRequirements) -> dict[str, Any]:
    parts = {"requests": resources.requests, "limits": resources.limits}
    return {name: amounts for name, amounts in parts.items() if amounts}


def _pod_level(pod: Pod) -> dict[str, Any]:
    """Pod-level amounts of the status of a pod that starts, where the spec has some."""
    level = pod.spec.resources
    if level is None or not level.requests:
        return {}
    return {"allocatedResources": level.requests, "resources": _amounts(level)}


def succeeded(pod: Pod, now: float) -> dict[str, Any]:
    """The status patch (strategic) of a pod whose containers all ended well."""
    time = time_text(now)
    return {
        "phase": "Succeeded",
        "conditions": [
            {**_condition(kind, "False", time), "reason": "PodCompleted"}
            for kind in ("Ready", "ContainersReady")
        ],
        "containerStatuses": [_ended(pod, container, time) for container in pod.spec.containers],
    }


def _condition(kind: str, status: str, time: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": time}


def _common(pod: Pod, container: Container) -> dict[str, Any]:
    image = container.image
    return {
        "name": container.name,
        "image": image,
        "imageID": f"sim://{image}",
        "containerID": f"sim://{pod.metadata.uid}/{container.name}",
        "restartCount": 0,
        "lastState": {},
    }


def _started(pod: Pod, container: Container, time: str) -> dict[str, Any]:
    status = _common(pod, container) | {
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": time}},
    }
    requests, limits = container.resources.requests, container.resources.limits
    if requests:
        status["allocatedResources"] = requests
    if requests or limits:
        status["resources"] = _amounts(container.resources)
    return status


def _ended(pod: Pod, container: Container, time: str) -> dict[str, Any]:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time}
    return _common(pod, container) | {"ready": False, "started": False, "state": {"terminated": ended}}


def node_status(node: Node, address: str, now: float) -> dict[str, Any]:
    """What is missing in a node's status (strategic patch); empty when nothing is.

    Whatever the user set stays. Allocatable follows capacity; only when the node has neither does it get
    the default machine. An explicitly empty `allocatable: {}` is a wish and stays.
    """
    status: dict[str, Any] = {}
    capacity, allocatable = node.status.capacity, node.status.allocatable
    if capacity is None and allocatable is None:
        status |= {"capacity": DEFAULT_CAPACITY, "allocatable": DEFAULT_CAPACITY}
    elif allocatable is None:
        status["allocatable"] = capacity
    elif capacity is None and allocatable:
        status["capacity"] = allocatable
    known = {condition.type for condition in node.status.conditions or ()}
    missing = [entry for entry in _HEALTH if entry[0] not in known]
    if missing:
        time = time_text(now)
        status["conditions"] = [
            {**_condition(kind, value, time), "lastHeartbeatTime": time, "reason": reason, "message": ""}
            for kind, value, reason in missing
        ]
        status |= node_identity(node, address)
    return status


def node_identity(node: Node, address: str) -> dict[str, Any]:
    return {
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node.metadata.name},
        ],
        "nodeInfo": {
            "kubeletVersion": KUBELET_VERSION,
            "kubeProxyVersion": "",
            "osImage": "simulated",
            "operatingSystem": "linux",
            "architecture": "amd64",
            "kernelVersion": "simulated",
            "containerRuntimeVersion": "sim://1",
            "machineID": node.metadata.uid,
            "systemUUID": node.metadata.uid,
            "bootID": node.metadata.uid,
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    }


def node_labels(node: Node) -> dict[str, str]:
    """The labels that a kubelet puts on its node and that are missing."""
    wanted = {
        "kubernetes.io/hostname": node.metadata.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    known = node.metadata.labels or {}
    return {key: value for key, value in wanted.items() if key not in known}
