"""What field cases A1, A2 and A8 come to without SchedulerAsyncAPICalls, and what A1 and A7 say with both.

Without the gate the next pod waits for what a cycle wrote (A15), as in kube-scheduler: a storm then does
delay a bind that comes after it in the queue, by so much as its patches take and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings, load_settings
from pilotage.testing.builders import priority_class
from pilotage.testing.harness import Harness

STATUS = r"/pods/[^/]+/status$"
SEQUENTIAL = {"SchedulerAsyncAPICalls": False}
FIVE_A_SECOND = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 5, "burst": 5},
}
both = pytest.mark.parametrize("gates", [{}, SEQUENTIAL], ids=["async", "sequential"])


def patches(h: Harness, name: str = "[^/]+") -> list[Any]:
    return h.requests(client="scheduler", verb="patch", path=f"/pods/{name}/status$")


# -- A1


def storm(gates: Mapping[str, bool], priority: int | None = None) -> float:
    """200 pods of 8 CPU that never fit, then `good`; seconds after which its bind left."""
    settings = load_settings(FIVE_A_SECOND, default_registry(), gates)
    with Harness(seed=1, settings=settings, scheduler=False) as h:
        h.create(priority_class(10), h.node("n1", cpu=4))
        h.create(*(h.pod(f"big{i:03}", cpu=8) for i in range(200)), h.pod("good", cpu=1, priority=priority))
        h.start_scheduler()
        begin = h.now
        h.run_for(60)
        assert len(h.bindings("good")) == 1
        most = Counter(record.path for record in patches(h)).most_common(1)[0][1]
        states = [state for name, state in h.pod_states("default").items() if name != "good"]
        assert (most, {state.reason for state in states}) == (1, {"Unschedulable"})
        return h.bindings("good")[0].time - begin


def test_a1_with_the_gate_the_bind_leaves_within_two_seconds() -> None:
    seconds = storm({})
    assert seconds <= 2


def test_a1_without_it_the_bind_waits_for_the_patches_of_those_before_it() -> None:
    seconds = storm(SEQUENTIAL)
    assert 35 <= seconds <= 45, "200 patches at five a second"


def test_a1_without_it_the_first_in_the_queue_waits_for_nobody() -> None:
    seconds = storm(SEQUENTIAL, priority=10)
    assert seconds <= 2


# -- A2


def test_a2_without_the_gate_no_attempt_is_made_while_the_patch_is_held() -> None:
    """Patches cannot multiply: the pod is not tried before its own has ended, and neither is another."""
    with Harness(seed=2, settings=default_settings(gates=SEQUENTIAL)) as h:
        h.create(h.node("n1", cpu=4, labels={"ok": "yes"}))
        hold = h.faults.hold(path=STATUS, client="scheduler", times=1)
        h.create(h.pod("p", cpu=8, node_selector={"ok": "yes"}))
        h.run_for(1)
        h.create(h.pod("other", cpu=1))
        for turn in range(10):
            capacity(h, 16 if turn % 2 == 0 else 4)
            h.label("nodes", "n1", ok=None if turn % 2 == 0 else "yes")
            h.run_for(1)
        assert (len(h.attempts("p")), len(h.attempts("other"))) == (1, 0)
        assert len(patches(h, "p")) == 1
        hold.release()
        h.run_until_running("other", timeout=2)
        h.run_for(15)
        assert len(patches(h, "p")) <= 2
        assert h.pod_state("p").message == h.attempts("p")[-1][1].message
        h.check_converged()


def capacity(h: Harness, cpu: int) -> None:
    amounts = {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}
    body = {"status": {"allocatable": amounts, "capacity": amounts}}
    h.patch("nodes", "n1", body, subresource="status")


@both
def test_a2_a_patch_cancelled_by_the_end_parks_nobody(gates: Mapping[str, bool]) -> None:
    with Harness(seed=3, settings=default_settings(gates=gates)) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=STATUS, client="scheduler")
        h.create(h.pod("p", cpu=8))
        h.run_until(lambda: hold.waiting)
        h.restart_scheduler(graceful=True)
        hold.release()
        h.create(h.node("n2", cpu=16))
        h.run_until_running("p", timeout=12)
        assert h.pod_state("p").scheduled == "True"
        h.check_converged()


# -- A7


@both
def test_a7_a_pod_that_is_gone_already_is_not_patched_again_and_again(gates: Mapping[str, bool]) -> None:
    with Harness(seed=4, settings=default_settings(gates=gates)) as h:
        h.create(h.node("n1", cpu=4))
        held = h.faults.hold(path=STATUS, client="scheduler", times=1)
        h.create(h.pod("p", cpu=8))
        h.run_until(lambda: held.waiting)
        h.faults.hold_watches(client="scheduler", path="/pods$")
        h.delete("pods", "p", grace=0)
        held.release()
        h.run_for(30)
        assert [record.status for record in patches(h)] == [404]
        h.faults.drop_watches(client="scheduler", path="/pods$")
        h.create(h.pod("q", cpu=4))
        h.run_until_running("q", timeout=10)
        h.check_converged()


# -- A8


def test_a8_without_the_gate_nomination_and_eviction_wait_for_one_patch_and_not_for_fifty() -> None:
    """Nobody is tried while a patch is held; then H goes first, and its writes leave at once."""
    with Harness(seed=5, settings=default_settings(gates=SEQUENTIAL)) as h:
        h.create(priority_class(1000), h.node("n1", cpu=4), h.pod("v", cpu=4, grace=0))
        h.run_until_running("v")
        h.faults.latency(before=10, path="/pods/big[0-9]+/status$", client="scheduler")
        h.create(*(h.pod(f"big{i:02}", cpu=8) for i in range(50)))
        h.run_for(1)
        assert len(patches(h, "big[0-9]+")) == 1
        created = h.now
        h.create(h.pod("h", cpu=4, priority=1000))
        h.run_until(lambda: h.requests(client="scheduler", method="DELETE", path="/pods/v$"), timeout=11)
        decided = h.attempts("h")[0][0]
        assert h.now - decided <= 1
        assert h.now - created <= 10
        h.run_until_running("h", timeout=25)
        h.run_for(520)
        sent = patches(h, "big[0-9]+")
        assert {record.path for record in sent if record.status == 200} == {
            f"/api/v1/namespaces/default/pods/big{i:02}/status" for i in range(50)
        }
