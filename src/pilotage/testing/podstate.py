"""How the server sees a pod, flattened to what tests ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PodState:
    """`scheduled`: status of the PodScheduled condition (True, False or "" without one)."""

    exists: bool = False
    uid: str = ""
    phase: str = ""
    node: str = ""
    nominated: str = ""
    scheduled: str = ""
    reason: str = ""
    message: str = ""
    is_ready: bool = False
    is_terminating: bool = False


def state_of(pod: Mapping[str, Any] | None) -> PodState:
    if pod is None:
        return PodState()
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    return PodState(
        exists=True,
        uid=meta.get("uid", ""),
        phase=status.get("phase", ""),
        node=spec.get("nodeName", ""),
        nominated=status.get("nominatedNodeName", ""),
        scheduled=scheduled.get("status", ""),
        reason=scheduled.get("reason", ""),
        message=scheduled.get("message", ""),
        is_ready=(conditions.get("Ready") or {}).get("status") == "True",
        is_terminating="deletionTimestamp" in meta,
    )
