"""Field cases G2 (PreEnqueue says why) and G4 (the gauge of pending pods), on the whole system."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pilotage.framework.plugin import Plugin
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, Status, unschedulable
from pilotage.plugins import default_registry
from pilotage.runtime.metrics import Metrics, exposition
from pilotage.scheduling.messages import Effect, Event
from pilotage.scheduling.transitions import Position
from pilotage.testing.harness import Harness

GATE = {"name": "example.com/x"}
QUEUES = ("active", "backoff", "unschedulable", "gated")


class Quota(Plugin):
    """Holds back pods that have a `quota` label, with its value in the text; raises for `broken`."""

    def pre_enqueue(self, pod: Any) -> Status:
        name = (pod.pod.metadata.labels or {}).get("quota")
        if name == "broken":
            raise RuntimeError("no quota server")
        return unschedulable(f"waiting for quota {name}") if name else SUCCESS


def with_quota(seed: int) -> Harness:
    registry: Registry = default_registry()
    registry.register("Quota", Quota)
    plugins = {"multiPoint": {"enabled": [{"name": "Quota"}]}}
    profiles = [{"schedulerName": "default-scheduler", "plugins": plugins}]
    return Harness(seed=seed, registry=registry, settings={"profiles": profiles})


def patches(h: Harness, name: str) -> list[dict[str, Any]]:
    found = h.requests(method="PATCH", path=f"/pods/{name}/status$", client="scheduler")
    return [json.loads(record.request.body) for record in found]


def conditions(h: Harness, name: str) -> list[tuple[str, str]]:
    """(reason, message) of every condition that the scheduler wrote."""
    found = [body["status"]["conditions"][0] for body in patches(h, name)]
    return [(condition["reason"], condition["message"]) for condition in found]


def text(name: str) -> str:
    return f'PreEnqueue plugin "Quota": waiting for quota {name}'


UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def wake_and_refuse(h: Harness, name: str) -> None:
    """An update that wakes the pod, and that PreEnqueue refuses."""
    known = h.get("pods", name)["spec"].get("tolerations") or []
    spec = {"tolerations": [*known, UNSCHEDULABLE]}
    h.patch("pods", name, {"metadata": {"labels": {"quota": "q1"}}, "spec": spec})


def remove_gate(h: Harness, name: str) -> None:
    h.patch("pods", name, {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}})


def test_g2_the_plugin_and_its_reason_are_in_condition_event_and_story() -> None:
    with with_quota(1) as h:
        h.create(h.node("n1"), h.pod("a", labels={"quota": "q1"}))
        h.run_until(lambda: h.engine.position(h.pod_state("a").uid) is Position.GATED)
        assert "waiting for quota q1 (Quota)" in h.story("a")[-1].text  # at once
        assert not patches(h, "a")
        h.run_for(2)
        state = h.pod_state("a")
        assert (state.scheduled, state.reason, state.message) == (
            "False",
            "NotReadyForScheduling",
            text("q1"),
        )
        assert [event["message"] for event in h.events("a", reason="FailedScheduling")] == [text("q1")]
        h.label("pods", "a", quota=None)
        assert h.run_until_bound("a", timeout=3) <= 2


def test_g2_a_text_that_flaps_is_throttled_and_the_last_one_wins() -> None:
    with with_quota(2) as h:
        h.create(h.node("n1"), h.pod("a", labels={"quota": "q0"}))
        for number in range(100):
            h.label("pods", "a", quota=f"q{number % 2}")
            h.run_for(0.1)
            assert h.engine.waiting(h.pod_state("a").uid).gate_message == f"waiting for quota q{number % 2}"
        assert len(patches(h, "a")) <= 3
        h.label("pods", "a", quota="q9")
        h.run_for(10)
        assert h.pod_state("a").message == text("q9")
        assert len(patches(h, "a")) <= 5
        assert sum(event.get("series", {}).get("count", 1) for event in h.events("a")) == len(patches(h, "a"))
        told = len(patches(h, "a"))
        h.run_for(900)
        assert len(patches(h, "a")) == told, "nothing new, nothing written"
        assert not h.attempts("a")


def test_g2_a_gate_that_opens_at_once_costs_no_write() -> None:
    with with_quota(3) as h:
        h.create(h.node("n1"), h.pod("a", labels={"quota": "q1"}))
        h.run_for(0.2)
        h.label("pods", "a", quota=None)
        h.run_until_bound("a")
        h.run_for(20)
        assert not conditions(h, "a")
        assert not h.events("a", reason="FailedScheduling")


def test_g2_a_scheduling_gate_keeps_the_condition_of_the_api_server() -> None:
    with with_quota(4) as h:
        h.create(h.node("n1"), h.pod("a", schedulingGates=[GATE], labels={"quota": "q1"}))
        h.run_for(30)
        assert h.pod_state("a").reason == "SchedulingGated"
        assert not patches(h, "a")
        assert not h.events("a")
        assert "waiting for scheduling gates: [example.com/x]" in h.story("a")[-1].text
        remove_gate(h, "a")
        h.run_for(2)
        assert h.pod_state("a").reason == "NotReadyForScheduling"
        assert len(h.events("a", reason="FailedScheduling")) == 1


def test_g2_an_old_message_gives_way() -> None:
    with with_quota(5) as h:
        h.create(h.node("n1", unschedulable=True), h.pod("a"))
        h.run_for(3)
        assert h.pod_state("a").reason == "Unschedulable"
        wake_and_refuse(h, "a")
        h.run_for(3)
        assert (h.pod_state("a").reason, h.pod_state("a").message) == ("NotReadyForScheduling", text("q1"))


def test_g2_a_plugin_that_raises_is_named() -> None:
    with with_quota(6) as h:
        h.create(h.node("n1"), h.pod("a", labels={"quota": "broken"}))
        h.run_for(3)
        assert h.pod_state("a").reason == "SchedulerError"
        assert h.pod_state("a").message == 'running PreEnqueue plugin "Quota": RuntimeError: no quota server'


def test_g2_a_deleted_pod_leaves_nothing_behind() -> None:
    with with_quota(7) as h:
        h.create(h.node("n1"), h.pod("a", labels={"quota": "q1"}))
        h.run_for(0.2)
        h.delete("pods", "a", grace=0)
        h.run_for(10)
        assert not patches(h, "a")
        assert h.engine.next_wakeup() is None


class Gauge:
    """Looks at the gauge after each effect and each fact: it must be what a recount of all pods gives."""

    def __init__(self, h: Harness) -> None:
        self._h = h
        self.metrics = Metrics()
        self.metrics.attach(h.scheduler)
        self.checks = 0
        h.scheduler.add_observer(self)

    def read(self) -> dict[str, float]:
        families = text_string_to_metric_families(exposition(self.metrics.registry()).decode())
        pending = next(family for family in families if family.name == "scheduler_pending_pods")
        return {sample.labels["queue"]: sample.value for sample in pending.samples}

    def recount(self) -> dict[str, int]:
        words = {Position.ERROR_BACKOFF: "backoff"}
        engine = self._h.engine
        where = [engine.position(pod.uid) for pod in engine.cluster.pods()]
        found = Counter(words.get(position, position.value) for position in where)
        return {queue: found[queue] for queue in QUEUES}

    def _check(self) -> None:
        assert self.read() == self.recount()
        self.checks += 1

    def effect(self, effect: Effect, now: float) -> None:
        self._check()

    def handled(self, event: Event, seconds: float) -> None:
        self._check()

    def decided(self, seconds: float) -> None:
        self._check()

    def now(self) -> tuple[float, ...]:
        self._check()
        return tuple(self.read()[queue] for queue in QUEUES)


def gone(h: Harness, gauge: Gauge, name: str) -> None:
    h.delete("pods", name, grace=0)
    h.run_for(3)
    assert gauge.now() == (0, 0, 0, 0)
    assert gauge.checks > 10


@pytest.mark.parametrize(("cpu", "unschedulable_pods"), [("1", 0), ("1000", 1)])
def test_g4_a_gate_is_removed(cpu: str, unschedulable_pods: int) -> None:
    with with_quota(8) as h:
        gauge = Gauge(h)
        h.create(h.node("n1"), h.pod("a", cpu=cpu, schedulingGates=[GATE]))
        h.run_for(3)
        assert gauge.now() == (0, 0, 0, 1)
        remove_gate(h, "a")
        h.run_for(5)
        assert gauge.now() == (0, 0, unschedulable_pods, 0)
        gone(h, gauge, "a")


def test_g4_a_gated_pod_is_deleted() -> None:
    with with_quota(9) as h:
        gauge = Gauge(h)
        h.create(h.node("n1"), h.pod("a", schedulingGates=[GATE]), h.pod("b", labels={"quota": "q1"}))
        h.run_for(3)
        assert gauge.now() == (0, 0, 0, 2)
        h.delete("pods", "b", grace=0)
        h.run_for(1)
        assert gauge.now() == (0, 0, 0, 1)
        gone(h, gauge, "a")


def test_g4_an_unschedulable_pod_becomes_gated() -> None:
    with with_quota(10) as h:
        gauge = Gauge(h)
        h.create(h.node("n1", unschedulable=True), h.pod("a"))
        h.run_for(3)
        assert gauge.now() == (0, 0, 1, 0)
        wake_and_refuse(h, "a")
        h.run_for(3)
        assert gauge.now() == (0, 0, 0, 1)
        gone(h, gauge, "a")


def test_g4_many_pods_through_all_queues() -> None:
    with with_quota(11) as h:
        gauge = Gauge(h)
        h.create(h.node("n1", cpu=4), *(h.pod(f"a{n}", cpu=3) for n in range(3)))
        h.create(*(h.pod(f"g{n}", cpu=1, schedulingGates=[GATE]) for n in range(3)))
        h.run_for(0.5)
        for number in range(3):
            remove_gate(h, f"g{number}")
            h.label("pods", f"a{number}", quota="q1" if number else None)
            h.run_for(2)
        h.create(h.node("n2", cpu=4))
        h.run_for(20)
        for pod in h.objects("pods", "default"):
            h.delete("pods", pod["metadata"]["name"], grace=0)
            h.run_for(0.5)
        h.run_for(3)
        assert gauge.now() == (0, 0, 0, 0)
        assert gauge.checks > 60
