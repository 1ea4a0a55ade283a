"""Conditions in a status: set by type, with the transition time moved only when the status flips."""

from __future__ import annotations

from pilotage.localcluster.rest.timestamps import time_text
from pilotage.localcluster.store import Tree


def set_condition(
    status: Tree, kind: str, value: str, now: float, *, reason: str = "", message: str = ""
) -> None:
    """Adds or replaces the condition `kind`; keeps its transition time when its status stays."""
    conditions = status.setdefault("conditions", [])
    at = next((i for i, known in enumerate(conditions) if known.get("type") == kind), None)
    changed = time_text(now)
    if at is not None and conditions[at].get("status") == value:
        changed = conditions[at].get("lastTransitionTime", changed)
    condition: Tree = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": changed}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    if at is None:
        conditions.append(condition)
    else:
        conditions[at] = condition
