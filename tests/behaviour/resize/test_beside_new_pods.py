"""Deferred resizes and pods that want to be placed: what is kept for whom (R6, R12, C1, C2, C4, C5)."""

from __future__ import annotations

from resizecluster import ResizeHarness


def test_c1_what_a_container_still_uses_is_not_free() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node(cpu=4)
        h.run_pod("a", 3)
        h.resize("a", 1)
        h.kubelet("a", 1, actual=3)
        h.create(h.pod("b", cpu=2))
        h.run_for(20)
        assert h.pod_state("b").node == ""
        h.kubelet("a", 1, actual=1)
        h.run_until_bound("b", timeout=12)


def test_c2_what_is_allocated_is_not_free() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node(cpu=4)
        h.run_pod("a", 2)
        h.resize("a", 1)
        h.kubelet("a", 3, actual=2)
        h.create(h.pod("b1", cpu=2), h.pod("b2", cpu=1))
        h.run_for(20)
        assert (h.pod_state("b1").node, h.pod_state("b2").node) == ("", "n1")


def test_c4_room_is_kept_for_a_deferred_resize_until_it_is_reverted() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("a", 4)
        h.run_pod("b", 4)
        h.defer("a", 9, has=4)
        h.create(h.pod("n", cpu=1))
        h.run_for(20)
        assert h.pod_state("n").node == ""
        assert h.victims() == []
        h.resize("a", 4)
        h.admit("a", 4)
        h.run_until_bound("n", timeout=12)


def test_c5_a_downsize_wakes_pods_that_wait_for_room() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node(cpu=4)
        h.run_pod("a", 3)
        h.create(h.pod("b", cpu=2))
        h.run_for(20)
        h.label("pods", "a", colour="blue")
        h.run_for(20)
        assert len(h.attempts("b")) == 1
        h.resize("a", 1)
        h.kubelet("a", 1)
        h.run_until_bound("b", timeout=12)


def test_a_new_pod_of_higher_priority_preempts_the_resizing_pod() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("other", 6, priority=3000)
        h.defer("r", 6, has=4)
        h.run_for(10)
        h.create(h.pod("vip", cpu=3, priority=2000))
        h.run_until_bound("vip", timeout=30)
        assert h.victims() == ["r"]


def test_a_new_pod_that_arrives_meanwhile_takes_no_second_victim_of_the_resize() -> None:
    """R's victim is on its way out; H is more important and takes its own."""
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("v1", 3, grace=60)
        h.run_pod("v2", 3, grace=60)
        h.run_for(1)
        h.defer("r", 6, has=4)
        h.run_until(lambda: h.victims(), timeout=10)
        (first,) = h.victims()
        h.create(h.pod("h", cpu=2, priority=2000))
        h.run_for(30)
        assert len(h.victims()) == 2
        assert h.victims()[0] == first
        for victim in h.victims():
            h.delete("pods", victim, grace=0)
        h.run_until_bound("h", timeout=30)
        h.admit("r", 6)
        h.run_for(20)
        assert len(h.victims()) == 2
        assert h.pod_state("r").exists


def test_of_equal_nodes_the_one_without_a_resizing_victim_is_taken() -> None:
    """R12"""
    for seed in range(6):
        with ResizeHarness(seed=seed) as h:
            for name in ("n1", "n2", "n3"):
                h.add_node(name, cpu=4)
                h.run_pod(f"on-{name}", 4, node=name)
            h.defer("on-n1", 5, has=4)
            h.defer("on-n3", 5, has=4)
            h.run_for(5)
            h.create(h.pod("vip", cpu=4, priority=1000))
            h.run_until_bound("vip", timeout=30)
            assert h.victims() == ["on-n2"]
