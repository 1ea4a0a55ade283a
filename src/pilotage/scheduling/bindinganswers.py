"""What plugins and calls answer about a binding, in the words of the failure handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pilotage.framework.calls import Outcome
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import MAX_PERMIT_SECONDS
from pilotage.framework.status import Code, Status, error, unschedulable
from pilotage.scheduling.bindingrecord import Binding
from pilotage.scheduling.failure import Failed
from pilotage.scheduling.texts import duration, one_node_message
from pilotage.state.podinfo import PodInfo


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


def preempted_binding() -> Failed:
    """Without a rejector: the pod backs off and is tried again, it waits for no event."""
    status = unschedulable("preempted by DefaultPreemption")
    return Failed(status, one_node_message(status.reasons))


def why_not_bound(outcome: Outcome) -> str:
    return outcome.error or f"the binding call was {outcome.result.value}"


def timed_out(plugin: str, seconds: float) -> Status:
    text = f"rejected due to timeout after waiting {duration(seconds)} at plugin {plugin}"
    return unschedulable(text).by(plugin)


def status_of(point: str, binding: Binding, run: Callable[[CycleState, PodInfo, str], Status]) -> Status:
    """What a runner says, with whatever it raises as an error."""
    try:
        return run(binding.cycle, binding.pod, binding.node)
    except Exception as fault:  # a plugin's answer that makes no sense must not reach the engine
        return error(f"running {point} plugins: {type(fault).__name__}: {fault}")


def same(awaitable: Awaitable[Any]) -> Awaitable[Any]:
    """For steps whose awaitable was made already."""
    return awaitable
