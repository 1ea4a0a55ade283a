"""Slow status writes and slow events under the whole scheduler: field cases A2, A8, G5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from pilotage.calls.lanes import DEFAULT_LIMITS
from pilotage.calls.types import Lane
from pilotage.testing.harness import Harness

STATUS = r"/pods/[^/]+/status$"
EVENTS = "/events"


def patches(h: Harness) -> list[Any]:
    return h.requests(client="scheduler", verb="patch", path=STATUS)


def message_in(record: Any) -> str:
    (condition,) = msgspec.json.decode(record.request.body)["status"]["conditions"]
    return str(condition["message"])


@contextmanager
def toggled_node(turns: int) -> Iterator[Harness]:
    """A pod that asks for both, and a node that is big or labelled, never both; status writes are held."""
    with Harness(seed=20) as h:
        h.create(h.node("n1", cpu=4, labels={"ok": "yes"}))
        h.hold = h.faults.hold(path=STATUS, client="scheduler")  # type: ignore[attr-defined]
        h.create(h.pod("p", cpu=8, nodeSelector={"ok": "yes"}))
        h.run_for(1)
        for turn in range(turns):
            toggle(h, is_big=turn % 2 == 0)
            h.run_for(1)
        yield h


def toggle(h: Harness, *, is_big: bool) -> None:
    cpu = {"cpu": "16" if is_big else "4"}
    steps = [
        lambda: h.label("nodes", "n1", ok=None if is_big else "yes"),
        lambda: h.patch(
            "nodes", "n1", {"status": {"allocatable": cpu, "capacity": cpu}}, subresource="status"
        ),
    ]
    for step in steps if is_big else reversed(steps):
        step()


@pytest.mark.parametrize("turns", [9, 10])
def test_a2_attempts_go_on_and_patches_do_not_multiply(turns: int) -> None:
    with toggled_node(turns) as h:
        assert 3 <= len(h.attempts("p")) <= 11
        assert len(patches(h)) == 1, "one is out, the rest is merged into one that waits"
        assert h.scheduler.calls.statistics().pending.get("pod_status_patch") == 1
        first, last = (h.attempts("p")[index][1].message for index in (0, -1))
        h.hold.release()  # type: ignore[attr-defined]
        h.run_for(2)
        assert len(patches(h)) == (1 if last == first else 2)
        assert message_in(patches(h)[-1]) == last == h.pod_state("p").message


def test_a2_a_bind_overtakes_the_patch_that_waits() -> None:
    with toggled_node(10) as h:
        toggle(h, is_big=False)
        cpu = {"cpu": "16"}
        h.patch("nodes", "n1", {"status": {"allocatable": cpu, "capacity": cpu}}, subresource="status")
        h.run_for(12)
        assert h.bindings("p") == [], "the pod's own patch is still in flight"
        h.hold.release()  # type: ignore[attr-defined]
        h.run_until_running("p")
        assert len(patches(h)) == 1
        assert h.pod_state("p").scheduled == "True"
        h.check_converged()


def test_a8_a_bind_leaves_past_patches_that_the_server_holds() -> None:
    with Harness(seed=21) as h:
        h.create(h.node("n1", cpu=4))
        h.faults.latency(before=10, path=STATUS, client="scheduler")
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(50)))
        h.run_for(1)
        created = h.now
        h.create(h.pod("good", cpu=1))
        h.run_until(lambda: h.bindings("good"), timeout=5)
        assert h.now - created <= 1
        h.run_for(120)
        states = [state for name, state in h.pod_states("default").items() if name != "good"]
        assert {state.reason for state in states} == {"Unschedulable"}
        assert len(patches(h)) == 50


def test_a8_the_end_does_not_wait_for_the_patches() -> None:
    with Harness(seed=22) as h:
        h.create(h.node("n1", cpu=4))
        h.faults.hold(path=STATUS, client="scheduler")
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(50)))
        h.run_for(1)
        before = h.now
        h.stop_scheduler()
        assert h.now - before <= 5.1


@pytest.mark.slow
def test_g5_blocked_events_cost_nothing_but_events() -> None:
    with Harness(seed=23, history=100_000) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=EVENTS, client="scheduler")
        h.create(*(h.pod(f"big{i:04}", cpu=8) for i in range(1100)))
        h.run_for(20)
        statistics = h.scheduler.calls.statistics()
        assert len(hold.waiting) == 4
        assert statistics.pending["event"] <= (DEFAULT_LIMITS[Lane.EVENT].cap or 0)
        created = h.now
        h.create(h.pod("good", cpu=1))
        h.run_until(lambda: h.bindings("good"), timeout=5)
        assert h.now - created <= 1
        h.run_for(300)
        assert sum(n for (name, _), n in h.scheduler.calls.statistics().ended.items() if name == "event") > 0
