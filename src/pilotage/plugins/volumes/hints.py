"""Which changes of storage objects may help a pod that a volume plugin rejected."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.api.others import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pilotage.framework.events import Hint
from pilotage.plugins.volumes.capacity import largest
from pilotage.plugins.volumes.zones import topology_labels
from pilotage.state.podinfo import PodInfo
from pilotage.state.volume_values import WAIT_FOR_FIRST_CONSUMER, annotation

_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


def is_own_claim(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """A claim that one of the pod's volumes names, ephemeral ones included."""
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    names = {use.name for use in pod.claims}
    return _queue_if(new.metadata.namespace == pod.namespace and new.metadata.name in names)


def is_named_claim(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """A claim that one of the pod's volumes names itself."""
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    names = {use.name for use in pod.claims if not use.is_generated}
    return _queue_if(new.metadata.namespace == pod.namespace and new.metadata.name in names)


def class_may_help(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A new class, or other topologies of a known one."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return Hint.QUEUE
    return _queue_if((old.allowed_topologies or []) != (new.allowed_topologies or []))


def delaying_class_came(_pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """Only claims that wait for their consumer pass a zone check without a volume."""
    if not isinstance(new, StorageClass):
        return Hint.QUEUE
    return _queue_if(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def csi_node_may_help(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    return _queue_if(annotation(old, _MIGRATED) != annotation(new, _MIGRATED))


def driver_stopped_counting(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A driver that no longer tells capacities has room everywhere."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return Hint.QUEUE
    return _queue_if(bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def capacity_grew(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return Hint.QUEUE
    return _queue_if(largest(new) > largest(old))


def volume_zone_changed(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return Hint.QUEUE
    return _queue_if(topology_labels(old) != topology_labels(new))


def limits(node: CSINode) -> Mapping[str, int]:
    """Volumes that a node takes, by driver; drivers without a limit are left out."""
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def limit_grew(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A driver came, a limit rose, or one went away."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    before, after = limits(old), limits(new)
    names = {driver.name for driver in new.spec.drivers}
    has_new = not names <= {driver.name for driver in old.spec.drivers}
    rose = any(name not in after or after[name] > limit for name, limit in before.items())
    return _queue_if(has_new or rose)
