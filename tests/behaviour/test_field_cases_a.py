"""Field cases A1 to A8 on the whole system, in both settings of SchedulerAsyncAPICalls where both apply.

What one of them says of the call queue alone is in unit/calls; further forms are in test_bind_faults and
test_call_storms.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pilotage.calls.lanes import DEFAULT_LIMITS
from pilotage.calls.types import Lane
from pilotage.framework.settings import Settings
from pilotage.runtime.config import default_settings
from pilotage.testing.builders import priority_class
from pilotage.testing.harness import Harness

BIND = "/binding$"
STATUS = r"/pods/[^/]+/status$"
ASYNC = default_settings()
SEQUENTIAL = default_settings(gates={"SchedulerAsyncAPICalls": False})
TAINT = {"key": "kept", "value": "free", "effect": "NoSchedule"}
both = pytest.mark.parametrize("settings", [ASYNC, SEQUENTIAL], ids=["async", "sequential"])


def patches(h: Harness, name: str = "[^/]+") -> list[Any]:
    return h.requests(client="scheduler", verb="patch", path=f"/pods/{name}/status$")


# -- A1


@both
def test_a1_what_has_not_changed_is_not_patched_again(settings: Settings) -> None:
    """All are tried again after five minutes; status, reason and message are what they were."""
    with Harness(seed=1, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(20)))
        h.run_for(400)
        assert {len(h.attempts(f"big{i:02}")) for i in range(20)} == {2}
        assert Counter(record.path for record in patches(h)).most_common(1)[0][1] == 1
        assert len(patches(h)) == 20


# -- A2


def test_a2_a_patch_that_fails_parks_nobody() -> None:
    with Harness(seed=2) as h:
        h.create(h.node("n1", cpu=4))
        h.faults.answer(500, path=STATUS, client="scheduler")
        h.create(h.pod("p", cpu=8))
        h.run_for(30)
        h.create(h.node("n2", cpu=16))
        assert h.run_until_running("p", timeout=12) <= 11
        assert h.pod_state("p").scheduled == "True"
        h.check_converged()


def test_a2_a_patch_that_waits_behind_one_is_dropped_where_the_pod_is_bound() -> None:
    with Harness(seed=3) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=STATUS, client="scheduler", times=1)
        h.create(h.pod("p", cpu=8))
        h.run_for(1)
        h.create(h.node("n2", cpu=4))  # another message: it waits for the one in flight
        h.run_for(12)
        assert h.scheduler.calls.statistics().pending.get("pod_status_patch", 0) <= 1
        h.create(h.node("n3", cpu=16))
        h.run_for(12)
        hold.release()
        h.run_until_running("p", timeout=5)
        h.run_for(5)
        assert len(patches(h)) == 1
        assert h.pod_state("p").scheduled == "True"


# -- A4


@both
@pytest.mark.parametrize("late", [0.5, 3.0, 8.0])
def test_a4_a_late_false_never_hides_a_bound_pod(settings: Settings, late: float) -> None:
    with Harness(seed=4, settings=settings) as h:
        h.create(h.node("n1"))
        h.faults.answer(500, path=BIND, times=1)
        h.faults.latency(before=late, path=STATUS, client="scheduler", times=1)
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a", timeout=30)
        h.run_for(late + 10)
        state = h.pod_state("a")
        assert (state.node, state.scheduled, state.reason) == ("n1", "True", "")
        h.check_converged()


@both
def test_a4_a_change_by_somebody_else_does_not_lose_the_patch(settings: Settings) -> None:
    with Harness(seed=5, settings=settings) as h:
        h.create(h.node("n1", cpu=1))
        hold = h.faults.hold(path=STATUS, client="scheduler", times=1)
        h.create(h.pod("a", cpu=8))
        h.run_for(1)
        h.label("pods", "a", color="blue")
        hold.release()
        h.run_for(5)
        assert h.pod_state("a").reason == "Unschedulable"
        assert [record.status for record in patches(h)] == [409, 200], "refused once, then sent anew"


# -- A5


@both
def test_a5_the_answer_of_a_bind_is_lost_and_watches_are_late(settings: Settings) -> None:
    with Harness(seed=6, settings=settings) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
        h.run_for(1)
        h.faults.delay_watches(2.0, client="scheduler", path="/pods$")
        h.faults.lose_answer(path=BIND, times=1)
        h.create(h.pod("a", cpu=3))
        h.run_for(20)
        state = h.pod_state("a")
        assert (state.phase, state.scheduled) == ("Running", "True")
        assert {record.json()["target"]["name"] for record in h.bindings("a")} == {state.node}
        assert h.events("a", reason="FailedScheduling") == []
        h.create(
            h.pod("b", cpu=4), h.pod("c", cpu=1)
        )  # charged once: the other node is empty, this one has 1
        h.run_until_running("b", "c")
        assert h.pod_state("c").node == state.node
        h.settle(3)
        h.check_converged()


# -- A7


@both
def test_a7_a_nomination_that_came_meanwhile_is_kept(settings: Settings) -> None:
    """The scheduler's view of the pod is old while it writes the second condition.

    A pod that may not preempt: for others a preemption without success clears the nomination, and says so.
    """
    with Harness(seed=7, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        h.create(priority_class(7, preemptionPolicy="Never"), h.pod("p", cpu=8, priority=7))
        h.run_for(2)
        first = h.get("pods", "p")["status"]["conditions"][0]
        held = h.faults.hold_watches(client="scheduler", path="/pods$")
        h.patch("pods", "p", {"status": {"nominatedNodeName": "n1"}}, subresource="status")
        h.create(h.node("n2", cpu=16, taints=[TAINT]))  # big enough to wake it
        h.run_for(12)
        assert [record.status for record in patches(h)] == [200, 409, 200]
        held.release()
        h.run_for(5)
        state, second = h.pod_state("p"), h.get("pods", "p")["status"]["conditions"][0]
        assert "0/2 nodes" in state.message
        assert state.nominated == "n1"
        assert second["lastTransitionTime"] == first["lastTransitionTime"], "the status did not flip"


@both
def test_a7_a_pod_of_the_same_name_is_not_patched_for_the_one_before(settings: Settings) -> None:
    with Harness(seed=8, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        h.create(h.pod("p", cpu=8))
        h.run_for(2)
        held = h.faults.hold_watches(client="scheduler", path="/pods$")
        h.delete("pods", "p", grace=0)
        h.create(h.pod("p", cpu=16, schedulerName="somebody-else"), h.node("n2", cpu=16, taints=[TAINT]))
        h.run_for(12)
        assert len(patches(h)) >= 2
        assert h.pod_state("p").scheduled == "", "no word of ours about a pod of others"
        held.release()
        h.run_for(5)
        assert h.pod_state("p").scheduled == ""


# -- A8


AT_ONCE = DEFAULT_LIMITS[Lane.STATUS].in_flight


def test_a8_nomination_and_eviction_leave_past_held_patches_which_drain_a_few_at_a_time() -> None:
    with Harness(seed=9) as h:
        h.create(h.node("n1", cpu=4), h.pod("v", cpu=4, grace=0))
        h.run_until_running("v")
        h.faults.latency(before=10, path="/pods/big[0-9]+/status$", client="scheduler")
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(50)))
        h.run_for(1)
        created = h.now
        h.create(h.pod("h", cpu=4, priority=1000))
        h.run_until(lambda: h.requests(client="scheduler", method="DELETE", path="/pods/v$"), timeout=1)
        h.run_until(lambda: h.pod_state("h").nominated == "n1" or h.pod_state("h").node, timeout=1)
        h.run_until_running("h")
        assert h.now - created <= 3
        h.run_for(140)
        sent = patches(h, "big[0-9]+")
        assert len(sent) == len({record.path for record in sent}) == 50
        waves = Counter(round(record.time - sent[0].time, 1) // 10 for record in sent)
        assert max(waves.values()) == AT_ONCE
        states = [state for name, state in h.pod_states("default").items() if name.startswith("big")]
        assert {state.reason for state in states} == {"Unschedulable"}


def test_a8_the_end_does_not_wait_for_those_that_are_queued() -> None:
    with Harness(seed=10) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=STATUS, client="scheduler")
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(50)))
        h.run_for(1)
        assert len(hold.waiting) == AT_ONCE
        begin, calls = h.now, h.scheduler.calls
        h.stop_scheduler()
        assert h.now - begin <= 5
        ended = Counter(
            {how.name: n for (name, how), n in calls.statistics().ended.items() if "patch" in name}
        )
        assert ended["CANCELLED"] == 50
        assert calls.is_idle
