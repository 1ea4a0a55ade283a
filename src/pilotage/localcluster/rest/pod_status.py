"""What a write to a pod's status may leave out: the old value stays."""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.trees import child, children
from pilotage.localcluster.store import Tree

_OBSERVED = "observedGeneration"


def keep_omitted(old: Tree, new: Tree) -> None:
    """Fills qosClass and observed generations of the new status from the old one where they are missing."""
    before, after = child(old, "status"), child(new, "status")
    if before is None or after is None or before is after:
        return
    for name in ("qosClass", _OBSERVED):
        if not after.get(name) and before.get(name):
            after[name] = before[name]
    observed: dict[Any, Any] = {c.get("type"): c.get(_OBSERVED) for c in children(before, "conditions")}
    for condition in children(after, "conditions"):
        known = observed.get(condition.get("type"))
        if known and not condition.get(_OBSERVED):
            condition[_OBSERVED] = known
