"""What the queue keeps of one pod, and what it needs to know of a profile.

Law: a record lives from the pod's first sight to its end (bound, deleted); attempts move it around and
never copy it. Its `position` says in which container of the queue it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from pilotage.framework.events import EventRegistration
from pilotage.framework.plugin import QueuedPod
from pilotage.framework.status import SUCCESS, Status
from pilotage.scheduling.transitions import Position
from pilotage.state.podinfo import PodInfo


class Rank(IntEnum):
    """How much an event is worth to a waiting pod; the highest of several counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The part of a profile that the queue uses.

    `pre_enqueue`: plugins in their order; `resize_pre_enqueue`: those that bound pods (resizes) pass.
    `registrations`: events by plugin, of every plugin that can reject a pod; an empty sequence means that any
    event wakes its pods.
    """

    sort_key: Callable[[QueuedPod], Any]
    pre_enqueue: Sequence[tuple[str, Callable[[PodInfo], Status]]] = ()
    resize_pre_enqueue: Sequence[tuple[str, Callable[[PodInfo], Status]]] = ()
    registrations: Mapping[str, Sequence[EventRegistration]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Seconds. A maximum of 0 switches backoff off."""

    initial: float = 1.0
    maximum: float = 10.0
    max_in_unschedulable: float = 300.0
    pop_early: bool = True  # gate SchedulerPopFromBackoffQ


@dataclass(slots=True, eq=False)
class Record(QueuedPod):
    """A pod's queue record; see `QueuedPod` for the fields that sorting may read."""

    position: Position = Position.ABSENT
    gate_status: Status = SUCCESS  # why the gating plugin refused; SUCCESS when not gated
    popped_at: float = 0.0  # when the present attempt began
    parked_at: float = 0.0  # when it entered the unschedulable pool, or was last tried by a flush
    waits_out: bool = (
        False  # its backoff is never cut short: it failed by error, or while nobody kept its events
    )
    had_early_try: bool = False  # its last attempt began before its backoff was over
    flushed: bool = False  # the present attempt was caused by the periodic flush
    in_flight_from: int = 0  # number of the first event logged after its pop
    missed_events: bool = False  # in flight so long that its part of the event log was given up

    @property
    def profile(self) -> str:
        return self.pod.pod.spec.scheduler_name

    @property
    def must_wait_out(self) -> bool:
        return self.waits_out or self.had_early_try

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def waits_on(self) -> set[str]:
        """The plugins whose events may move the pod: who gates it, else who rejected it."""
        return {self.gating_plugin} if self.gating_plugin else self.rejectors

    def age(self, now: float) -> float:
        """Seconds since it was first ready to be scheduled; 0 when it never was."""
        return 0.0 if self.initial_attempt is None else now - self.initial_attempt


@dataclass(frozen=True, slots=True)
class Moved:
    """A record entered a queue: `queue` is the metric label (active, backoff, unschedulable, gated)."""

    uid: str
    key: str
    queue: str
    event: str


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Real lengths, read from the queues themselves."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: Mapping[str, int]
    rejections: Mapping[tuple[str, str], int]  # (profile, plugin) -> pods waiting on it


def backoff_seconds(record: QueuedPod, settings: BackoffSettings) -> float:
    """Errors in a row take precedence over rejections; 0 when there was neither."""
    failures = record.consecutive_errors or record.unschedulable_count
    if failures == 0 or settings.maximum == 0:
        return 0.0
    doublings = min(failures - 1, 60)
    return min(settings.initial * float(2**doublings), settings.maximum)
