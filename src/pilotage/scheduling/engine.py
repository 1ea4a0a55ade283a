"""The engine: facts in, effects out (docs/architecture.md).

Laws
- `handle` and `schedule` are the only ways in; both return everything that is to be done outside, and
  whatever fails outside comes back as an event.
- Time, randomness and names come in as arguments; two runs over the same facts give the same effects.
- No plugin, object or answer can make it raise; what it raises is a bug of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.profile import Profile, takes_part_in_resizes
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.framework.status import Status
from pilotage.scheduling.askers import Asker
from pilotage.scheduling.binding import Bindings
from pilotage.scheduling.cycle import NO_NODES_REJECTOR, Cycles
from pilotage.scheduling.deferred import DeferredResizes
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.extenders_binding import Send
from pilotage.scheduling.extenders_outside import outside_of
from pilotage.scheduling.failure import FailureHandler
from pilotage.scheduling.gatereports import GateReports
from pilotage.scheduling.handle import EngineHandle
from pilotage.scheduling.informers import Informers
from pilotage.scheduling.messages import (
    Answered,
    AskFailed,
    CallFinished,
    Deleted,
    Effect,
    Event,
    PermitResolved,
    StepFinished,
    Tick,
    Undecodable,
    Upserted,
)
from pilotage.scheduling.outbox import Outbox
from pilotage.scheduling.preemption import GATE_EVENTS, PREEMPTION_GATE, Preemptions
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.queue_hints import AskHint
from pilotage.scheduling.queue_record import BackoffSettings, QueueProfile
from pilotage.scheduling.statistics import EngineStatistics
from pilotage.scheduling.stories import StoryEntry
from pilotage.scheduling.transitions import Position
from pilotage.scheduling.waiting import Waiting, waiting
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo

_NODE_COMES = (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),)


class Engine:
    """One scheduler: all profiles, one queue, one cluster state."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        seed: int,
        askers: Mapping[str, Sequence[Asker]] | None = None,
        send: Send | None = None,
    ) -> None:
        """`askers`: by profile, who outside narrows its feasible nodes, beside the extenders of the
        settings. `send`: carries a bind to an extender. Raises ProfileError."""
        outbox, self.cluster = Outbox(), ClusterState()
        random = np.random.default_rng(seed)
        self._handle = EngineHandle(self.cluster, settings.gates, outbox, random)
        self.profiles: Mapping[str, Profile] = {
            profile.scheduler_name: Profile(profile, registry, self._handle) for profile in settings.profiles
        }
        queue = SchedulingQueue(
            {name: _queue_profile(profile, self._gate) for name, profile in self.profiles.items()},
            BackoffSettings(
                settings.pod_initial_backoff,
                settings.pod_max_backoff,
                settings.pod_max_in_unschedulable,
                pop_early=settings.gates.get("SchedulerPopFromBackoffQ", True),
            ),
        )
        self._state = EngineState(settings, self.cluster, self.profiles, queue, outbox, random)
        self._failures = FailureHandler(self._state)
        self._gate_reports = GateReports(self._state, self._failures.writer, self._failures.say)
        outside = outside_of(settings.extenders, send)
        outside.meet(self.profiles)
        self._bindings = Bindings(self._state, self._failures, outside.binders)
        self._preemptions = Preemptions(self._state, self._bindings, self._failures.writer)
        self._resizes = DeferredResizes(self._state, self._preemptions)
        self._bindings.on_victim = self._preemptions.binding_ended
        asked = {name: (*(askers or {}).get(name, ()), *outside.askers) for name in self.profiles}
        for name, known in asked.items():
            queue.expect_rejectors(name, [asker.name for asker in known])
        self._cycles = Cycles(
            self._state, self._bindings, self._failures, self._preemptions, asked, outside.raters
        )
        self._informers = Informers(
            self._state, self._cycles, self._bindings, self._failures, self._preemptions, self._resizes
        )

    def _gate(self, pod: PodInfo) -> Status:
        return self._preemptions.gate(pod)

    # -- the two ways in -------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Takes in one fact. `now`: seconds since the epoch."""
        self._begin(now)
        self._dispatch(event)
        return self._end()

    def schedule(self, now: float, limit: int) -> list[Effect]:
        """Decides up to `limit` pods, one after another on live state."""
        self._begin(now)
        for _ in range(limit):
            record = self._state.queue.pop(self._state.now)
            if record is None:
                break
            (self._resizes if record.pod.is_bound else self._cycles).run(record)
            self._carry_out_wishes()
        return self._end()

    def _begin(self, now: float) -> None:
        self._state.outbox.begin(now)
        self._state.queue.flush(self._state.now)
        self._report_moves()
        self._bindings.expire()
        self._cycles.expire()
        self._gate_reports.expire()

    def _dispatch(self, event: Event) -> None:
        match event:
            case Upserted():
                self._informers.upserted(event)
            case Deleted():
                self._informers.deleted(event)
            case Undecodable():
                self._informers.undecodable(event)
            case Tick():
                pass  # what time does is done for every stimulus
            case _:
                self._dispatch_return(event)

    def _dispatch_return(self, event: Event) -> None:
        match event:
            case CallFinished():
                if not self._preemptions.call_finished(event):
                    self._bindings.call_finished(event)
            case StepFinished():
                self._bindings.step_finished(event)
            case PermitResolved():
                self._bindings.permit_resolved(event)
            case Answered():
                self._cycles.answered(event)
            case AskFailed():
                self._cycles.ask_failed(event)
            case _:
                raise TypeError(f"unknown event {type(event).__name__}")

    def _end(self) -> list[Effect]:
        self._carry_out_wishes()
        return self._state.outbox.take()

    def _carry_out_wishes(self) -> None:
        """What plugins asked for through their handle, until they ask for nothing more."""
        while permits := self._handle.take_permits():
            for event in permits:
                self._bindings.permit_resolved(event)
        self._state.queue.activate(self._handle.take_activations(), self._state.now)
        self._report_moves()

    def _report_moves(self) -> None:
        self._state.report_moves()
        self._gate_reports.look()

    # -- looking in ------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """True when `schedule` would find a pod."""
        return self._state.queue.has_work

    def ask_hints_through(self, ask: AskHint) -> None:
        """For whoever measures queueing hints, see `queue_hints.ask_hint`."""
        self._state.queue.ask_hints_through(ask)

    def next_wakeup(self) -> float | None:
        """When time alone will change something: send a Tick then. None when it never will."""
        times = (
            self._state.queue.next_wakeup(),
            self._bindings.next_deadline(),
            self._cycles.next_deadline(),
            self._gate_reports.next_deadline(),
        )
        return min((time for time in times if time is not None), default=None)

    def position(self, uid: str) -> Position:
        return self._state.queue.position(uid)

    def waits_on(self, uid: str) -> frozenset[str]:
        """The plugins whose events may move a parked pod: who gates it, else who rejected it last."""
        record = self._state.queue.get(uid)
        return frozenset(record.waits_on) if record is not None else frozenset()

    def waiting(self, uid: str) -> Waiting | None:
        """Where the pod stands in the queue, and what it waits for; None when it is not there."""
        record = self._state.queue.get(uid)
        if record is None:
            return None
        return waiting(record, self._state.settings, self.profiles[record.profile].registrations())

    def story(self, uid: str) -> tuple[StoryEntry, ...]:
        """What happened to a pod, oldest first; empty for a pod that is gone."""
        return self._state.stories.of(uid)

    def statistics(self) -> EngineStatistics:
        queue = self._state.queue.statistics()
        return EngineStatistics(
            active=queue.active,
            backoff=queue.backoff,
            unschedulable=queue.unschedulable,
            gated=queue.gated,
            in_flight=queue.in_flight,
            in_flight_events=queue.in_flight_events,
            rejections=queue.rejections,
            nodes=self.cluster.nodes.n_nodes,
            pods=len(self.cluster.pods()),
            assumed_pods=len(self.cluster.assumed_uids()),
            binding=len(self._bindings),
            waiting_permits=self._bindings.waiting_permits,
            asks=len(self._cycles),
            foreign_pods=len(self._informers.foreign),
            deferred_resizes=len(self._resizes.uids()),
        )

    def check_invariants(self) -> None:
        """Raises AssertionError where two of the engine's books disagree."""
        self._state.queue.check_invariants()
        self._bindings.check_invariants()
        self._cycles.check_invariants()
        self._gate_reports.check_invariants()
        self._preemptions.check_invariants()
        self._resizes.check_invariants()
        self.cluster.check_invariants()
        self._check_every_pod_is_somewhere()

    def _check_every_pod_is_somewhere(self) -> None:
        """No pod that waits is lost, and nothing is kept for one that does not wait."""
        known = {pod.uid: pod for pod in self.cluster.pods()}
        outside = self._informers.foreign | self._state.undecodable.keys()
        for uid, pod in known.items():
            is_elsewhere = pod.is_bound or uid in outside or pod.is_terminating
            is_on_its_way = uid in self._bindings or self.cluster.is_assumed(uid)
            if uid in self._resizes.uids():
                assert self.position(uid) is not Position.ABSENT, f"the resize of {pod} is lost"
            elif self.position(uid) is Position.ABSENT:
                assert is_elsewhere or is_on_its_way, f"{pod} is lost"
        for uid in self._state.queue.uids():
            assert uid in known, f"{uid} is queued but gone"
            assert not known[uid].is_bound or uid in self._resizes.uids(), known[uid]
            assert uid not in outside, known[uid]
        kept = {*self._bindings.uids(), *self._cycles.uids(), *self._failures.writer.pods}
        assert kept <= known.keys(), kept - known.keys()
        assert self._state.stories.pods <= known.keys() | self._state.undecodable.keys()
        assert self._state.queue.in_flight() == {*self._cycles.uids(), *self._bindings.undecided()}


def _queue_profile(profile: Profile, preemption_gate: Callable[[PodInfo], Status]) -> QueueProfile:
    gates = [(plugin.name, plugin.pre_enqueue) for plugin in profile.pre_enqueue]
    ours = (PREEMPTION_GATE, preemption_gate)
    of_resizes = [(p.name, p.pre_enqueue) for p in profile.pre_enqueue if takes_part_in_resizes(p)]
    return QueueProfile(
        profile.queue_sort.sort_key,
        [*gates, ours],
        [*of_resizes, ours],
        {PREEMPTION_GATE: GATE_EVENTS, **profile.registrations(), NO_NODES_REJECTOR: _NODE_COMES},
    )
