"""Resizes that the kubelet deferred (KEP-5836): which pods stand in the queue for one, and what comes of it.

Laws
- A bound, living pod of one of our profiles is in the queue exactly while its resize is deferred and neither
  the gate nor the pod's own condition keeps the scheduler out.
- Nothing is ever placed, nominated or bound here, and no condition is written: the kubelet carries the resize
  out when there is room, and what it says of the pod is what counts.
- Whatever a cycle finds, the pod is parked: it leaves only by what the informer shows.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotage.framework.gates import RESIZE_PREEMPTION
from pilotage.scheduling.deferred_cycle import ResizeOutcome, ResizeVerdict, decide_resize
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.preemption import Preemptions
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.resize_reports import ResizeReports, resolution
from pilotage.state.podinfo import PodInfo

DISABLED_CONDITION = "PodResizePreemptionDisabled"
BEING_EVICTED = "the pod is being evicted itself"


class _Waiting(NamedTuple):
    """A deferred resize as it was first seen: when, and what the pod had."""

    since: float
    held: dict[str, int]


class DeferredResizes:
    def __init__(self, state: EngineState, preemptions: Preemptions) -> None:
        self._state = state
        self._preemptions = preemptions
        self._is_on = state.settings.gates.get(RESIZE_PREEMPTION, True)
        self._profiles = frozenset(
            name for name, profile in state.profiles.items() if profile.resize_rejectors()
        )
        self._reports = ResizeReports(state)
        # UID -> exactly the bound pods that are in the queue.
        self._waiting: dict[str, _Waiting] = {}

    def wants(self, pod: PodInfo) -> bool:
        """Whether the pod belongs in the queue for its resize."""
        if not self._is_on or not pod.is_resize_deferred:
            return False
        disabled = pod.pod.condition(DISABLED_CONDITION)
        is_disabled = disabled is not None and disabled.status == "True"
        return not is_disabled and pod.pod.spec.scheduler_name in self._profiles

    # -- what the informer shows -----------------------------------------------------------------

    def look(self, pod: PodInfo) -> None:
        """A bound pod as it is now: it enters the queue, changes there, or leaves."""
        if self.wants(pod):
            if pod.uid not in self._waiting:
                self._waiting[pod.uid] = _Waiting(self._state.now, pod.held)
                self._state.tell(pod.uid, f"resize deferred on {pod.node_name}")
            self._state.queue.update(pod, self._state.now)
        else:
            self._leave(pod.uid, pod)

    def gone(self, uid: str) -> None:
        self._leave(uid, None)

    def _leave(self, uid: str, pod: PodInfo | None) -> None:
        """Where the pod was waiting: it does not any more. `pod`: as it is now, None when it is gone."""
        waiting = self._waiting.pop(uid, None)
        if waiting is None:
            return
        self._preemptions.forget(uid)
        record = self._state.queue.delete(uid)
        if record is not None:
            self._reports.ended(record, resolution(waiting.held, pod), waiting.since)

    # -- the cycle -------------------------------------------------------------------------------

    def run(self, record: Record) -> None:
        """One attempt of a bound pod that was just popped; it goes back in any case."""
        state, pod = self._state, record.pod
        verdict = self._decide(record)
        preemption = verdict.preemption
        if preemption is not None and preemption.units:
            self._preemptions.begin(pod, preemption)
        state.queue.requeue(record, state.now, unschedulable=verdict.rejectors)
        self._reports.attempted(record, verdict)
        if preemption is not None:
            self._preemptions.carry_out(pod, preemption)

    def _decide(self, record: Record) -> ResizeVerdict:
        state, pod = self._state, record.pod
        profile = state.profiles[record.profile]
        if pod.uid in state.cluster.evicted or pod.uid in self._preemptions:
            return ResizeVerdict(ResizeOutcome.REJECTED, BEING_EVICTED, profile.resize_rejectors())
        return decide_resize(profile, state.cluster, pod)

    # -- looking in ------------------------------------------------------------------------------

    def uids(self) -> frozenset[str]:
        """Bound pods in the queue."""
        return frozenset(self._waiting)

    def check_invariants(self) -> None:
        wanted = {pod.uid for pod in self._state.cluster.pods() if self.wants(pod)}
        assert wanted == self._waiting.keys(), (wanted, self._waiting.keys())
