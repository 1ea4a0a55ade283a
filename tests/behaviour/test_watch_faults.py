"""Watches that break, lie late or are too old: field cases F1, F2, F4, F5, F8."""

from __future__ import annotations

import pytest

from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness
from pilotage.testing.streams import End

SCHEDULER = {"client": "scheduler"}


@pytest.mark.parametrize("end", list(End))
def test_dropped_watches_are_resumed_without_a_new_list(end: End) -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1"))
        h.run_for(1)
        lists = len(h.requests(client="scheduler", verb="list"))
        assert h.faults.drop_watches(end, **SCHEDULER) > 10
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a")
        assert len(h.requests(client="scheduler", verb="list")) == lists
        h.settle()
        h.check_converged()


@pytest.mark.parametrize("form", [Gone.STATUS, Gone.EVENT])
def test_f4_too_old_on_watch_means_list_again(form: Gone) -> None:
    with Harness(seed=2) as h:
        h.create(h.node("n1", cpu=4), h.pod("old", cpu=4))
        h.run_until_running("old")
        held = h.faults.hold_watches(path="/pods$", **SCHEDULER)
        h.delete("pods", "old", grace=0)
        h.create(h.pod("new", cpu=4))
        h.faults.gone(form, path="/pods$", **SCHEDULER)
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        held.release()
        h.run_until_running("new", timeout=20)
        assert len(h.requests(verb="list", path="/pods$", **SCHEDULER)) == 2
        h.settle()
        h.check_converged()


def test_f4_the_server_itself_says_410_in_both_places() -> None:
    with Harness(seed=3, history=10) as h:
        h.create(h.node("n1", cpu=100))
        h.run_for(1)
        h.faults.unreachable_for(5, **SCHEDULER)
        h.create(*(h.pod(f"p{i}", cpu=1) for i in range(30)))
        h.server.compact()
        h.run_until(lambda: all(s.node for s in h.pod_states().values()), timeout=60)
        h.settle()
        h.check_converged()


def test_f4_no_tight_loop_while_410_lasts() -> None:
    with Harness(seed=4) as h:
        h.create(h.node("n1"))
        h.run_for(1)
        h.faults.gone(Gone.STATUS, path="/pods$", times=1000, **SCHEDULER)
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        start = len(h.requests(path="/pods$", **SCHEDULER))
        h.run_for(60)
        assert len(h.requests(path="/pods$", **SCHEDULER)) - start < 60
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)
        for record in h.requests(verb="watch", **SCHEDULER):
            assert record.request.query["resourceVersion"] not in ("", "0", "None")


def test_retry_after_of_a_busy_server_is_kept() -> None:
    with Harness(seed=5) as h:
        h.create(h.node("n1"))
        h.run_for(1)
        h.faults.too_many_requests(retry_after=20, verb="watch", path="/pods$", times=2, **SCHEDULER)
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        h.run_for(60)
        times = [record.time for record in h.requests(verb="watch", path="/pods$", status=429)]
        assert times[1] - times[0] >= 20
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)


def test_f1_a_delete_that_was_missed_gives_its_room_back() -> None:
    with Harness(seed=6) as h:
        h.create(h.node("n1", cpu=4))
        h.run_for(1)
        h.faults.hold_watches(path="/pods$", **SCHEDULER)
        h.server.compact()
        h.create(h.pod("blind", cpu=4))  # the scheduler cannot see it yet
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        h.run_until(lambda: h.bindings("blind"))
        h.faults.hold_watches(path="/pods$", **SCHEDULER)
        h.run_until_bound("blind")
        h.delete("pods", "blind", grace=0)
        h.create(h.pod("next", cpu=4))
        h.server.compact()
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        h.run_until_running("next", timeout=30)
        h.settle()
        h.check_converged()


def test_f1_the_same_name_with_another_uid_is_a_delete_and_an_add() -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=2), h.pod("a", cpu=4))
        h.run_until_running("a")
        h.faults.hold_watches(path="/pods$", **SCHEDULER)
        h.delete("pods", "a", grace=0)
        h.create(h.pod("a", cpu=2))
        h.server.compact()
        h.faults.drop_watches(path="/pods$", **SCHEDULER)
        h.run_until_running("a", timeout=30)
        h.create(h.pod("b", cpu=2), h.pod("c", cpu=2))
        h.run_until_running("b", "c")
        h.check_converged()


def test_f2_a_node_that_comes_back_still_holds_its_pods() -> None:
    with Harness(seed=8) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=3))
        h.run_until_running("a")
        h.delete("nodes", "n1")
        h.create(h.pod("b", cpu=2))
        h.run_for(3)
        assert not h.pod_state("b").node
        h.create(h.node("n1", cpu=4))
        h.run_for(30)
        assert h.pod_state("a").exists
        assert h.pod_state("b").message == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
        h.delete("pods", "a")
        h.run_until_running("b")
        h.check_converged()


def test_late_watches_never_make_a_node_overfull() -> None:
    with Harness(seed=9) as h:
        h.create(*(h.node(f"n{i}", cpu=4) for i in range(3)))
        h.run_for(1)
        h.faults.delay_watches(5, **SCHEDULER)
        for wave in range(5):
            h.create(*(h.pod(f"p{wave}{i}", cpu=1) for i in range(4)))
            h.run_for(1)
        h.run_for(60)
        states = h.pod_states("default")
        assert sum(bool(state.node) for state in states.values()) == 12
        h.faults.clear()
        h.settle(10)
        h.check_converged()


def test_f8_zones_may_come_and_go() -> None:
    with Harness(seed=10) as h:
        h.create(*(h.node(f"m{i}") for i in range(1, 4)))
        zone = "topology.kubernetes.io/zone"
        h.label("nodes", "m1", **{zone: "z1"})
        h.label("nodes", "m2", **{zone: "z1"})
        h.label("nodes", "m3", **{zone: "z2"})
        h.create(h.node("w1", zone="z3"))
        h.delete("nodes", "w1")
        for number in range(1, 4):
            selector = {"kubernetes.io/hostname": f"m{number}"}
            h.create(h.pod(f"p{number}", cpu=1, node_selector=selector))
        h.run_until_running("p1", "p2", "p3")
        assert [h.pod_state(f"p{n}").node for n in (1, 2, 3)] == ["m1", "m2", "m3"]
        h.check_converged()


def test_services_survive_broken_watches_and_errors() -> None:
    """Kubelets and controllers are clients like any other."""
    with Harness(seed=11) as h:
        h.create(*(h.node(f"n{i}", cpu=8) for i in range(3)))
        h.create(h.deployment("web", 10, h.pod("x", cpu=1)))
        h.faults.answer(500, client="services", times=5)
        h.faults.lose_answer(client="services", method="POST", times=3)
        h.run_for(0.5)
        h.faults.drop_watches(client="services")
        h.faults.too_many_requests(1, client="services", verb="patch", times=5)
        h.run_until(lambda: _ready(h, "web") == 10, timeout=120)
        h.server.compact()
        h.faults.unreachable_for(15, client="services")
        h.scale("web", 4)
        h.run_until(lambda: len(h.objects("pods", "default")) == 4, timeout=120)
        h.run_for(30)
        assert len(h.objects("pods", "default")) == 4
        h.check_converged()


def _ready(h: Harness, name: str) -> int:
    return int(h.get("deployments", name)["status"]["readyReplicas"])
