"""Frozen settings of one scheduler, read once at the edge (runtime/config.py) and passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXTENSION_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)


@dataclass(frozen=True, slots=True)
class PluginRef:
    name: str
    weight: int = 0  # 0 counts as 1 at score


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """`points`: extension point -> plugins in the order they run, multiPoint already expanded."""

    scheduler_name: str
    points: Mapping[str, tuple[PluginRef, ...]]
    args: Mapping[str, Any] = field(default_factory=dict)  # plugin name -> its args (a dict or args struct)
    percentage_of_nodes_to_score: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    profiles: tuple[ProfileSettings, ...]
    pod_initial_backoff: float = 1.0
    pod_max_backoff: float = 10.0
    pod_max_in_unschedulable: float = 300.0
    percentage_of_nodes_to_score: int = 0
    gates: Mapping[str, bool] = field(default_factory=dict)
    qps: float = 50.0
    burst: int = 100
