"""Whatever happens in whatever order, each pod is in one place of the queue and none is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pilotage.api.pods import Pod
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.status import SUCCESS, Status, unschedulable
from pilotage.scheduling.cluster_events import occurrence
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.queue_record import BackoffSettings, QueueProfile, Record
from pilotage.scheduling.transitions import Position
from pilotage.state.podinfo import PodInfo

PLUGINS = ("Fit", "Labels", "Silent", "Unknown", "Gate")
EVENTS = (
    occurrence(Resource.NODE, Action.ADD),
    occurrence(Resource.NODE, Action.UPDATE_NODE_LABEL),
    occurrence(Resource.NODE, Action.UPDATE_NODE_TAINT),
    occurrence(Resource.ASSIGNED_POD, Action.DELETE),
    occurrence(Resource.SERVICE, Action.ADD),
    occurrence(Resource.CSI_NODE, Action.UPDATE_OTHER),
)
names = st.sampled_from([f"p{number}" for number in range(6)])


def sometimes(pod: PodInfo, old: object, new: object) -> Hint:
    return Hint.QUEUE if old == pod.name or new is None else Hint.SKIP


def on(resource: Resource, action: Action, hint: Any = None) -> EventRegistration:
    return EventRegistration(ClusterEvent(resource, action), hint)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.closed = False
        self.version = 0
        self.alive: set[str] = set()
        self.in_flight: dict[str, Record] = {}
        profile = QueueProfile(
            sort_key=lambda queued: (-queued.pod.priority, queued.timestamp),
            pre_enqueue=[("Gate", self._gate)],
            registrations={
                "Fit": (on(Resource.POD, Action.DELETE, sometimes), on(Resource.NODE, Action.ADD)),
                "Labels": (
                    on(Resource.NODE, Action.UPDATE_NODE_LABEL),
                    on(Resource.POD, Action.UPDATE_POD_LABEL),
                ),
                "Silent": (),
                "Gate": (on(Resource.SERVICE, Action.ADD),),
            },
        )
        self.queue = SchedulingQueue({"default-scheduler": profile}, BackoffSettings())

    def _gate(self, pod: PodInfo) -> Status:
        return unschedulable("closed") if self.closed and pod.name in ("p0", "p1") else SUCCESS

    def _pod(self, name: str, priority: int, labels: dict[str, str]) -> PodInfo:
        self.version += 1
        metadata = {"name": name, "uid": name, "resourceVersion": str(self.version), "labels": labels}
        return PodInfo(msgspec.convert({"metadata": metadata, "spec": {"priority": priority}}, Pod))

    @rule(name=names, priority=st.integers(0, 2), label=st.sampled_from("ab"))
    def upsert(self, name: str, priority: int, label: str) -> None:
        self.queue.update(self._pod(name, priority, {"l": label}), self.now)
        self.alive.add(name)

    @rule(name=names)
    def delete(self, name: str) -> None:
        gone = self.queue.delete(name)
        assert (gone is not None) == (name in self.alive)
        self.alive.discard(name)
        self.in_flight.pop(name, None)

    @rule()
    def pop(self) -> None:
        expected = self.queue.has_work
        record = self.queue.pop(self.now)
        assert (record is not None) == expected
        if record is not None:
            assert not record.rejectors
            self.in_flight[record.pod.name] = record

    @rule(index=st.integers(0, 5), rejectors=st.sets(st.sampled_from(PLUGINS)), pending=st.booleans())
    def fail(self, index: int, rejectors: set[str], pending: bool) -> None:
        if not self.in_flight:
            return
        name = sorted(self.in_flight)[index % len(self.in_flight)]
        record = self.in_flight.pop(name)
        if pending:
            self.queue.requeue(record, self.now, pending=rejectors)
        else:
            self.queue.requeue(record, self.now, unschedulable=rejectors)

    @rule(index=st.integers(0, 5))
    def succeed(self, index: int) -> None:
        if self.in_flight:
            name = sorted(self.in_flight)[index % len(self.in_flight)]
            del self.in_flight[name]
            self.queue.done(name)
            self.alive.discard(name)

    @rule(event=st.sampled_from(EVENTS), old=names | st.none(), new=st.none() | st.just("new"))
    def event(self, event: ClusterEvent, old: str | None, new: str | None) -> None:
        self.queue.notify(event, old, new, self.now)

    @rule(name=names)
    def activate(self, name: str) -> None:
        self.queue.activate([name], self.now)

    @rule()
    def toggle_gate(self) -> None:
        self.closed = not self.closed

    @rule(seconds=st.floats(0, 400, allow_nan=False))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.queue.flush(self.now)

    @rule()
    def wake_up(self) -> None:
        wakeup = self.queue.next_wakeup()
        if wakeup is not None:
            self.now = max(self.now, wakeup)
            self.queue.flush(self.now)
            again = self.queue.next_wakeup()
            assert again is None or again > self.now, "a wake-up that does nothing would spin"

    @invariant()
    def consistent(self) -> None:
        self.queue.check_invariants()
        found = self.queue.statistics()
        total = found.active + found.backoff + found.unschedulable + found.gated + found.in_flight
        assert total == len(self.alive)
        assert found.in_flight == len(self.in_flight)
        if not self.in_flight:
            assert not found.in_flight_events
        for name in self.alive:
            assert self.queue.position(name) is not Position.ABSENT

    def teardown(self) -> None:
        """Left alone long enough, nobody stays in backoff or parked: the flush frees every open gate."""
        self.closed = False
        for name, record in self.in_flight.items():
            assert self.queue.get(name) is record
            self.queue.requeue(record, self.now)
        self.now += 700.0
        self.queue.flush(self.now)
        self.now += 700.0
        self.queue.flush(self.now)
        assert self.queue.statistics().active == len(self.alive)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueue = pytest.mark.slow(QueueMachine.TestCase)
