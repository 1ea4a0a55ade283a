"""A deferred resize that waits: parked, woken by what can help, changed, reverted, given up (R1, R4, R8)."""

from __future__ import annotations

from resizecluster import PENDING, ResizeHarness

FITS = "pod resize fits, waiting for Kubelet actuation"


def attempts(h: ResizeHarness, name: str) -> int:
    return sum(entry.text.startswith("resize attempt") for entry in h.story(name))


def test_what_fits_is_parked_without_victims_and_tried_again_when_another_pod_grows() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("other", 1, priority=1000)
        h.run_pod("low", 1)
        h.defer("r", 6, has=4)
        h.run_for(30)
        assert FITS in h.last_attempt("r")
        assert h.reasons("r") == ["ResizeFits"]
        assert attempts(h, "r") == 1
        h.resize("other", 2)  # nothing is evicted for somebody's wish
        h.run_for(20)
        assert attempts(h, "r") == 2
        h.admit("other", 4)  # this is room that is gone
        h.run_for(20)
        assert h.victims() == ["low"]


def test_the_race_of_a_b_and_c() -> None:
    """A's victim makes room, the kubelet gives it to B first; A preempts C then."""
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("a", 2, priority=1000)
        h.run_pod("b", 2, priority=2000)
        h.run_pod("c", 3, priority=10)
        h.run_pod("d", 3, priority=1)
        h.run_for(1)
        h.defer("a", 4, has=2)
        h.run_for(3)
        assert h.victims() == ["d"]
        h.resize("b", 3)
        h.admit("b", 3)
        h.run_for(20)
        assert h.victims() == ["d"]
        assert FITS in h.last_attempt("a")
        h.resize("b", 5)
        h.admit("b", 5)
        h.run_for(20)
        assert h.victims() == ["d", "c"]
        h.admit("a", 4)
        h.run_for(20)
        assert h.victims() == ["d", "c"]


def test_a_changed_wish_is_looked_at_again() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("v1", 3)
        h.run_pod("equal", 3, priority=1000)
        h.defer("r", 8, has=4)  # more than V1 has
        h.run_for(10)
        assert h.victims() == []
        h.defer("r", 6, has=4)
        h.run_for(20)
        assert h.victims() == ["v1"]


def test_a_reverted_resize_leaves_without_victims() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("equal", 6, priority=1000)
        h.defer("r", 6, has=4)
        h.run_for(10)
        h.resize("r", 4)
        h.run_for(5)
        h.admit("r", 4)
        h.run_for(5)
        assert h.engine.position(h.pod_state("r").uid).value == "absent"
        assert h.story("r")[-1].text == "resize reverted"
        h.run_pod("late", 1, node="")
        h.delete("pods", "equal", grace=0)
        h.run_for(20)
        assert h.victims() == []


def test_an_infeasible_resize_leaves() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("equal", 6, priority=1000)
        h.run_pod("low", "1m")
        h.defer("r", 9, has=4)
        h.run_for(10)
        h.kubelet("r", 4, **{PENDING: "Infeasible"})
        h.delete("pods", "equal", grace=0)
        h.run_for(30)
        assert h.victims() == []
        assert h.story("r")[-1].text == "resize infeasible"


def test_more_than_the_node_has_costs_nobody() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.run_pod("r", 4, priority=1000)
        h.run_pod("v1", 3)
        h.defer("r", 11, has=4)
        h.run_for(30)
        assert h.victims() == []
        assert "Insufficient cpu" in h.last_attempt("r")
        h.patch("nodes", "n1", {"status": {"allocatable": {"cpu": "12"}}}, subresource="status")
        h.run_for(20)
        assert h.victims() == ["v1"]


def test_events_elsewhere_wake_nobody() -> None:
    with ResizeHarness(seed=1) as h:
        h.add_node()
        h.add_node("n2")
        h.run_pod("r", 4, priority=1000)
        h.run_pod("equal", 6, priority=1000)
        h.run_pod("far", 6, node="n2")
        h.defer("r", 6, has=4)
        h.run_for(20)
        assert attempts(h, "r") == 1
        h.delete("pods", "far", grace=0)
        h.patch("nodes", "n2", {"status": {"allocatable": {"cpu": "20"}}}, subresource="status")
        h.add_node("n3")
        h.label("nodes", "n1", colour="blue")
        h.patch("nodes", "n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        h.run_for(20)
        assert attempts(h, "r") == 1
        h.delete("pods", "equal", grace=0)
        h.run_for(20)
        assert attempts(h, "r") == 2
        assert FITS in h.last_attempt("r")
