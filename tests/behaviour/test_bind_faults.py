"""Binds that are refused, lost or late: field cases A1, A4, A5, D8, D10, F7."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pilotage.testing.harness import Harness

BIND = "/binding$"
STATUS = r"/pods/[^/]+/status$"


def test_429_on_binds_is_waited_out() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1"))
        h.faults.too_many_requests(retry_after=3, path=BIND, times=2)
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)
        times = [record.time for record in h.bindings("a")]
        assert [record.status for record in h.bindings("a")] == [429, 429, 201]
        assert all(later - earlier >= 3 for earlier, later in pairwise(times))
        assert h.events("a", reason="FailedScheduling") == []
        h.check_converged()


def test_d10_errors_on_binds_back_off() -> None:
    """Also when nothing else is to be done: gaps of 1, 2, 4 s (and up to one more)."""
    with Harness(seed=2) as h:
        h.create(h.node("n1"))
        rule = h.faults.answer(503, path=BIND)
        h.create(h.pod("a", cpu=1))
        h.run_for(10)
        times = [record.time for record in h.bindings("a")]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert 3 <= len(times) <= 4
        assert all(least <= gap <= least + 1 for least, gap in zip((1, 2, 4), gaps, strict=False))
        assert h.pod_state("a").reason == "SchedulerError"
        rule.remove()
        h.run_until_running("a", timeout=12)
        assert h.pod_state("a").scheduled == "True"
        h.check_converged()


def test_a_bind_that_failed_gives_its_room_to_others() -> None:
    """D8: A's bind fails for good and A goes; B, rejected because of A, is tried within a backoff."""
    with Harness(seed=3) as h:
        h.create(h.node("n1", pods=1))
        hold = h.faults.hold(path="/pods/a/binding$")
        h.faults.answer(403, path="/pods/a/binding$")
        h.create(h.pod("a"))
        h.run_for(1)
        h.create(h.pod("b"))
        h.run_for(5)
        assert not h.pod_state("b").node
        h.delete("pods", "a", grace=0)
        hold.release()
        assert h.run_until_bound("b", timeout=20) <= 2
        h.settle()
        h.check_converged()


@pytest.mark.parametrize("stale", [0.0, 2.0, 20.0])
def test_a5_the_answer_of_a_bind_is_lost(stale: float) -> None:
    with Harness(seed=4) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
        h.run_for(1)
        if stale:
            h.faults.delay_watches(stale, client="scheduler", path="/pods$")
        h.faults.lose_answer(path=BIND, times=1)
        h.create(h.pod("a", cpu=3))
        h.run_for(60)
        state = h.pod_state("a")
        assert (state.phase, state.scheduled) == ("Running", "True")
        targets = {record.json()["target"]["name"] for record in h.bindings("a")}
        assert targets == {state.node}
        assert h.events("a", reason="FailedScheduling") == []
        h.create(h.pod("b", cpu=4), h.pod("c", cpu=1))
        h.run_until_running("b", "c", timeout=60)
        assert h.pod_state("b").node != state.node
        h.settle(stale + 1)
        h.check_converged()


def test_a5_the_bind_is_lost_on_its_way() -> None:
    with Harness(seed=5) as h:
        h.create(h.node("n1"))
        h.faults.lose_answer(after_write=False, path=BIND, times=1)
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)
        h.check_converged()


def test_a_bind_that_never_answers_is_settled_by_reading() -> None:
    with Harness(seed=6) as h:
        h.create(h.node("n1"), h.node("n2"))
        hold = h.faults.hold(path=BIND, after_write=True, times=1)
        h.create(h.pod("a", cpu=1))
        h.run_for(120)
        hold.release()
        assert h.pod_state("a").phase == "Running"
        assert len({record.json()["target"]["name"] for record in h.bindings("a")}) == 1
        h.settle()
        h.check_converged()


def test_a_bind_that_lands_after_the_scheduler_was_killed() -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=BIND, lands_anyway=True, times=1)
        h.create(h.pod("a", cpu=3))
        h.run_for(1)
        assert len(hold.waiting) == 1
        h.kill_scheduler()
        hold.release()
        h.start_scheduler()
        h.create(h.pod("b", cpu=3))
        h.run_for(30)
        assert [bool(h.pod_state(n).node) for n in ("a", "b")].count(True) == 1
        h.check_converged()


def test_a4_a_late_false_never_hides_a_bound_pod() -> None:
    with Harness(seed=8) as h:
        h.create(h.node("n1"))
        h.faults.answer(500, path=BIND, times=1)
        h.faults.latency(before=3, path=STATUS, client="scheduler", times=1)
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)
        h.run_for(10)
        assert h.pod_state("a").scheduled == "True"
        assert h.pod_state("a").reason == ""
        h.check_converged()


def test_a4_a_change_by_somebody_else_does_not_lose_the_patch() -> None:
    with Harness(seed=9) as h:
        h.create(h.node("n1", cpu=1))
        h.faults.latency(before=3, path=STATUS, client="scheduler", times=1)
        h.create(h.pod("a", cpu=8))
        h.run_for(1)
        h.label("pods", "a", color="blue")
        h.run_for(15)
        state = h.pod_state("a")
        assert (state.scheduled, state.reason) == ("False", "Unschedulable")
        assert h.get("pods", "a")["metadata"]["labels"] == {"color": "blue"}


def test_a1_a_storm_of_status_patches_does_not_delay_a_bind() -> None:
    profile = {"clientConnection": {"qps": 5, "burst": 5}}
    with Harness(seed=10, settings=profile, scheduler=False) as h:
        h.create(h.node("n1", cpu=4))
        h.create(*(h.pod(f"big{i:03}", cpu=8) for i in range(200)))
        h.create(h.pod("good", cpu=1))
        h.start_scheduler()
        h.run_until(lambda: h.bindings("good"), timeout=10)
        ready = min(r.time for r in h.requests(client="scheduler", path=STATUS))
        assert h.bindings("good")[0].time - ready <= 2
        h.run_for(60)
        states = [state for name, state in h.pod_states("default").items() if name != "good"]
        assert {state.reason for state in states} == {"Unschedulable"}
        patches = h.requests(client="scheduler", verb="patch", path=STATUS)
        assert len(patches) == len({record.path for record in patches}), "none twice for the same text"


def test_f7_a_failed_answer_after_the_bound_event_was_seen() -> None:
    with Harness(seed=11) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=BIND, after_write=True, times=1)
        h.faults.lose_answer(path=BIND, times=1)
        h.create(h.pod("a", cpu=3))
        h.run_for(2)
        assert h.pod_state("a").phase == "Running", "the scheduler has seen it bound"
        hold.release()
        h.run_for(30)
        assert h.events("a", reason="FailedScheduling") == []
        h.create(h.pod("b", cpu=2), h.pod("c", cpu=1))
        h.run_until_running("c")
        assert not h.pod_state("b").node
        h.check_converged()


def test_a_pod_bound_by_hand_while_we_decide_is_accepted() -> None:
    with Harness(seed=12) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
        h.run_for(1)
        hold = h.faults.hold(path=BIND, client="scheduler", times=1)
        h.create(h.pod("a", cpu=3))
        h.run_for(1)
        chosen = hold.waiting[0]
        other = "n2" if b'"n1"' in chosen.body else "n1"
        h.bind("a", other)
        hold.release()
        h.run_for(20)
        assert (h.pod_state("a").node, h.pod_state("a").phase) == (other, "Running")
        h.create(h.pod("b", cpu=4))
        h.run_until_running("b")
        h.check_converged()


def test_a_pod_deleted_while_its_bind_is_held_leaves_nothing_behind() -> None:
    with Harness(seed=13) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=BIND, times=1)
        h.create(h.pod("a", cpu=4))
        h.run_for(1)
        h.delete("pods", "a")
        h.create(h.pod("b", cpu=4))
        h.run_for(1)
        hold.release()
        h.run_until_running("b", timeout=20)
        h.check_converged()
