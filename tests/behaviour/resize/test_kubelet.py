"""Resizes from end to end: the user's wish, the simulated kubelet, the scheduler (R15, and all of R)."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.testing.harness import Harness

PENDING, DISABLED = "PodResizePending", "PodResizePreemptionDisabled"


def resize(h: Harness, name: str, cpu: str | int) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    h.patch("pods", name, {"spec": {"containers": [container]}}, subresource="resize")


def condition(h: Harness, name: str, kind: str) -> dict[str, Any]:
    conditions = h.get("pods", name)["status"].get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), {})


def cpus(h: Harness, name: str) -> tuple[str, str, str]:
    """Wanted, allocated, actual."""
    pod = h.get("pods", name)
    status = pod["status"]["containerStatuses"][0]
    wanted = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return wanted, status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]


def victims(h: Harness) -> list[str]:
    deletes = h.requests(method="DELETE", path="/pods/", client="scheduler")
    return [record.path.rpartition("/")[2] for record in deletes]


def start(h: Harness, *pods: tuple[str, int, int], cpu: int = 10, **node: Any) -> None:
    """Pods by name, CPU and priority, on n1."""
    h.create(h.node("n1", cpu=cpu, **node))
    h.create(*(h.pod(name, cpu=amount, priority=priority) for name, amount, priority in pods))
    h.run_until_running(*(name for name, _, _ in pods))


def test_room_is_taken_at_once() -> None:
    with Harness(seed=1) as h:
        start(h, ("r", 4, 0))
        resize(h, "r", 6)
        h.run_until(lambda: cpus(h, "r") == ("6", "6", "4"), timeout=5)
        assert condition(h, "r", "PodResizeInProgress")["status"] == "True"
        h.run_until(lambda: cpus(h, "r") == ("6", "6", "6"), timeout=5)
        h.run_for(1)
        assert not condition(h, "r", "PodResizeInProgress")
        status = h.get("pods", "r")["status"]["containerStatuses"][0]
        assert status["ready"]
        assert "running" in status["state"]


def test_a_deferred_resize_preempts_and_is_carried_out() -> None:
    with Harness(seed=1) as h:
        start(h, ("r", 4, 1000), ("v1", 3, 0), ("v2", 3, 0))
        resize(h, "r", 6)
        h.run_until(lambda: condition(h, "r", PENDING), timeout=5)
        found = condition(h, "r", PENDING)
        assert found["reason"] == "Deferred"
        text = "Node didn't have enough resource: cpu, requested: 6000, used: 6000, capacity: 10000"
        assert found["message"] == text
        h.run_until(lambda: cpus(h, "r") == ("6", "6", "6"), timeout=30)
        h.run_for(30)
        assert len(victims(h)) == 1
        assert not condition(h, "r", PENDING)
        assert h.engine.statistics().deferred_resizes == 0
        assert h.story("r")[-1].text == "resize resized"


def test_four_pods_one_victim() -> None:
    with Harness(seed=1) as h:
        start(h, ("high", 2, 1000), ("low1", 2, 0), ("low2", 2, 0), ("low3", 2, 0), cpu=8)
        for name in ("low1", "low2", "low3"):
            resize(h, name, 8)
        resize(h, "high", 4)
        h.run_until(lambda: cpus(h, "high") == ("4", "4", "4"), timeout=30)
        h.run_for(200)
        assert len(victims(h)) == 1


def test_the_race_of_a_b_and_c() -> None:
    """B is retried first and takes the room that A's victim left; A preempts C then."""
    with Harness(seed=1) as h:
        start(h, ("a", 2, 1000), ("b", 2, 2000), ("c", 3, 10), ("d", 3, 1))
        resize(h, "a", 4)
        h.run_until(lambda: condition(h, "a", PENDING), timeout=5)
        resize(h, "b", 4)
        h.run_until(lambda: cpus(h, "a")[2] == "4" and cpus(h, "b")[2] == "4", timeout=60)
        h.run_for(30)
        assert sorted(victims(h)) == ["c", "d"]


def test_the_more_important_one_is_retried_first() -> None:
    with Harness(seed=1) as h:
        start(h, ("low", 2, 0), ("high", 2, 10), ("big", 6, 100))
        h.stop_scheduler()  # or low would have to go for high
        resize(h, "low", 4)
        resize(h, "high", 4)
        h.run_for(3)
        assert condition(h, "low", PENDING)
        assert condition(h, "high", PENDING)
        resize(h, "big", 4)
        h.run_until(lambda: cpus(h, "high")[2] == "4", timeout=10)
        assert cpus(h, "low")[1] == "2"


def test_a_reverted_wish_clears_the_condition() -> None:
    with Harness(seed=1) as h:
        start(h, ("r", 4, 0), ("other", 6, 0))
        resize(h, "r", 6)
        h.run_until(lambda: condition(h, "r", PENDING), timeout=5)
        resize(h, "r", 4)
        h.run_until(lambda: not condition(h, "r", PENDING), timeout=5)
        h.run_for(5)
        assert victims(h) == []
        assert h.story("r")[-1].text == "resize reverted"


def test_the_nodes_policy_sets_the_condition_and_clearing_it_brings_the_resize_back() -> None:
    with Harness(seed=1) as h:
        start(h, ("r", 4, 1000), ("v1", 6, 0))
        policy = {"disableResizePreemption": ["example.com/autoscaler"]}
        h.patch("nodes", "n1", {"spec": {"podPreemptionPolicy": policy}})
        resize(h, "r", 6)
        h.run_until(lambda: condition(h, "r", DISABLED), timeout=5)
        assert condition(h, "r", DISABLED)["reason"] == "PreemptionDisabledByNodePolicy"
        h.run_for(30)
        assert victims(h) == []
        h.patch("nodes", "n1", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": []}}})
        h.run_until(lambda: cpus(h, "r")[2] == "6", timeout=30)
        assert victims(h) == ["v1"]
        assert not condition(h, "r", DISABLED)


def test_a_guaranteed_pod_beside_a_static_cpu_manager_is_infeasible() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=10, annotations={"pilotage.dev/cpu-manager-policy": "static"}))
        pod = h.pod("r", cpu=2, memory="1Gi")
        amounts = pod["spec"]["containers"][0]["resources"]
        amounts["limits"] = dict(amounts["requests"])
        h.create(pod)
        h.run_until_running("r")
        wish = {"cpu": "3", "memory": "1Gi"}
        container = {"name": "main", "resources": {"requests": wish, "limits": wish}}
        h.patch("pods", "r", {"spec": {"containers": [container]}}, subresource="resize")
        h.run_until(lambda: condition(h, "r", PENDING), timeout=5)
        assert condition(h, "r", PENDING)["reason"] == "Infeasible"
        h.run_for(200)
        assert cpus(h, "r") == ("3", "2", "2")
        assert h.engine.statistics().deferred_resizes == 0


@pytest.mark.parametrize("grace", [120])
def test_c8_with_a_real_grace_period(grace: int) -> None:
    """The victim uses its whole grace period; the scheduler is restarted meanwhile."""
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=10))
        slow = {"pilotage.dev/stop-seconds": str(grace)}
        h.create(h.pod("r", cpu=4, priority=1000))
        h.create(*(h.pod(name, cpu=3, grace=grace, annotations=slow) for name in ("v1", "v2")))
        h.run_until_running("r", "v1", "v2")
        resize(h, "r", 6)
        h.run_until(lambda: victims(h), timeout=10)
        h.run_for(30)
        h.restart_scheduler()
        for number in range(5):
            h.label("nodes", "n1", turn=str(number))
            h.run_for(5)
        h.run_until(lambda: cpus(h, "r")[2] == "6", timeout=120)
        h.run_for(30)
        assert len(victims(h)) == 1
