"""From an object before and after to the `ClusterEvent`s it means (spec/queue.md, sections 6 and 7).

Law: pure functions of two objects; labels are those that kube-scheduler's metrics carry. An update may
mean several events; a node update that changes nothing a plugin can register for means none, while a
pod update always means at least the generic one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.events import Action, ClusterEvent, Resource
from pilotage.state.podinfo import PodInfo

RESOURCES: Final[Mapping[str, Resource]] = {
    "namespaces": Resource.NAMESPACE,
    "services": Resource.SERVICE,
    "persistentvolumeclaims": Resource.PVC,
    "persistentvolumes": Resource.PV,
    "storageclasses.storage.k8s.io": Resource.STORAGE_CLASS,
    "csinodes.storage.k8s.io": Resource.CSI_NODE,
    "csidrivers.storage.k8s.io": Resource.CSI_DRIVER,
    "csistoragecapacities.storage.k8s.io": Resource.CSI_STORAGE_CAPACITY,
    "volumeattachments.storage.k8s.io": Resource.VOLUME_ATTACHMENT,
    "resourceclaims.resource.k8s.io": Resource.RESOURCE_CLAIM,
    "resourceslices.resource.k8s.io": Resource.RESOURCE_SLICE,
    "deviceclasses.resource.k8s.io": Resource.DEVICE_CLASS,
    "podgroups.scheduling.k8s.io": Resource.POD_GROUP,
}
"""Plural (as in `Upserted.resource`) to what plugins register for; pods and nodes have their own rules."""


@lru_cache(maxsize=512)
def occurrence(resource: Resource, action: Action) -> ClusterEvent:
    """The event of one resource and one action flag, with kube-scheduler's label."""
    return ClusterEvent(resource, action, resource.value + _action_label(action))


def _action_label(action: Action) -> str:
    if action is Action.UPDATE_OTHER:
        return "Update"
    return "".join(word.capitalize() for word in (action.name or "").split("_"))


def node_added() -> ClusterEvent:
    return occurrence(Resource.NODE, Action.ADD)


def node_deleted() -> ClusterEvent:
    return occurrence(Resource.NODE, Action.DELETE)


def node_updated(old: Node, new: Node) -> list[ClusterEvent]:
    """One event per kind of change, in kube-scheduler's order; a heartbeat gives none."""
    changes = (
        (Action.UPDATE_NODE_ALLOCATABLE, (old.status.allocatable or {}) != (new.status.allocatable or {})),
        (Action.UPDATE_NODE_LABEL, (old.metadata.labels or {}) != (new.metadata.labels or {})),
        (Action.UPDATE_NODE_TAINT, _taints_changed(old, new)),
        (Action.UPDATE_NODE_CONDITION, _condition_statuses(old) != _condition_statuses(new)),
        (Action.UPDATE_NODE_ANNOTATION, (old.metadata.annotations or {}) != (new.metadata.annotations or {})),
        (Action.UPDATE_NODE_DECLARED_FEATURE, _features(old) != _features(new)),
        (Action.UPDATE_NODE_PREEMPTION_POLICY, _preemption_owners(old) != _preemption_owners(new)),
    )
    return [occurrence(Resource.NODE, action) for action, changed in changes if changed]


def _taints_changed(old: Node, new: Node) -> bool:
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    return uncordoned or (old.spec.taints or []) != (new.spec.taints or [])


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}


def _features(node: Node) -> list[str]:
    return node.status.declared_features or []


def _preemption_owners(node: Node) -> list[str]:
    policy = node.spec.pod_preemption_policy
    return (policy.disable_resize_preemption or []) if policy else []


def pod_added(resource: Resource) -> ClusterEvent:
    return occurrence(resource, Action.ADD)


def pod_deleted() -> ClusterEvent:
    """A bound, assumed or nominated pod went: what it held is free."""
    return occurrence(Resource.ASSIGNED_POD, Action.DELETE)


def pod_updated(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """Events of a pod's change; the resource tells a bound pod from a waiting one."""
    resource = Resource.ASSIGNED_POD if new.pod.spec.node_name else Resource.UNSCHEDULABLE_POD
    changes = (
        (Action.UPDATE_POD_LABEL, (old.pod.metadata.labels or {}) != (new.pod.metadata.labels or {})),
        (Action.UPDATE_POD_SCALE_DOWN, _scaled_down(old, new)),
        (Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_gone(old.pod, new.pod)),
        (Action.UPDATE_POD_TOLERATION, _tolerations(old.pod) != _tolerations(new.pod)),
    )
    found = [occurrence(resource, action) for action, changed in changes if changed]
    return found or [occurrence(resource, Action.UPDATE_OTHER)]


def _scaled_down(old: PodInfo, new: PodInfo) -> bool:
    before, after = (old.usage, new.usage) if new.pod.spec.node_name else (old.requests, new.requests)
    return any(amount > after.get(resource, 0) for resource, amount in before.items())


def _gates_gone(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _tolerations(pod: Pod) -> int:
    return len(pod.spec.tolerations or ())


def object_event(resource: str, old: KubeObject | None, new: KubeObject | None) -> ClusterEvent | None:
    """The event of any other kind; None where no plugin can register for it."""
    known = RESOURCES.get(resource)
    if known is None:
        return None
    if old is None:
        return occurrence(known, Action.ADD)
    return occurrence(known, Action.DELETE if new is None else Action.UPDATE_OTHER)
