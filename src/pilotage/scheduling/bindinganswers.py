"""What plugins and calls answer about a binding, in the words of the failure handler."""

from __future__ import annotations

from pilotage.framework.calls import Outcome
from pilotage.framework.plugin import MAX_PERMIT_SECONDS
from pilotage.framework.status import Code, Status
from pilotage.scheduling.failure import Failed
from pilotage.scheduling.texts import one_node_message


def permit_seconds(timeout: object) -> float | None:
    """How long a pod may wait; None for what is no time."""
    if not isinstance(timeout, int | float) or timeout != timeout:  # NaN
        return None
    return float(max(0.0, min(timeout, MAX_PERMIT_SECONDS)))


def failed_binding(status: Status) -> Failed:
    if not status.is_rejection:
        return Failed(status, status.message)
    rejectors = frozenset({status.plugin or "Bind"})
    message = one_node_message(status.reasons)
    if status.code is Code.PENDING:
        return Failed(status, message, pending=rejectors)
    return Failed(status, message, unschedulable=rejectors)


def why_not_bound(outcome: Outcome) -> str:
    return outcome.error or f"the binding call was {outcome.result.value}"
