"""Queues, pods and gates for tests of the scheduling queue."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.pods import Pod
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import QueuedPod
from pilotage.framework.status import SUCCESS, Status, unschedulable
from pilotage.scheduling.cluster_events import occurrence
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.queue_record import BackoffSettings, QueueProfile, Record
from pilotage.scheduling.transitions import Position
from pilotage.state.podinfo import PodInfo

NODE_TAINT = occurrence(Resource.NODE, Action.UPDATE_NODE_TAINT)
NODE_LABEL = occurrence(Resource.NODE, Action.UPDATE_NODE_LABEL)


def make_pod(name: str, *, priority: int = 0, version: int = 1, **parts: Any) -> PodInfo:
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    metadata |= parts.pop("metadata", {})
    spec = {"priority": priority, "containers": []} | parts.pop("spec", {})
    return PodInfo(msgspec.convert({"metadata": metadata, "spec": spec} | parts, Pod))


def on(resource: Resource, action: Action, hint: Any = None) -> EventRegistration:
    return EventRegistration(ClusterEvent(resource, action), hint)


def by_priority(queued: QueuedPod) -> tuple[int, float]:
    return (-queued.pod.priority, queued.timestamp)


class SchedulingGates:
    """Held until the gate list is empty."""

    def __init__(self) -> None:
        self.calls = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.calls += 1
        return unschedulable("gated") if pod.pod.spec.scheduling_gates else SUCCESS


class Gate:
    """Held while `closed`."""

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed
        self.calls = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.calls += 1
        return unschedulable(f"{pod.key} held") if self.closed else SUCCESS


GATES_GONE = on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
DEFAULT_REGISTRATIONS: dict[str, tuple[EventRegistration, ...]] = {
    "Fit": (on(Resource.POD, Action.DELETE), on(Resource.NODE, Action.ADD)),
    "Taints": (
        on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, lambda pod, old, new: Hint.SKIP),
        on(Resource.POD, Action.UPDATE_POD_TOLERATION),
    ),
    "Labels": (on(Resource.NODE, Action.UPDATE_NODE_LABEL),),
    "SchedulingGates": (GATES_GONE,),
}


def build(**changes: Any) -> SchedulingQueue:
    registrations = DEFAULT_REGISTRATIONS | changes.pop("registrations", {})
    profile = QueueProfile(by_priority, registrations=registrations, **changes)
    return SchedulingQueue({"default-scheduler": profile}, BackoffSettings())


def popped(queue: SchedulingQueue, now: float) -> Record:
    record = queue.pop(now)
    assert record is not None
    return record


def drain(queue: SchedulingQueue, now: float) -> list[str]:
    names = []
    while (record := queue.pop(now)) is not None:
        names.append(record.pod.name)
    return names


def lengths(queue: SchedulingQueue) -> tuple[int, int, int, int]:
    found = queue.statistics()
    return (found.active, found.backoff, found.unschedulable, found.gated)


def popped_after(queue: SchedulingQueue, uid: str, now: float) -> Record:
    queue.flush(now)
    queue.activate([uid], now)
    return popped(queue, now)


def park(queue: SchedulingQueue, name: str, now: float = 0.0, **rejected: Any) -> Record:
    queue.add(make_pod(name), now)
    record = popped(queue, now)
    queue.requeue(record, now, **(rejected or {"unschedulable": {"Fit"}}))
    assert queue.position(name) is Position.UNSCHEDULABLE
    return record


TOLERATION = {"tolerations": [{"key": "x", "operator": "Exists"}]}
GATED = {"schedulingGates": [{"name": "x"}]}
