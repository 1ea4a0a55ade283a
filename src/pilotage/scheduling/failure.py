"""What happens to a pod whose attempt failed: requeue first, then the nomination, the event, the condition.

Laws
- The newest informer object decides: a pod that is gone, replaced or bound is dropped without a word.
- The nomination is touched only where the cycle says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.framework.calls import ObjectKey, RecordEvent
from pilotage.framework.status import Status
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.messages import Undecodable
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.statuswriter import StatusWriter, pod_key
from pilotage.scheduling.texts import note
from pilotage.state.podinfo import PodInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """How an attempt failed. No rejector at all means an internal error.

    `nominated`: None leaves the nomination as it is, "" clears it. `preempts`: victims go for it.
    """

    status: Status
    message: str
    unschedulable: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nominated: str | None = ""
    preempts: bool = False

    @property
    def reason(self) -> str:
        return "Unschedulable" if self.status.is_rejection else "SchedulerError"


class FailureHandler:
    def __init__(self, state: EngineState) -> None:
        self._state = state
        self.writer = StatusWriter(state.outbox)

    def handle(self, record: Record, pod: PodInfo, failed: Failed) -> bool:
        """False when the pod is not wanted any more.

        `pod` is the object that the attempt saw; its record may be in flight or out of the queue.
        """
        state = self._state
        newest = state.cluster.pod(pod.uid)
        if newest is None or newest.is_bound or pod.uid in state.undecodable:
            state.queue.done(pod.uid)
            state.tell(pod.uid, f"dropped: {failed.message}")
            return False
        self._requeue(record, newest, failed)
        if failed.nominated is not None:
            state.nominate(newest, failed.nominated)
        self._report_attempt(record, newest, failed)
        self.say(pod_key(newest), failed.message, record.profile)
        self.writer.not_scheduled(
            newest, failed.reason, failed.message, failed.nominated, precedes_eviction=failed.preempts
        )
        return True

    def _requeue(self, record: Record, newest: PodInfo, failed: Failed) -> None:
        record.pod = newest
        self._state.queue.requeue(
            record, self._state.now, unschedulable=failed.unschedulable, pending=failed.pending
        )

    def _report_attempt(self, record: Record, pod: PodInfo, failed: Failed) -> None:
        state = self._state
        result = "unschedulable" if failed.status.is_rejection else "error"
        details = {"message": failed.message, "age": record.age(state.now), "started": record.popped_at}
        state.outbox.attempt(pod.uid, pod.key, record.profile, result, record.attempts, **details)
        state.tell(pod.uid, f"attempt {record.attempts} {result}: {failed.message}")
        if result == "error":
            state.outbox.log("error", f"scheduling {pod.key} failed: {failed.message}")

    def say(self, key: ObjectKey, message: str, profile: str) -> None:
        """A FailedScheduling event."""
        self._state.outbox.submit(
            RecordEvent(
                key,
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=note(message),
                reporting_controller=profile,
            )
        )

    def report_undecodable(self, event: Undecodable) -> None:
        """Says on the pod itself which field cannot be read."""
        key = ObjectKey("pods", event.namespace, event.name, event.uid)
        message = f"the pod cannot be scheduled because it cannot be read: {event.error}"
        self.say(key, message, event.scheduler_name)
        self.writer.not_readable(key, message)
        self._state.tell(event.uid, message)
