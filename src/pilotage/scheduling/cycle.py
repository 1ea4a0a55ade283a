"""One pod's attempt: skip it, or decide, ask where somebody outside has a say, assume and start to bind.

Laws
- Nothing is assumed before the decision is final; a decision that waits for an answer is a parked
  generator, and other pods are decided meanwhile.
- Whatever goes wrong fails this pod's attempt alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from pilotage.framework.asking import AskFailedError, Asking, Question
from pilotage.framework.cycle import CycleState
from pilotage.framework.profile import Profile
from pilotage.framework.status import error
from pilotage.scheduling.aftermath import Aftermath, asking_after_rejection
from pilotage.scheduling.askers import Asker, Rater
from pilotage.scheduling.binding import Bindings
from pilotage.scheduling.bindingrecord import Binding
from pilotage.scheduling.deadlines import Deadlines
from pilotage.scheduling.decide import Deciding, decide
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.failure import Failed, FailureHandler
from pilotage.scheduling.messages import Answered, AskFailed
from pilotage.scheduling.preemption import Preemptions
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.statuswriter import pod_key
from pilotage.scheduling.verdict import Decision
from pilotage.state.podinfo import PodInfo

NO_NODES_REJECTOR = "NoNodes"  # stands for "there is no node at all"; woken when one comes


@dataclass(slots=True, eq=False)
class Attempt:
    """A decision under way, with what follows when there is no node. `ask` is 0 unless it is parked."""

    record: Record
    pod: PodInfo
    profile: Profile
    deciding: Asking[tuple[Decision, Aftermath | None]]
    ask: int = 0


class Cycles:
    def __init__(
        self,
        state: EngineState,
        bindings: Bindings,
        failures: FailureHandler,
        preemptions: Preemptions,
        askers: Mapping[str, Sequence[Asker]],
        raters: Sequence[Rater] = (),
    ) -> None:
        self._state = state
        self._bindings = bindings
        self._failures = failures
        self._preemptions = preemptions
        self._askers = askers
        self._raters = raters
        self._start_index = 0
        # Parked decisions by the number of their ask, and by UID.
        self._by_ask: dict[int, Attempt] = {}
        self._by_uid: dict[str, Attempt] = {}
        self._deadlines: Deadlines[int] = Deadlines()

    def __len__(self) -> int:
        return len(self._by_ask)

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_uid

    def uids(self) -> frozenset[str]:
        """Pods whose decision waits for an answer."""
        return frozenset(self._by_uid)

    def run(self, record: Record) -> None:
        """One attempt of a pod that was just popped."""
        if not self._is_skipped(record):
            self._decide(record)

    def _is_skipped(self, record: Record) -> bool:
        state, pod = self._state, record.pod
        if pod.is_terminating:
            text = f"skip schedule deleting pod: {pod.key}"
            self._failures.say(pod_key(pod), text, record.profile)
            state.tell(pod.uid, text)
        elif not state.cluster.is_assumed(pod.uid):
            return False
        state.queue.done(pod.uid)
        return True

    def _decide(self, record: Record) -> None:
        profile = self._state.profiles[record.profile]
        deciding = decide(
            profile,
            self._state.cluster,
            record.pod,
            CycleState(),
            self._state.random,
            start=self._start_index,
            percentage=self._state.settings.percentage_of_nodes_to_score,
            askers=self._askers.get(record.profile, ()),
            raters=self._raters,
        )
        attempt = Attempt(record, record.pod, profile, self._to_the_end(profile, record.pod, deciding))
        self._advance(attempt, lambda: next(attempt.deciding))

    def _to_the_end(
        self, profile: Profile, pod: PodInfo, deciding: Deciding
    ) -> Asking[tuple[Decision, Aftermath | None]]:
        decision = yield from deciding
        if decision.is_scheduled:
            return decision, None
        view = self._state.cluster.nodes
        return decision, (yield from asking_after_rejection(profile, view, pod, decision))

    # -- the resumable part ----------------------------------------------------------------------

    def _advance(self, attempt: Attempt, step: Any) -> None:
        """Runs the decision until it ends or asks."""
        try:
            question: Question = step()
        except StopIteration as stop:
            self._decided(attempt, *stop.value)
        except Exception as fault:  # a fault of ours or of an asker: this pod's attempt pays, nobody else's
            status = error(f"deciding failed: {type(fault).__name__}: {fault}")
            self._failures.handle(attempt.record, attempt.pod, Failed(status, status.message))
        else:
            self._park(attempt, question)

    def _park(self, attempt: Attempt, question: Question) -> None:
        deadline = inf if question.timeout is None else self._state.now + question.timeout
        attempt.ask = self._state.outbox.ask(question.request, deadline)
        if deadline < inf:
            self._deadlines.set(attempt.ask, deadline)
        self._by_ask[attempt.ask] = attempt
        self._by_uid[attempt.pod.uid] = attempt
        self._state.tell(attempt.pod.uid, f"asked outside (ask {attempt.ask})")

    def _unpark(self, ask: int) -> Attempt | None:
        attempt = self._by_ask.pop(ask, None)
        self._deadlines.remove(ask)
        if attempt is not None:
            del self._by_uid[attempt.pod.uid]
            attempt.ask = 0
        return attempt

    def answered(self, event: Answered) -> None:
        attempt = self._unpark(event.ask)
        if attempt is not None:
            self._resume(attempt, lambda: attempt.deciding.send(event.response))

    def ask_failed(self, event: AskFailed) -> None:
        attempt = self._unpark(event.ask)
        if attempt is not None:
            self._resume(attempt, lambda: attempt.deciding.throw(AskFailedError(event.error)))

    def _resume(self, attempt: Attempt, step: Any) -> None:
        """Goes on, or starts over when the pod itself is another one by now."""
        newest = self._state.cluster.pod(attempt.pod.uid)
        if newest is not None and newest.signature != attempt.pod.signature:
            attempt.deciding.close()
            attempt.record.pod = newest
            self._decide(attempt.record)
            return
        self._advance(attempt, step)

    def expire(self) -> None:
        """Fails the asks that are overdue."""
        for ask in self._deadlines.pop_due(self._state.now):
            self.ask_failed(AskFailed(ask, "no answer in time"))

    def next_deadline(self) -> float | None:
        return self._deadlines.next()

    def abandon(self, uid: str) -> None:
        """The pod is gone or was bound by someone: its decision is not wanted any more."""
        attempt = self._by_uid.get(uid)
        if attempt is not None:
            self._state.outbox.cancel_step(attempt.ask)
            self._unpark(attempt.ask)
            attempt.deciding.close()

    # -- what came out ---------------------------------------------------------------------------

    def _decided(self, attempt: Attempt, decision: Decision, aftermath: Aftermath | None) -> None:
        self._move_start_index(decision.evaluated)
        for remark in decision.remarks:
            self._state.outbox.log("warning", f"{attempt.pod.key}: {remark}")
        if aftermath is None:
            self._place(attempt, decision)
        else:
            self._not_scheduled(attempt, decision, aftermath)

    def _move_start_index(self, evaluated: int) -> None:
        n_nodes = self._state.cluster.nodes.n_nodes
        self._start_index = (self._start_index + evaluated) % n_nodes if n_nodes else 0

    def _place(self, attempt: Attempt, decision: Decision) -> None:
        state, pod = self._state, attempt.pod
        nominated = state.cluster.nominations.node_of(pod.uid)
        try:
            state.cluster.assume(pod, decision.node)
        except ValueError as fault:
            status = error(f"assuming the pod failed: {fault}")
            self._failures.handle(attempt.record, pod, Failed(status, status.message))
            return
        state.tell(pod.uid, f"attempt {attempt.record.attempts} chose {decision.node}")
        if nominated and nominated != decision.node:
            state.nomination_given_up(pod, nominated)
        binding = Binding(attempt.record, pod, decision.node, attempt.profile, decision.cycle)
        binding.was_seen = bool(nominated)
        self._bindings.start(binding)

    def _not_scheduled(self, attempt: Attempt, decision: Decision, aftermath: Aftermath) -> None:
        """No node: the pod goes back, and whoever it preempts goes."""
        pod, preemption = attempt.pod, aftermath.preemption
        self._report_post_filter(attempt, aftermath)
        if preemption is not None and preemption.units:
            self._preemptions.begin(pod, preemption)
        if self._failures.handle(attempt.record, pod, self._failed(decision, aftermath)):
            if preemption is not None:
                self._preemptions.carry_out(pod, preemption)
        else:
            self._preemptions.forget(pod.uid)

    def _failed(self, decision: Decision, aftermath: Aftermath) -> Failed:
        message, nominated, preempts = (
            aftermath.message,
            aftermath.nominated,
            aftermath.preemption is not None,
        )
        if not decision.status.is_rejection:
            return Failed(decision.status, message, nominated=nominated)
        rejectors, pending = self._rejectors(decision), decision.pending_plugins
        return Failed(decision.status, message, rejectors, pending, nominated, preempts)

    def _report_post_filter(self, attempt: Attempt, aftermath: Aftermath) -> None:
        outbox, status = self._state.outbox, aftermath.post_filter
        if status is None:
            return
        units = aftermath.preemption.units if aftermath.preemption is not None else ()
        victims = sum(len(unit.pods) for unit in units) if status.is_success else None
        outbox.preemption_tried(attempt.pod.uid, attempt.record.profile, victims)
        if not status.is_success and not status.is_rejection:
            outbox.log("error", f"{attempt.pod.key}: {status.message}")

    def _rejectors(self, decision: Decision) -> frozenset[str]:
        if decision.unschedulable_plugins or decision.pending_plugins:
            return decision.unschedulable_plugins
        return frozenset({decision.status.plugin or NO_NODES_REJECTOR})

    def check_invariants(self) -> None:
        assert {attempt.pod.uid for attempt in self._by_ask.values()} == set(self._by_uid)
        assert all(ask == attempt.ask for ask, attempt in self._by_ask.items())
        assert len(self._deadlines) <= len(self._by_ask)
        for uid in self._by_uid:
            assert not self._state.cluster.is_assumed(uid)
