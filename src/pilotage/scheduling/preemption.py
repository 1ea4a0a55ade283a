"""Carries out what a PostFilter plugin chose: victims go, their preemptor waits, and is tried again.

Laws
- The preemptor is gated while evictions of its victims are under way, and tried again when the last of them
  ended, however it ended: at once, or after its backoff when one failed. Where nobody was removed because
  of it (all leave already), it waits for an event as after any rejection.
- A victim has one eviction at a time, whoever wants it removed; one that is leaving already has none.
- A victim that is not bound yet is cancelled in memory. Where its bind may have been sent, the answer
  decides: refused, it is cancelled; bound, it is evicted.
- Until a pod whose eviction was accepted is seen leaving, it counts as leaving (`ClusterState.evicted`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotage.framework.calls import CallResult, EvictPod, Outcome, RecordEvent
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import Preemption
from pilotage.framework.status import SUCCESS, Status, unresolvable
from pilotage.scheduling.binding import Bindings
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.messages import CallFinished
from pilotage.scheduling.statuswriter import StatusWriter, pod_key
from pilotage.state.podinfo import PodInfo

PREEMPTION_GATE = "DefaultPreemption"  # stands for whichever plugin preempted: users know this name
# No event opens the gate: the end of the preemption does.
GATE_EVENTS = (EventRegistration(ClusterEvent(Resource.POD, Action(0))),)
_WAITING = "waiting for the preemption for this pod to be finished"
_IN_MEMORY = " (in kube-scheduler memory)."


@dataclass(slots=True, eq=False)
class _Running:
    """A preemptor and what it waits for."""

    pod: PodInfo
    node: str
    since: float  # when it began
    victims: set[str] = field(default_factory=set)  # UIDs whose removal is under way
    is_set_up: bool = False  # all victims are known
    has_failed: bool = False
    was_asked: bool = False  # the API was, for at least one victim
    was_touched: bool = False  # at least one victim is removed because of it


@dataclass(slots=True, eq=False)
class _Eviction:
    """A victim that is being removed. `ticket` is 0 while its own bind is waited for."""

    victim: PodInfo
    preemptors: list[str]  # UIDs, the first one is named in the event
    note: str
    profile: str
    related: PodInfo
    ticket: int = 0


class Preemptions:
    """`writer`: for the nominations of pods that are outranked."""

    def __init__(self, state: EngineState, bindings: Bindings, writer: StatusWriter) -> None:
        self._state = state
        self._bindings = bindings
        self._writer = writer
        self._running: dict[str, _Running] = {}  # by UID of the preemptor
        self._evictions: dict[str, _Eviction] = {}  # by UID of the victim
        self._tickets: dict[int, str] = {}  # -> UID of the victim, of the evictions that were submitted

    def __contains__(self, uid: object) -> bool:
        """Whether a removal of this pod, as a victim, is under way."""
        return uid in self._evictions

    def gate(self, pod: PodInfo) -> Status:
        """PreEnqueue of every profile: a preemptor stays out of the queue while its evictions run."""
        return unresolvable(_WAITING) if pod.uid in self._running else SUCCESS

    # -- start -----------------------------------------------------------------------------------

    def begin(self, pod: PodInfo, preemption: Preemption) -> None:
        """To be called before the preemptor goes back to the queue."""
        self._running[pod.uid] = _Running(pod, preemption.node, self._state.now)

    def carry_out(self, pod: PodInfo, preemption: Preemption) -> None:
        """Removes the victims; to be called once the nomination was submitted.

        Where nobody has to go, the pod waits for an event as after any rejection.
        """
        for other in preemption.outranked:
            self._outrank(other)
        if not preemption.units:
            return
        running = self._running[pod.uid]
        for unit in preemption.units:
            for victim in unit.pods:
                self._remove(running, victim)
        names = ", ".join(victim.key for unit in preemption.units for victim in unit.pods)
        self._state.tell(pod.uid, f"preempts {names or 'nobody'} on {preemption.node}")
        running.is_set_up = True
        self._end_if_done(running)

    def _outrank(self, pod: PodInfo) -> None:
        newest = self._state.cluster.pod(pod.uid)
        if newest is not None and self._state.cluster.nominations.node_of(pod.uid):
            self._state.nominate(newest, "")
            self._writer.give_up_nomination(newest)
            self._state.tell(pod.uid, "lost its nomination to a pod of higher priority")

    def _remove(self, running: _Running, victim: PodInfo) -> None:
        state, uid = self._state, victim.uid
        newest = state.cluster.pod(uid)
        eviction = self._evictions.get(uid)
        if eviction is not None:
            eviction.preemptors.append(running.pod.uid)
            running.victims.add(uid)
            running.was_touched = True
        elif uid in self._bindings:
            running.was_touched = True
            self._cancel_binding(running, victim)
        elif newest is not None and not newest.is_terminating and uid not in state.cluster.evicted:
            running.victims.add(uid)
            running.was_asked = running.was_touched = True
            self._evict(self._new_eviction(running, newest))
        elif newest is not None:
            state.cluster.evicted.add(uid)  # leaving already: what is chosen next counts on it too

    def _new_eviction(self, running: _Running, victim: PodInfo) -> _Eviction:
        preemptor = running.pod
        note = f"Preempted by pod {preemptor.uid} on node {running.node}"
        profile = preemptor.pod.spec.scheduler_name
        eviction = _Eviction(victim, [preemptor.uid], note, profile, preemptor)
        self._evictions[victim.uid] = eviction
        return eviction

    def _evict(self, eviction: _Eviction) -> None:
        victim = eviction.victim
        message = f"{eviction.profile}: preempting to accommodate a higher priority pod"
        call = EvictPod(pod_key(victim), message, pod_key(eviction.related))
        eviction.ticket = self._state.outbox.submit(call, awaited=True)
        self._tickets[eviction.ticket] = victim.uid
        self._state.tell(victim.uid, f"is evicted for pod {eviction.related.key}")

    # -- victims that are not bound yet ----------------------------------------------------------

    def _cancel_binding(self, running: _Running, victim: PodInfo) -> None:
        self._new_eviction(running, victim)
        running.victims.add(victim.uid)
        self._bindings.preempt(victim.uid)

    def binding_ended(self, uid: str, is_bound: bool) -> None:
        """How the binding of a victim ended: cancelled, or it was too late for that."""
        eviction = self._evictions[uid]
        running = [self._running[one] for one in eviction.preemptors if one in self._running]
        if is_bound and running:
            for one in running:
                one.was_asked = True
            self._evict(eviction)
            return
        del self._evictions[uid]
        if not is_bound:
            self._say_preempted(eviction, _IN_MEMORY)
        self._settle(eviction, has_failed=False)

    # -- the end ---------------------------------------------------------------------------------

    def call_finished(self, event: CallFinished) -> bool:
        """True when the call was an eviction."""
        uid = self._tickets.pop(event.ticket, None)
        if uid is None:
            return False
        eviction = self._evictions.pop(uid)
        has_failed = not event.outcome.is_ok and self._state.cluster.pod(uid) is not None
        if has_failed:
            self._report_failure(eviction, event.outcome)
        elif self._state.cluster.pod(uid) is not None:
            self._state.cluster.evicted.add(uid)
        if event.outcome.result is CallResult.DONE:
            self._say_preempted(eviction, "")
        self._settle(eviction, has_failed=has_failed)
        return True

    def _report_failure(self, eviction: _Eviction, outcome: Outcome) -> None:
        reason = outcome.error or f"the call was {outcome.result.value}"
        text = f"evicting {eviction.victim.key} for {eviction.related.key} failed: {reason}"
        self._state.outbox.log("error", text)
        self._state.tell(eviction.related.uid, text)

    def _say_preempted(self, eviction: _Eviction, suffix: str) -> None:
        self._state.outbox.submit(
            RecordEvent(
                pod_key(eviction.victim),
                type="Normal",
                reason="Preempted",
                action="Preempting",
                note=eviction.note + suffix,
                reporting_controller=eviction.profile,
                related=pod_key(eviction.related),
            )
        )

    def _settle(self, eviction: _Eviction, *, has_failed: bool) -> None:
        """Whoever waited for this victim waits for one less."""
        for uid in eviction.preemptors:
            running = self._running.get(uid)
            if running is not None:
                running.victims.discard(eviction.victim.uid)
                running.has_failed |= has_failed
                self._end_if_done(running)

    def _end_if_done(self, running: _Running) -> None:
        uid, state = running.pod.uid, self._state
        if running.victims or not running.is_set_up:
            return
        del self._running[uid]
        if running.was_asked:
            state.outbox.preemption_ended(uid, state.now - running.since, not running.has_failed)
        state.tell(uid, "the preemption ended" + (" in failure" if running.has_failed else ""))
        if running.has_failed:
            state.queue.retry(uid, state.now)
        elif running.was_touched:  # else the end of a pod that leaves is the event to wait for
            state.queue.activate([uid], state.now)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone: as a preemptor it waits for nothing more."""
        self._running.pop(uid, None)

    def gone(self, uid: str) -> None:
        """The pod is gone, preemptor or victim; the end of a call that was submitted is still to come."""
        self.forget(uid)
        eviction = self._evictions.get(uid)
        if eviction is not None and not eviction.ticket:
            del self._evictions[uid]
            self._settle(eviction, has_failed=False)

    # -- looking in ------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        wanted = {(uid, victim) for uid, running in self._running.items() for victim in running.victims}
        known = {(one, uid) for uid, eviction in self._evictions.items() for one in eviction.preemptors}
        assert wanted == {pair for pair in known if pair[0] in self._running}
        assert all(running.victims for running in self._running.values()), "a preemptor waits for nothing"
        assert set(self._tickets.values()) == {u for u, e in self._evictions.items() if e.ticket}
        for uid, eviction in self._evictions.items():
            assert eviction.ticket or uid in self._bindings, f"{eviction.victim.key} is not being removed"
