"""What users and metrics are told of deferred resizes: events, stories, effects; never a condition.

Laws: an event is recorded when what there is to say of a pod changed, so that attempts which find the same
again cost nothing; how a resize ended is told once, with the time that it stood in the queue.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from pilotage.api.requests import is_resize_deferred, is_resize_infeasible
from pilotage.framework.calls import RecordEvent
from pilotage.scheduling.deferred_cycle import ResizeOutcome, ResizeVerdict
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.statuswriter import pod_key
from pilotage.scheduling.texts import note
from pilotage.state.podinfo import PodInfo


class Resolution(StrEnum):
    """How a deferred resize left the queue; the words are labels of metrics."""

    RESIZED = "resized"
    REVERTED = "reverted"
    INFEASIBLE = "infeasible"
    DISABLED = "disabled"
    ENDED = "ended"  # the pod did


class _EventKind(NamedTuple):
    type: str
    reason: str


EVENTS: Final = {
    ResizeOutcome.FITS: _EventKind("Normal", "ResizeFits"),
    ResizeOutcome.PREEMPTS: _EventKind("Normal", "ResizePreempting"),
    ResizeOutcome.WAITS: _EventKind("Normal", "ResizeWaiting"),
    ResizeOutcome.REJECTED: _EventKind("Warning", "FailedResizePreemption"),
    ResizeOutcome.ERROR: _EventKind("Warning", "FailedResizePreemption"),
}


def resolution(before: dict[str, int], pod: PodInfo | None) -> Resolution:
    """`before`: what the pod had when its resize was first seen deferred; `pod`: None when it is gone."""
    if pod is None or pod.is_terminal or pod.is_terminating:
        return Resolution.ENDED
    if is_resize_infeasible(pod.pod):
        return Resolution.INFEASIBLE
    if is_resize_deferred(pod.pod):
        return Resolution.DISABLED
    asks_more = any(amount > before.get(name, 0) for name, amount in pod.requests.items())
    return Resolution.RESIZED if asks_more else Resolution.REVERTED


class ResizeReports:
    def __init__(self, state: EngineState) -> None:
        self._state = state
        # UID -> what was said of it last, for pods in the queue of which something was said.
        self._said: dict[str, str] = {}

    def attempted(self, record: Record, verdict: ResizeVerdict) -> None:
        """To be told before the victims go, so that the pod's event comes before theirs."""
        state, pod, outcome = self._state, record.pod, verdict.outcome
        units = verdict.preemption.units if verdict.preemption is not None else ()
        victims = sum(len(unit.pods) for unit in units)
        state.outbox.resize_tried(pod.uid, pod.key, record.profile, outcome.value, victims)
        if verdict.has_tried_preemption:
            chosen = None if verdict.preemption is None else victims
            state.outbox.preemption_tried(pod.uid, record.profile, chosen)
        state.tell(pod.uid, f"resize attempt {record.attempts} {outcome.value}: {verdict.message}")
        if outcome is ResizeOutcome.ERROR:
            state.outbox.log("error", f"resize of {pod.key} failed: {verdict.message}")
        self._say(record, verdict)

    def _say(self, record: Record, verdict: ResizeVerdict) -> None:
        pod, kind = record.pod, EVENTS[verdict.outcome]
        said = f"{kind.reason}: {verdict.message}"
        if self._said.get(pod.uid) == said:
            return
        self._said[pod.uid] = said
        self._state.outbox.submit(
            RecordEvent(
                pod_key(pod),
                type=kind.type,
                reason=kind.reason,
                action="Resizing",
                note=note(verdict.message),
                reporting_controller=record.profile,
            )
        )

    def ended(self, record: Record, how: Resolution, since: float) -> None:
        """The resize left the queue, where it was from `since` on."""
        state, pod = self._state, record.pod
        self._said.pop(pod.uid, None)
        state.outbox.resize_ended(pod.uid, pod.key, record.profile, how.value, state.now - since)
        state.tell(pod.uid, f"resize {how.value}")
