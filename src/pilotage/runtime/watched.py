"""What the scheduler watches: kube-scheduler's list, each kind with the selector it is watched under."""

from __future__ import annotations

from typing import Final

from pilotage.api.kinds import Kind, by_resource

# Finished pods use nothing: they are left out at the server, not in every handler.
UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
REQUIRED: Final = ("pods", "nodes")
_RESOURCES: Final = (
    "nodes",
    "pods",
    "namespaces",
    "services",
    "replicationcontrollers",
    "replicasets.apps",
    "statefulsets.apps",
    "poddisruptionbudgets.policy",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
)


def watched_kinds() -> tuple[Kind, ...]:
    """In the order of the list above."""
    return tuple(_kind(resource) for resource in _RESOURCES)


def field_selector(kind: Kind) -> str:
    return UNFINISHED_PODS if kind.resource == "pods" else ""


def _kind(resource: str) -> Kind:
    kind = by_resource(resource)
    assert kind is not None, f"{resource} is missing in the table of kinds"
    return kind
