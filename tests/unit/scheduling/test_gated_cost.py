"""10,000 gated pods cost nothing per event: no gate, no hint and no visit of the pool (D5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from enginekit import World
from pilotage.framework.events import HintFn
from pilotage.framework.status import Status
from pilotage.plugins.scheduling_gates import SchedulingGates
from pilotage.scheduling.queue_hints import HintResult, Occurrence, RejectorKey, ask_hint
from pilotage.scheduling.queue_pool import UnschedulablePool
from pilotage.scheduling.queue_record import Record

GATED_PODS = 10_000
EVENTS = 1_000
GATED = {"spec": {"schedulingGates": [{"name": "g"}]}}


class Counting:
    """How often gates and hints are asked, and how many records the pool hands out."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.gates = self.hints = self.visits = 0
        gate, waiting_on = SchedulingGates.pre_enqueue, UnschedulablePool.waiting_on

        def pre_enqueue(plugin: SchedulingGates, pod: Any) -> Status:
            self.gates += 1
            return gate(plugin, pod)

        def visited(
            pool: UnschedulablePool, keys: Iterable[RejectorKey], nodes: Collection[str]
        ) -> list[Record]:
            found = waiting_on(pool, keys, nodes)
            self.visits += len(found)
            return found

        patch.setattr(SchedulingGates, "pre_enqueue", pre_enqueue)
        patch.setattr(UnschedulablePool, "waiting_on", visited)

    def ask(self, plugin: str, hint: HintFn | None, record: Record, occurrence: Occurrence) -> HintResult:
        self.hints += 1
        return ask_hint(plugin, hint, record, occurrence)

    @property
    def all(self) -> tuple[int, int, int]:
        return self.gates, self.hints, self.visits


def test_gated_pods_cost_nothing_per_event(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, world = Counting(monkeypatch), World()
    world.engine.ask_hints_through(counting.ask)
    world.node("n1", "4")
    for number in range(GATED_PODS):
        world.pod(f"gated{number}", "1", GATED)
    assert counting.all == (GATED_PODS, 0, 0)
    for number in range(EVENTS // 2):
        name = f"bound{number}"
        world.pod(name, "1m", {"spec": {"nodeName": "n1"}})
        world.delete(name)
    for number in range(EVENTS // 2):
        world.node("n1", str(4 + number % 2), {"metadata": {"labels": {"turn": str(number)}}})
    world.schedule()
    assert counting.all == (GATED_PODS, 0, 0)
    assert world.lengths() == (0, 0, 0, GATED_PODS)
    world.pod("big", "100")
    world.schedule()
    before = counting.all
    world.node("n1", "6")
    assert tuple(now - then for now, then in zip(counting.all, before, strict=True)) == (0, 1, 1)


def test_one_gate_that_opens_asks_about_its_pod_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, world = Counting(monkeypatch), World()
    world.engine.ask_hints_through(counting.ask)
    for number in range(100):
        world.pod(f"gated{number}", "1", GATED)
    before = counting.all
    world.pod("gated7", None, {"spec": {"schedulingGates": []}})
    gates, hints, visits = (now - then for now, then in zip(counting.all, before, strict=True))
    assert (gates, hints, visits) == (1, 1, 0)
    assert world.position("gated7") == "active"


def test_the_flush_leaves_scheduling_gates_closed() -> None:
    world = World()
    world.node("n1")
    world.pod("gated", "1", GATED)
    world.wait(1000.0)
    assert world.schedule() == []
    assert world.position("gated") == "gated"
