"""The call types that a scheduler starts with; a plugin may replace each before the queue runs."""

from __future__ import annotations

from pilotage.calls.event import Event
from pilotage.calls.pod_binding import PodBinding
from pilotage.calls.pod_binding_check import PodBindingCheck
from pilotage.calls.pod_eviction import PodEviction
from pilotage.calls.pod_status_patch import PodStatusPatch
from pilotage.calls.registry import CallTypes
from pilotage.calls.resource_claim import ResourceClaimChange
from pilotage.calls.volume_binding import VolumeBinding
from pilotage.calls.volume_node_selection import ClaimNodeSelection


def default_call_types(host: str) -> CallTypes:
    """`host`: this machine's name, for the reportingInstance of events."""
    return CallTypes(
        PodBinding(),
        PodBindingCheck(),
        PodStatusPatch(),
        PodEviction(),
        VolumeBinding(),
        ClaimNodeSelection(),
        ResourceClaimChange(),
        Event(host),
    )
