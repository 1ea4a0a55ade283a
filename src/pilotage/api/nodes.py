"""Node view."""

from __future__ import annotations

from pilotage.api.meta import Condition, KubeObject, View
from pilotage.api.pods import ResourceList


class Taint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(View, frozen=True):
    names: list[str] | None = None
    size_bytes: int = 0


class PodPreemptionPolicy(View, frozen=True):
    disable_resize_preemption: list[str] | None = None


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None
    pod_preemption_policy: PodPreemptionPolicy | None = None


class NodeStatus(View, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None
    declared_features: list[str] | None = None


class Node(KubeObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
