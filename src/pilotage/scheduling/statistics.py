"""The engine in numbers, for metrics and tests: computed when asked for, never counted along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    """Read from the structures themselves at the moment of asking."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: Mapping[str, int]  # by label, popped pods as PodPopped
    rejections: Mapping[tuple[str, str], int]  # (profile, plugin) -> pods waiting on it
    nodes: int
    pods: int
    assumed_pods: int
    binding: int
    waiting_permits: int
    asks: int
    foreign_pods: int
    deferred_resizes: int  # bound pods among those in the queue
