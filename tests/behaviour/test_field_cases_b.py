"""Field cases of preemption on the whole system: B1 B2 B4 B5 B7 B8, and the order of its writes (A8, A18)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotage.framework.plugin import PermitResult
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, Status, wait
from pilotage.plugins import default_registry
from pilotage.testing.builders import priority_class
from pilotage.testing.harness import Harness

HOSTNAME = "kubernetes.io/hostname"
PLUGINS = {"multiPoint": {"enabled": [{"name": "Slow"}]}}
WITH_SLOW = {"profiles": [{"schedulerName": "default-scheduler", "plugins": PLUGINS}]}


def classes(h: Harness, *values: int) -> None:
    h.create(*(priority_class(value) for value in values))


def deletes(h: Harness, name: str) -> list[Any]:
    return h.requests(method="DELETE", path=f"/pods/{name}$", client="scheduler")


def disruptions(h: Harness, name: str) -> list[Any]:
    """Condition patches that make the pod a victim."""
    patches = h.requests(method="PATCH", path=f"/pods/{name}/status$", client="scheduler")
    return [record for record in patches if b"DisruptionTarget" in (record.request.body or b"")]


def nominated(h: Harness, name: str) -> str:
    return str(h.get("pods", name)["status"].get("nominatedNodeName", ""))


def notes(h: Harness, name: str, reason: str) -> list[str]:
    found = h.objects("events", "default")
    mine = [e for e in found if (e["involvedObject"]["name"], e["reason"]) == (name, reason)]
    return [e["message"] for e in mine]


# -- B1 ------------------------------------------------------------------------------------------


def crowded(h: Harness) -> None:
    classes(h, 10, 100, 1000)
    h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), h.node("n3", cpu=1))
    h.create(h.pod("v1", cpu=4, grace=0, node_selector={HOSTNAME: "n1"}))
    h.create(h.pod("v2", cpu=4, grace=0, priority=10, node_selector={HOSTNAME: "n2"}))
    small = [h.pod(f"s{i}", cpu="10m", grace=0, node_selector={HOSTNAME: "n3"}) for i in range(30)]
    h.create(*small)
    h.run_until_running("v1", "v2", *(f"s{i}" for i in range(30)))


def test_b1_unrelated_events_start_no_second_preemption() -> None:
    with Harness(seed=1) as h:
        crowded(h)
        h.faults.latency(before=20.0, method="DELETE", path="/pods/v1$", client="scheduler")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until(lambda: deletes(h, "v1"), timeout=5)
        assert nominated(h, "p") == "n1"
        for i in range(30):
            h.delete("pods", f"s{i}", grace=0)
            h.run_for(0.3)
        figures = h.engine.statistics()
        assert (figures.gated, figures.unschedulable) == (1, 0)
        h.run_until_bound("p", timeout=30)
        assert h.pod_state("p").node == "n1"
        assert len(deletes(h, "v1")) == 1
        assert len(disruptions(h, "v1")) == 1
        assert not deletes(h, "v2")


def test_b1_a_node_taken_meanwhile_makes_it_choose_another() -> None:
    with Harness(seed=2) as h:
        crowded(h)
        h.faults.latency(before=20.0, method="DELETE", path="/pods/v1$", client="scheduler")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until(lambda: nominated(h, "p") == "n1", timeout=5)
        h.create(h.pod("q", cpu=4, priority=1000, node_selector={HOSTNAME: "n1"}))
        h.run_until_bound("p", "q", timeout=60)
        assert (h.pod_state("q").node, h.pod_state("p").node) == ("n1", "n2")
        assert [len(deletes(h, name)) for name in ("v1", "v2")] == [1, 1]


# -- B2 ------------------------------------------------------------------------------------------


class SlowPreBind:
    """PreBind of pods named l* takes 30 s and does not let itself be cancelled."""

    async def pre_bind(self, cycle: object, pod: Any, node: str) -> Status:
        if pod.pod.metadata.name.startswith("l"):
            end = asyncio.get_running_loop().time() + 30.0
            while (left := end - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left)
                except asyncio.CancelledError:
                    continue
        return SUCCESS


def with_plugin(make: Any) -> Registry:
    registry = default_registry()
    registry.register("Slow", lambda args, handle: make())
    return registry


def test_b2_a_deleted_pod_in_its_binding_gives_its_room_back_at_once() -> None:
    for policy in ("Never", "PreemptLowerPriority"):
        with Harness(seed=3, registry=with_plugin(SlowPreBind), settings=WITH_SLOW) as h:
            h.create(priority_class(100, preemptionPolicy=policy))
            h.create(h.node("n1", cpu=4), h.pod("l", cpu=4))
            h.run_until(lambda: h.engine.statistics().binding == 1, timeout=5)
            before = len(h.requests(method="PATCH", path="/pods/l/status$"))
            h.delete("pods", "l", grace=0)
            h.create(h.pod("h", cpu=4, priority=100))
            assert h.run_until_bound("h", timeout=5) < 2
            h.run_for(40)
            assert not h.bindings("l")
            assert not deletes(h, "l")
            assert len(h.requests(method="PATCH", path="/pods/l/status$")) == before


def test_b2_a_terminating_pod_is_no_fresh_victim() -> None:
    with Harness(seed=4) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("l", cpu=4, grace=20))
        h.run_until_running("l")
        h.delete("pods", "l")
        h.create(h.pod("h", cpu=4, priority=100))
        h.run_until(lambda: nominated(h, "h") == "n1", timeout=5)
        h.run_until_bound("h", timeout=60)
        assert not deletes(h, "l")
        assert not disruptions(h, "l")
        assert len(h.attempts("h")) <= 5  # it waits for the pod that leaves, it does not spin


# -- B4 ------------------------------------------------------------------------------------------


def test_b4_a_victim_that_is_gone_already_ends_the_preemption() -> None:
    with Harness(seed=5) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("v", cpu=4, grace=0))
        h.run_until_running("v")
        held = h.faults.hold_watches(path="/pods", client="scheduler")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_for(1)
        h.delete("pods", "v", grace=0)  # by somebody else; the scheduler does not hear of it
        held.release()
        h.run_until_bound("p", timeout=10)
        assert len(deletes(h, "v")) <= 1


def test_b4_an_eviction_answered_404_wakes_its_preemptor() -> None:
    with Harness(seed=6) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("v", cpu=4, grace=0))
        h.run_until_running("v")
        h.faults.latency(before=3.0, method="DELETE", path="/pods/v$", client="scheduler")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until(lambda: deletes(h, "v"), timeout=5)
        held = h.faults.hold_watches(path="/pods", client="scheduler")
        h.delete("pods", "v", grace=0)
        h.run_for(5)  # the delete is answered 404 while the pod's own delete event is late
        held.release()
        assert h.run_until_bound("p", timeout=12) <= 10
        assert len(deletes(h, "v")) == 1


@pytest.mark.parametrize("code", [404, 409])
@pytest.mark.parametrize(("method", "path"), [("PATCH", "/pods/v/status$"), ("DELETE", "/pods/v$")])
def test_b4_a_victim_that_is_told_gone_but_stays_does_not_park_its_preemptor(
    code: int, method: str, path: str
) -> None:
    with Harness(seed=6) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("v", cpu=4, grace=0))
        h.run_until_running("v")
        h.faults.answer(code, method=method, path=path, client="scheduler", times=1)
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until_bound("p", timeout=10)
        assert [record.status for record in deletes(h, "v")].count(200) == 1


# -- B5 ------------------------------------------------------------------------------------------


class WaitsAtPermit:
    """Pods named l* wait at Permit."""

    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        is_slow = pod.pod.metadata.name.startswith("l")
        return PermitResult(wait(), 600.0) if is_slow else PermitResult(SUCCESS)


def test_b5_a_victim_at_permit_is_cancelled_in_memory() -> None:
    check_in_memory(WaitsAtPermit)


def test_b5_a_victim_in_pre_bind_is_cancelled_in_memory() -> None:
    check_in_memory(SlowPreBind)


def check_in_memory(plugin: type) -> None:
    with Harness(seed=7, registry=with_plugin(plugin), settings=WITH_SLOW) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("l", cpu=4))
        h.run_until(lambda: h.engine.statistics().binding == 1, timeout=5)
        h.create(h.pod("h", cpu=4, priority=100))
        assert h.run_until_bound("h", timeout=5) <= 1.5
        h.run_for(45)
        assert not deletes(h, "l")
        assert not h.bindings("l")
        state = h.pod_state("l")
        assert (state.node, state.phase) == ("", "Pending")
        assert "Insufficient cpu" in state.message
        uid, node = h.get("pods", "h")["metadata"]["uid"], "n1"
        memory = f"Preempted by pod {uid} on node {node} (in kube-scheduler memory)."
        assert notes(h, "l", "Preempted") == [memory]
        assert any("preempted by DefaultPreemption" in text for text in notes(h, "l", "FailedScheduling"))


def test_b5_a_bind_that_waits_for_its_turn_is_cancelled_and_one_on_its_way_is_evicted() -> None:
    for is_sent in (False, True):
        with Harness(seed=8) as h:
            classes(h, 100)
            if is_sent:
                hold = h.faults.hold(method="POST", path="/pods/l/binding$", times=1)
            else:
                h.faults.too_many_requests(5, method="POST", path="/pods/l/binding$", times=1)
            h.create(h.node("n1", cpu=4), h.pod("l", cpu=4, grace=0))
            h.run_until(lambda: h.bindings("l"), timeout=5)
            h.create(h.pod("h", cpu=4, priority=100))
            h.run_for(1)
            if is_sent:
                assert not h.pod_state("h").node
                hold.release()
            h.run_until_bound("h", timeout=15)
            assert len(deletes(h, "l")) == (1 if is_sent else 0)
            assert len(h.bindings("l")) == 1


# -- B7 ------------------------------------------------------------------------------------------


def test_b7_a_budget_is_not_charged_twice_for_a_disrupted_pod() -> None:
    for disrupted, expected in (({"a": "2026-01-01T00:00:00Z"}, "n1"), ({}, "n2")):
        with Harness(seed=9) as h:
            classes(h, 100)
            h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
            for name, node, labels in (
                ("a", "n1", {"app": "x"}),
                ("b", "n1", {"app": "x"}),
                ("c", "n2", {}),
                ("d", "n2", {}),
                ("e", "n2", {}),
            ):
                cpu = 2 if node == "n1" else "1300m"
                h.create(h.pod(name, cpu=cpu, grace=0, labels=labels, node_selector={HOSTNAME: node}))
            h.run_until_running(*"abcde")
            h.create(h.disruption_budget("x", {"app": "x"}))
            status = {"disruptionsAllowed": 1, "disruptedPods": disrupted, "currentHealthy": 2}
            h.patch("poddisruptionbudgets.policy", "x", {"status": status}, subresource="status")
            h.create(h.pod("p", cpu=4, priority=100))
            h.run_until_bound("p", timeout=20)
            # Two victims on n1, if no budget is violated there, else three on n2.
            assert h.pod_state("p").node == expected, disrupted


# -- B8 ------------------------------------------------------------------------------------------


def test_b8_a_nomination_is_cleared_when_another_pod_took_the_room() -> None:
    with Harness(seed=10) as h:
        classes(h, 10, 50, 100)
        h.create(h.node("n1", cpu=4), h.pod("p0", cpu=2, grace=60))
        h.run_until_running("p0")
        h.create(h.pod("p1", cpu=3, priority=50))
        h.run_until(lambda: nominated(h, "p1") == "n1", timeout=5)
        h.create(h.pod("p2", cpu="1500m", priority=100))
        h.run_until_bound("p2", timeout=5)
        h.run_until(lambda: not h.pod_state("p0").exists, timeout=90)
        h.run_until(lambda: nominated(h, "p1") == "", timeout=15)
        h.create(h.pod("p3", cpu=1, priority=10))
        h.run_until_bound("p3", timeout=5)
        assert len(h.engine.cluster.nominations) == 0


def test_b8_a_nomination_goes_with_its_node_and_with_its_pod() -> None:
    with Harness(seed=11) as h:
        classes(h, 50)
        h.create(*(h.node(name, cpu=4) for name in ("n1", "n2")))
        for number, node in enumerate(("n1", "n2"), start=1):
            h.create(h.pod(f"low{number}", cpu=4, grace=300, node_selector={HOSTNAME: node}))
        h.run_until_running("low1", "low2")
        for number, node in enumerate(("n1", "n2"), start=1):
            h.create(h.pod(f"p{number}", cpu=4, priority=50, node_selector={HOSTNAME: node}))
        h.run_until(lambda: (nominated(h, "p1"), nominated(h, "p2")) == ("n1", "n2"), timeout=5)
        h.delete("nodes", "n1")
        h.run_until(lambda: nominated(h, "p1") == "", timeout=5)
        h.delete("pods", "p2", grace=0)
        h.run_for(2)
        assert len(h.engine.cluster.nominations) == 0


# -- the order of writes -------------------------------------------------------------------------


def test_a18_the_nomination_is_sent_no_later_than_the_eviction() -> None:
    with Harness(seed=12) as h:
        classes(h, 100)
        h.create(h.node("n1", cpu=4), h.pod("v1", cpu=2, grace=0), h.pod("v2", cpu=2, grace=0))
        h.run_until_running("v1", "v2")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until_bound("p", timeout=10)
        writes = h.requests(client="scheduler", path="/pods/(p|v1|v2)(/status)?$")
        lines = [(r.request.method, r.request.path.rpartition("/pods/")[2]) for r in writes]
        changes = [line for line in lines if line[0] in ("PATCH", "DELETE")]
        assert changes[0] == ("PATCH", "p/status")
        for victim in ("v1", "v2"):
            mine = [method for method, path in changes if path.partition("/")[0] == victim]
            assert mine == ["PATCH", "DELETE"]


def test_a18_a_restart_between_nomination_and_eviction_still_finds_the_room_reserved() -> None:
    with Harness(seed=13) as h:
        classes(h, 10, 100)
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
        for number in (1, 2):
            h.create(h.pod(f"v{number}", cpu=4, grace=0, node_selector={HOSTNAME: f"n{number}"}))
        h.run_until_running("v1", "v2")
        h.faults.hold(method="PATCH", path="/pods/v[12]/status$", client="scheduler")
        h.create(h.pod("p", cpu=4, priority=100))
        h.run_until(lambda: nominated(h, "p"), timeout=5)
        where = nominated(h, "p")
        h.kill_scheduler()
        h.faults.clear()
        victim = "v" + where[-1]
        h.delete("pods", victim, grace=0)
        h.create(h.pod("lesser", cpu=4, priority=10, node_selector={HOSTNAME: where}))
        h.start_scheduler()
        h.run_until_bound("p", timeout=15)
        assert h.pod_state("p").node == where
        assert not h.pod_state("lesser").node


def test_a8_nomination_and_eviction_do_not_wait_behind_failure_patches() -> None:
    with Harness(seed=14) as h:
        classes(h, 1000)
        h.create(h.node("n1", cpu=4), h.pod("v", cpu=4, grace=3))
        h.run_until_running("v")
        h.faults.latency(before=10.0, method="PATCH", path="/pods/bad[0-9]+/status$", client="scheduler")
        h.create(*(h.pod(f"bad{i}", cpu=8) for i in range(50)))
        h.run_for(1)
        start = h.now
        h.create(h.pod("h", cpu=4, priority=1000))
        h.run_until(lambda: nominated(h, "h") and deletes(h, "v"), timeout=5)
        assert h.now - start <= 1
        h.run_until_bound("h", timeout=5)
        h.run_until(lambda: all(h.pod_state(f"bad{i}").message for i in range(50)), timeout=200)


def test_a19_a_placement_that_takes_time_is_nominated_and_cleared_when_it_fails() -> None:
    with Harness(seed=15, registry=with_plugin(WaitsAtPermit), settings=WITH_SLOW) as h:
        h.create(h.node("n1", cpu=4), h.pod("l", cpu=1), h.pod("quick", cpu=1))
        h.run_until_bound("quick", timeout=5)
        h.run_until(lambda: nominated(h, "l") == "n1", timeout=5)
        quick = h.requests(method="PATCH", path="/pods/quick/status$", client="scheduler")
        assert not quick, "its bind followed at once: nothing to announce"
        uid = h.get("pods", "l")["metadata"]["uid"]

        async def refuse() -> None:
            h.scheduler.resolve_permit(uid, "Slow", allowed=False, reason="not today")

        h.cordon("n1")
        h.do(refuse())
        h.run_until(lambda: nominated(h, "l") == "", timeout=5)
        assert "unschedulable" in h.pod_state("l").message
