"""Field cases D7 D8 D10 D11 on the whole system: who is woken by what, and how long a backoff is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import PermitResult, Plugin
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, Status, unschedulable, wait
from pilotage.plugins import default_registry
from pilotage.testing.harness import Harness

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
GATE = {"name": "example.com/x"}


def with_plugin(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Options of a harness whose profile has this plugin too."""
    registry: Registry = default_registry()
    registry.register(name, make)
    plugins = {"multiPoint": {"enabled": [{"name": name}]}}
    profiles = [{"schedulerName": "default-scheduler", "plugins": plugins}]
    return {"registry": registry, "settings": {"profiles": profiles}}


def times(h: Harness, name: str) -> list[float]:
    return [time for time, _ in h.attempts(name)]


def results(h: Harness, name: str) -> list[str]:
    return [attempt.result for _, attempt in h.attempts(name)]


def tolerate(h: Harness, name: str, *tolerations: dict[str, Any]) -> None:
    known = h.get("pods", name)["spec"].get("tolerations") or []
    h.patch("pods", name, {"spec": {"tolerations": [*known, *tolerations]}})


def spread(**fields: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": {"app": "a"}}}
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector, **fields}


# -- D7 ------------------------------------------------------------------------------------------


def test_d7_a_pods_own_toleration_wakes_it_and_an_annotation_does_not() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", unschedulable=True), h.pod("a", cpu=1))
        h.run_for(5)
        tries = len(h.attempts("a"))
        h.patch("pods", "a", {"metadata": {"annotations": {"note": "nothing to do with it"}}})
        h.run_for(20)
        assert len(h.attempts("a")) == tries
        tolerate(h, "a", UNSCHEDULABLE)
        assert h.run_until_bound("a", timeout=10) <= 1


def test_d7_a_toleration_opens_a_domain_of_a_spread() -> None:
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    rule = spread(nodeTaintsPolicy="Honor", minDomains=2)
    with Harness(seed=2) as h:
        h.create(h.node("n1", zone="a"), h.node("n2", zone="b", taints=[taint]))
        h.create(h.pod("a1", labels={"app": "a"}, topologySpreadConstraints=[rule]))
        h.run_until_bound("a1")
        h.create(h.pod("a2", labels={"app": "a"}, topologySpreadConstraints=[rule]))
        h.run_for(5)
        assert not h.pod_state("a2").node
        tolerate(h, "a2", {"key": "team", "operator": "Exists"})
        assert h.run_until_bound("a2", timeout=10) <= 1
        assert h.pod_state("a2").node == "n2"


def test_d7_a_label_of_its_own_changes_what_a_spread_counts() -> None:
    # n2 has no room: with the label the pod would make a skew of 2 on n1, without it the skew is 1.
    with Harness(seed=3) as h:
        h.create(h.node("n1", zone="a"), h.node("n2", zone="b", pods=0))
        h.create(h.pod("old", labels={"app": "a"}))
        h.run_until_running("old")
        h.create(h.pod("a", labels={"app": "a"}, topologySpreadConstraints=[spread()]))
        h.run_for(5)
        assert not h.pod_state("a").node
        tries = len(h.attempts("a"))
        h.label("pods", "a", note="other")
        h.run_for(5)
        assert len(h.attempts("a")) <= tries + 1
        h.label("pods", "a", app="b")
        assert h.run_until_bound("a", timeout=10) <= 2
        assert h.pod_state("a").node == "n1"


def test_d7_gates_removed() -> None:
    with Harness(seed=4) as h:
        two = [GATE, {"name": "example.com/y"}]
        h.create(h.node("n1"), h.pod("a", schedulingGates=two))
        h.run_for(5)
        h.patch("pods", "a", {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}})
        h.run_for(5)
        assert h.engine.statistics().gated == 1
        h.patch("pods", "a", {"spec": {"schedulingGates": [{"$patch": "delete", **two[1]}]}})
        assert h.run_until_bound("a", timeout=10) <= 0.1


def test_d7_its_own_requests_shrink() -> None:
    with Harness(seed=5) as h:
        h.create(h.node("n1", cpu=2), h.pod("a", cpu=3), h.pod("b", cpu=3))
        h.run_for(15)
        tries = len(h.attempts("a"))
        less = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        h.patch("pods", "a", {"spec": {"containers": [less]}}, subresource="resize")
        assert h.run_until_bound("a", timeout=10) <= 1
        assert len(h.attempts("a")) == tries + 1
        assert len(h.attempts("b")) == tries, "another pod's shrinking gives nobody room"


def test_d7_a_matching_label_of_another_wakes_whoever_wants_to_be_near() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "cache"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with Harness(seed=6) as h:
        h.create(h.node("n1"), h.node("n2"), h.pod("other"))
        h.run_until_running("other")
        h.create(h.pod("near", affinity=affinity))
        h.run_for(5)
        assert not h.pod_state("near").node
        h.label("pods", "other", app="cache")
        h.run_until_bound("near", timeout=10)
        assert h.pod_state("near").node == h.pod_state("other").node


# -- D8 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_deleted", [True, False])
def test_d8_the_room_of_a_pod_that_could_not_be_bound_is_offered_to_others(is_deleted: bool) -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1", pods=1))
        hold = h.faults.hold(path="/pods/a/binding$")
        h.faults.answer(403, "not allowed", path="/pods/a/binding$")
        h.create(h.pod("a"))
        h.run_until(lambda: hold.waiting, timeout=5)
        h.create(h.pod("b"))
        h.run_for(5)
        assert "Too many pods" in h.pod_state("b").message
        start = h.now
        if is_deleted:
            h.delete("pods", "a", grace=0)
        else:
            hold.release()
        h.run_until_bound("b", timeout=10)
        assert h.now - start <= 2
        assert not h.pod_state("a").node


def test_d8_the_host_port_of_a_pod_that_could_not_be_bound_is_free_again() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    container = {"name": "main", "image": "i", "ports": [port]}
    with Harness(seed=8) as h:
        h.create(h.node("n1"))
        hold = h.faults.hold(path="/pods/a/binding$")
        h.faults.answer(403, "not allowed", path="/pods/a/binding$")
        h.create(h.pod("a", containers=[container]))
        h.run_until(lambda: hold.waiting, timeout=5)
        h.create(h.pod("b", containers=[container]))
        h.run_for(5)
        assert "free ports" in h.pod_state("b").message
        start = h.now
        hold.release()
        h.run_until_bound("b", timeout=10)
        assert h.now - start <= 2


class WaitsAtPermit:
    """The pod named a waits for nobody, for 20 s."""

    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        return PermitResult(wait(), 20.0) if pod.name == "a" else PermitResult(SUCCESS)


def test_d8_the_room_of_a_pod_that_timed_out_at_permit_is_offered_to_others() -> None:
    with Harness(seed=9, **with_plugin("WaitsAtPermit", lambda args, handle: WaitsAtPermit())) as h:
        h.create(h.node("n1", pods=1), h.pod("a"))
        h.run_until(lambda: h.engine.statistics().binding == 1, timeout=5)
        start = h.now
        h.create(h.pod("b"))
        h.run_for(10)
        assert not h.pod_state("b").node
        h.run_until_bound("b", timeout=30)
        assert 20 <= h.now - start <= 22
        assert not h.bindings("a")


# -- D10 -----------------------------------------------------------------------------------------


def test_d10_errors_are_waited_out_and_rejections_are_tried_when_nothing_else_waits() -> None:
    with Harness(seed=10) as h:
        h.faults.answer(503, path="/pods/sick/binding$")
        h.create(h.node("n1", cpu=4), h.pod("sick", cpu=1))
        h.run_for(0.5)
        h.create(h.pod("big", cpu=5, node_selector={"disk": "ssd"}))
        h.run_for(0.1)
        start = h.now
        h.label("nodes", "n1", disk="ssd")  # wakes it into backoff, and it does not fit
        h.run_until(lambda: len(h.attempts("big")) == 2, timeout=1)
        assert h.now - start <= 0.1, "tried before its backoff is over"
        h.run_until(lambda: h.now >= 10, timeout=10)
        sick = times(h, "sick")
        assert len([time for time in sick if time <= 10]) <= 4
        assert sick[0] <= 0.1
        gaps = [later - earlier for earlier, later in pairwise(sick)]
        assert all(least <= gap <= least + 1.1 for least, gap in zip((1, 2, 4), gaps, strict=False)), gaps
        h.run_for(60)
        gaps = [later - earlier for earlier, later in pairwise(times(h, "sick"))]
        assert max(gaps) <= 11.1
        assert set(results(h, "sick")) == {"error"}
        assert not h.pod_state("sick").node


def test_d10_a_success_forgets_the_errors() -> None:
    with Harness(seed=11) as h:
        h.faults.answer(503, path="/pods/a/binding$", times=3)
        h.create(h.node("n1"), h.pod("a"))
        h.run_until_bound("a", timeout=15)
        h.delete("pods", "a", grace=0)
        h.run_for(1)
        h.faults.answer(503, path="/pods/a/binding$", times=1)
        start = h.now
        h.create(h.pod("a"))
        h.run_until_bound("a", timeout=15)
        assert h.now - start <= 2.1, "the first error's backoff again"


# -- D11 -----------------------------------------------------------------------------------------


class Door(Plugin):
    """Holds back the pods named a while it is closed; tells nobody when it opens."""

    is_closed = False

    def __init__(self, is_told: bool) -> None:
        super().__init__()
        self.is_told = is_told

    def pre_enqueue(self, pod: Any) -> Status:
        return unschedulable("closed") if self.is_closed and pod.name == "a" else SUCCESS

    def events_to_register(self) -> list[EventRegistration]:
        resource = Resource.SERVICE if self.is_told else Resource.DEVICE_CLASS
        return [EventRegistration(ClusterEvent(resource, Action.ADD))]


def test_d11_a_gate_that_opens_without_an_event_is_found_by_the_flush() -> None:
    door = Door(is_told=False)
    with Harness(seed=12, **with_plugin("Door", lambda args, handle: door)) as h:
        h.create(h.node("n1", unschedulable=True), h.pod("a"), h.pod("gated", schedulingGates=[GATE]))
        h.run_for(2)
        assert results(h, "a") == ["unschedulable"]
        door.is_closed = True
        start = h.now
        h.cordon("n1", on=False)
        h.run_for(1)
        assert h.engine.statistics().gated == 2
        door.is_closed = False
        h.run_until_bound("a", timeout=400)
        assert h.now - start <= 330
        h.run_for(700)
        assert not h.attempts("gated")
        assert h.engine.statistics().gated == 1


def test_d11_a_backoff_is_waited_out_when_the_gate_opens() -> None:
    door = Door(is_told=True)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"clusterIP": "None"},
    }
    with Harness(seed=13, **with_plugin("Door", lambda args, handle: door)) as h:
        hold = h.faults.hold(path="/pods/a/binding$", times=1, skip=4)
        h.faults.answer(503, path="/pods/a/binding$", times=5)
        h.create(h.node("n1"), h.pod("a"))
        h.run_until(lambda: hold.waiting, timeout=60)
        door.is_closed = True
        hold.release()
        h.run_for(0.2)
        failed = times(h, "a")[-1]
        assert results(h, "a") == ["error"] * 5
        assert h.engine.statistics().gated == 1
        door.is_closed = False
        h.run_for(0.8)
        h.create(service)
        h.run_for(0.1)
        assert h.engine.statistics().backoff == 1
        h.run_until_bound("a", timeout=30)
        assert 10 <= h.now - failed <= 11.1
