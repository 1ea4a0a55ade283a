"""The whole loop on the harness: objects in, pods bound and running, nothing lost over a restart."""

from __future__ import annotations

import pytest

from pilotage.testing.harness import Harness, NotReachedError


def ready(h: Harness, name: str, count: int, plural: str = "deployments") -> bool:
    status = h.get(plural, name).get("status") or {}
    return status.get("readyReplicas", 0) == count and status.get("replicas") == count


def test_a_pod_is_bound_and_runs() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        state = h.pod_state("a")
        assert (state.node, state.scheduled, state.is_ready) == ("n1", "True", True)
        assert len(h.bindings("a")) == 1
        [event] = h.events("a", reason="Scheduled")
        assert event["message"] == "Successfully assigned default/a to n1"
        h.check_converged()


def test_a_deployment_spreads_over_nodes_and_scales() -> None:
    with Harness(seed=2) as h:
        h.create(*(h.node(f"n{i}", cpu=4) for i in range(3)))
        h.create(h.deployment("web", 6, h.pod("x", cpu=1)))
        h.run_until(lambda: ready(h, "web", 6))
        assert sorted({s.node for s in h.pod_states("default").values()}) == ["n0", "n1", "n2"]
        h.scale("web", 2)
        h.run_until(lambda: ready(h, "web", 2))
        h.scale("web", 12)
        h.run_until(lambda: ready(h, "web", 12))
        h.check_converged()


def test_a_new_node_wakes_what_waits() -> None:
    with Harness(seed=3) as h:
        h.create(h.node("n1", cpu=4), h.pod("big", cpu=8))
        h.run_for(30)
        state = h.pod_state("big")
        assert (state.phase, state.reason) == ("Pending", "Unschedulable")
        assert state.message == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert len(h.events("big", reason="FailedScheduling")) == 1
        h.create(h.node("n2", cpu=16))
        assert h.run_until_bound("big") < 2
        assert h.pod_state("big").scheduled == "True"


def test_no_attempt_is_made_while_nothing_could_help() -> None:
    with Harness(seed=4) as h:
        h.create(h.node("n1", cpu=4), h.pod("big", cpu=8))
        h.run_for(2)
        tries = len(h.attempts("big"))
        h.create(h.pod("small", cpu=1))
        h.run_for(60)
        assert len(h.attempts("big")) == tries
        h.run_for(300)
        assert len(h.attempts("big")) > tries, "the flush of the unschedulable pool"


def test_room_that_a_deleted_pod_leaves_is_used() -> None:
    with Harness(seed=5) as h:
        h.create(h.node("n1", cpu=4), h.pod("first", cpu=4))
        h.run_until_running("first")
        h.create(h.pod("second", cpu=4))
        h.run_for(10)
        assert not h.pod_state("second").node
        h.delete("pods", "first")
        h.run_until_running("second")
        assert not h.pod_state("first").exists


def test_a_gated_pod_waits_for_its_gate() -> None:
    with Harness(seed=6) as h:
        h.create(h.node("n1"), h.pod("g", cpu=1, schedulingGates=[{"name": "example.com/hold"}]))
        h.run_for(30)
        state = h.pod_state("g")
        assert (state.node, state.reason) == ("", "SchedulingGated")
        assert h.events("g", reason="FailedScheduling") == []
        h.patch(
            "pods", "g", {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/hold"}]}}
        )
        h.run_until_running("g")


def test_pods_of_another_scheduler_are_not_ours() -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1"), h.pod("foreign", cpu=1, schedulerName="somebody-else"))
        h.run_for(60)
        assert not h.pod_state("foreign").node
        h.bind("foreign", "n1")
        h.run_until_running("foreign")
        h.check_converged()


def test_a_cordoned_node_gets_nothing_until_it_is_uncordoned() -> None:
    with Harness(seed=8) as h:
        h.create(h.node("n1"))
        h.cordon("n1")
        h.create(h.pod("a", cpu=1))
        h.run_for(5)
        assert h.pod_state("a").message == (
            "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        h.cordon("n1", False)
        h.run_until_running("a", timeout=5)


@pytest.mark.parametrize("graceful", [True, False])
def test_a_restart_loses_nothing(graceful: bool) -> None:
    with Harness(seed=9) as h:
        h.create(h.node("n1", cpu=4))
        h.create(*(h.pod(f"p{i}", cpu=1) for i in range(3)), h.pod("big", cpu=8))
        h.run_until_running("p0", "p1", "p2")
        h.restart_scheduler(graceful=graceful)
        h.create(h.pod("late", cpu=1), h.pod("over", cpu=1))
        h.run_for(20)
        states = h.pod_states("default")
        assert [states[n].node for n in ("p0", "p1", "p2", "late")] == ["n1"] * 4
        assert [states[n].node for n in ("big", "over")] == ["", ""]
        assert all(len(h.bindings(n)) == 1 for n in ("p0", "p1", "p2", "late"))
        h.create(h.node("n2", cpu=16))
        h.run_until_running("big", "over")
        h.check_converged()


def test_a_restart_in_the_middle_of_a_storm_binds_everything_once() -> None:
    with Harness(seed=10) as h:
        h.create(*(h.node(f"n{i}", cpu=8) for i in range(10)))
        h.create(*(h.pod(f"p{i}", cpu=1) for i in range(60)))
        h.faults.latency(0.2, 0.2, client="scheduler", method="POST")
        h.run_for(0.3)
        h.restart_scheduler()
        h.run_until(lambda: all(s.phase == "Running" for s in h.pod_states().values()), timeout=120)
        h.settle()
        h.check_converged()


def test_not_reached_tells_how_things_stand() -> None:
    with Harness() as h:
        h.create(h.pod("lonely", cpu=1))
        with pytest.raises(NotReachedError, match=r"default/lonely"):
            h.run_until_bound("lonely", timeout=5)
        assert h.pod_state("lonely").message == "no nodes available to schedule pods"
