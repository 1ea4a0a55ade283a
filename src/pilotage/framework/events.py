"""Cluster events and queueing hints (spec/queue.md, sections 6 to 8).

The engine turns object changes into `ClusterEvent`s; a plugin registers the ones that may make a pod
that it rejected schedulable, each with a hint that looks at the object before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag, StrEnum
from typing import TypeAlias

from pilotage.state.podinfo import PodInfo


class Resource(StrEnum):
    """What changed. The three pod kinds tell whose pod it was; plugins register `POD` for all three."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    TARGET_POD = "TargetPod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    PVC = "PersistentVolumeClaim"
    PV = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    POD_GROUP = "PodGroup"
    WILDCARD = "*"


class Action(IntFlag):
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_PREEMPTION_POLICY = 256
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_TOLERATION = 2048
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 4096
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 8192
    UPDATE_OTHER = 16384  # the generic Update: none of the finer ones
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_NODE_PREEMPTION_POLICY
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One resource and the actions on it. As an occurrence one flag; as a registration any set."""

    resource: Resource
    action: Action
    label: str = ""

    def __str__(self) -> str:
        return self.label or f"{self.resource.value}{self.action.name}"


class Hint(Enum):
    QUEUE = "Queue"
    SKIP = "Skip"


HintFn: TypeAlias = Callable[[PodInfo, object | None, object | None], Hint]
"""`hint(pod, old, new)`: `pod` is the waiting one; `old`/`new` are the changed object before and after:
`PodInfo` for pods, `api.nodes.Node` for nodes, the api view for other kinds; None on add or delete."""


@dataclass(frozen=True, slots=True)
class EventRegistration:
    event: ClusterEvent
    hint: HintFn | None = None  # None counts as Queue always


def _was_hidden(pod: PodInfo, _old: object | None, _new: object | None) -> Hint:
    return Hint.SKIP if pod.is_bound else Hint.QUEUE


TAINT_MAY_HAVE_HIDDEN = EventRegistration(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), _was_hidden)
"""For plugins that wait for new nodes: the taint filter may have hidden a node from them, though never the
node that a bound pod is on."""


WILDCARD = ClusterEvent(Resource.WILDCARD, Action.ALL, "Wildcard")
SCHEDULE_ATTEMPT_FAILURE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ScheduleAttemptFailure")
BACKOFF_COMPLETE = ClusterEvent(Resource.WILDCARD, Action.ALL, "BackoffComplete")
POP_FROM_BACKOFF = ClusterEvent(Resource.WILDCARD, Action.ALL, "PopFromBackoffQ")
FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
