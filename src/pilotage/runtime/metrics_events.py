"""How long facts take to be taken in, by the labels of kube-scheduler's events."""

from __future__ import annotations

from pilotage.api.pods import Pod
from pilotage.framework.events import Resource
from pilotage.runtime.figures import Figures, Histogram
from pilotage.runtime.metrics_attempts import POINT_SECONDS
from pilotage.scheduling.cluster_events import RESOURCES
from pilotage.scheduling.messages import Deleted, Event, Upserted


class EventFigures(Figures):
    def __init__(self) -> None:
        self.seconds = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Taking in one change of an object.",
            POINT_SECONDS,
            "event",
        )

    def handled(self, event: Event, seconds: float) -> None:
        label = event_label(event)
        if label:
            self.seconds.observe(seconds, label)


def event_label(event: Event) -> str:
    """`NodeAdd`, `AssignedPodUpdate`, ...; "" for what is no change of an object that pods wait for."""
    match event:
        case Upserted():
            action = "Add" if event.is_new else "Update"
        case Deleted():
            action = "Delete"
        case _:
            return ""
    resource = _resource(event)
    return f"{resource.value}{action}" if resource is not None else ""


def _resource(event: Upserted | Deleted) -> Resource | None:
    if event.resource == "nodes":
        return Resource.NODE
    if event.resource != "pods":
        return RESOURCES.get(event.resource)
    is_bound = isinstance(event.object, Pod) and bool(event.object.spec.node_name)
    return Resource.ASSIGNED_POD if is_bound else Resource.UNSCHEDULABLE_POD
