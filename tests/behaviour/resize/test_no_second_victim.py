"""Victims that take their time: no second one, whatever happens meanwhile and whoever restarts (R11, C8)."""

from __future__ import annotations

import pytest

from resizecluster import ResizeHarness


def full(h: ResizeHarness) -> None:
    h.add_node()
    h.run_pod("r", 4, priority=1000)
    h.run_pod("v1", 3, grace=120)
    h.run_pod("v2", 3, grace=120)


def updates(h: ResizeHarness, count: int) -> None:
    """Node updates that each could help."""
    for number in range(count):
        for amounts in ({"memory": f"{20 + number}Gi"}, {"pods": f"{120 + number}"}):
            h.patch("nodes", "n1", {"status": {"allocatable": amounts}}, subresource="status")
        h.run_for(3)


@pytest.mark.parametrize("graceful", [False, True])
def test_c8_one_victim_in_spite_of_events_and_a_restart(graceful: bool) -> None:
    with ResizeHarness(seed=1) as h:
        full(h)
        h.run_for(1)
        h.defer("r", 6, has=4)
        h.run_until(lambda: h.victims(), timeout=10)
        updates(h, 5)
        h.restart_scheduler(graceful=graceful)
        updates(h, 5)
        h.run_for(60)
        assert len(h.victims()) == 1
        (victim,) = h.victims()
        assert h.pod_state(victim).is_terminating
        assert f"terminating pods make room: default/{victim}" in h.last_attempt("r")
        h.delete("pods", victim, grace=0)
        h.run_for(20)
        h.admit("r", 6)
        h.run_for(20)
        assert len(h.victims()) == 1
        assert h.writes_on("r") == []


def test_a_restart_before_the_first_look_finds_the_resize() -> None:
    with ResizeHarness(seed=1) as h:
        full(h)
        h.run_for(1)
        h.stop_scheduler()
        h.defer("r", 6, has=4)
        h.start_scheduler()
        h.run_for(5)
        assert len(h.victims()) == 1


def test_a_restart_while_the_eviction_is_on_its_way() -> None:
    """The first scheduler dies between the condition and the delete of its victim."""
    with ResizeHarness(seed=1) as h:
        full(h)
        h.run_for(1)
        h.defer("r", 6, has=4)
        h.run_until(lambda: h.requests(method="PATCH", path="/status$", client="scheduler"), timeout=10)
        h.kill_scheduler()
        h.run_for(1)
        h.start_scheduler()
        h.run_for(60)
        assert len(set(h.victims())) == 1


def test_terminating_pods_that_are_not_enough_are_counted_first() -> None:
    with ResizeHarness(seed=1) as h:
        full(h)
        h.run_for(1)
        h.delete("pods", "v1")  # the user's own deletion, 120 s
        h.defer("r", 8, has=4)
        h.run_for(20)
        assert h.victims() == ["v2"]
        assert h.reasons("r")[:2] == ["ResizePreempting", "ResizeWaiting"]
