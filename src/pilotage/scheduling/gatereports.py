"""Tells users which PreEnqueue plugin keeps a pod out of the queue, and why: condition, event, story.

Laws
- The story has every change at once; condition and event follow after `FIRST_SECONDS`, so that a gate that
  opens again at once costs no write, and then at most once per `AGAIN_SECONDS` and pod, with the newest text.
- Gates that users know already are not reported: scheduling gates (the API server says so itself) and a
  preemption that is under way (its pod has its message). Nothing is written on bound pods (resizes).
- Kept is only what a deadline will take away again.
"""

from __future__ import annotations

from collections.abc import Callable

from pilotage.framework.calls import ObjectKey
from pilotage.framework.status import Status
from pilotage.scheduling.deadlines import Deadlines
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.statuswriter import StatusWriter, pod_key
from pilotage.scheduling.transitions import Position

FIRST_SECONDS = 0.5
AGAIN_SECONDS = 5.0
NOT_READY = "NotReadyForScheduling"
_KNOWN_TO_USERS = frozenset({"SchedulingGates", "DefaultPreemption"})


class GateReports:
    """`say(pod, message, profile)` records a FailedScheduling event."""

    def __init__(
        self, state: EngineState, writer: StatusWriter, say: Callable[[ObjectKey, str, str], None]
    ) -> None:
        self._state = state
        self._writer = writer
        self._say = say
        self._due: Deadlines[str] = Deadlines()
        # UID -> what was reported last ("" for nothing yet), exactly for the pods that have a deadline.
        self._reported: dict[str, str] = {}

    def look(self) -> None:
        """Takes what PreEnqueue said since the last time."""
        for news in self._state.queue.gates.drain_news():
            record = self._gated(news.uid)
            if record is None:
                continue
            if news.was_gated:  # a pod that was not has its line from its move
                self._state.tell(news.uid, f"gated: {_text(record.gating_plugin, record.gate_status)}")
            if news.uid not in self._reported:
                self._reported[news.uid] = ""
                self._due.set(news.uid, self._state.now + FIRST_SECONDS)

    def expire(self) -> None:
        """Writes what is due; a pod that has nothing new to say is forgotten."""
        for uid in self._due.pop_due(self._state.now):
            reported = self._reported.pop(uid)
            record = self._gated(uid)
            if record is None or _text(record.gating_plugin, record.gate_status) == reported:
                continue
            self._reported[uid] = self._report(record)
            self._due.set(uid, self._state.now + AGAIN_SECONDS)

    def next_deadline(self) -> float | None:
        return self._due.next()

    def _gated(self, uid: str) -> Record | None:
        """The record of a pod whose gate is to be reported."""
        record = self._state.queue.get(uid)
        if record is None or record.position is not Position.GATED:
            return None
        is_reported = record.gating_plugin not in _KNOWN_TO_USERS and not record.pod.is_bound
        return record if is_reported else None

    def _report(self, record: Record) -> str:
        status, pod = record.gate_status, record.pod
        text = _text(record.gating_plugin, status)
        newest = self._state.cluster.pod(pod.uid)
        if newest is not None:
            reason = NOT_READY if status.is_rejection else "SchedulerError"
            self._say(pod_key(newest), text, record.profile)
            self._writer.not_scheduled(newest, reason, text, None)
        return text

    def check_invariants(self) -> None:
        assert all(uid in self._due for uid in self._reported)
        assert len(self._due) == len(self._reported)


def _text(plugin: str, status: Status) -> str:
    if not status.is_rejection:
        return status.message  # names the plugin itself
    return f'PreEnqueue plugin "{plugin}": {status.message or "no reason given"}'
