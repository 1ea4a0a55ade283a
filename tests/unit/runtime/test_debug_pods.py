"""`/debug/pods/<namespace>/<name>`: where a pod waits, for whom, until when, and its story."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.runtime.debug_pods import pod_page
from pilotage.testing.harness import Harness


def page(h: Harness, name: str, namespace: str = "default") -> dict[str, Any]:
    scheduler = h.scheduler
    body = pod_page(scheduler.engine, scheduler.calls.pending(scheduler.clock.time()), namespace, name)
    assert body is not None
    return msgspec.json.decode(body, type=dict[str, Any])


def test_a_pod_that_no_node_can_take() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=1), h.pod("big", cpu=2))
        h.run_for(3)
        found = page(h, "big")
        assert (found["queue"], found["attempts"], found["node"]) == ("unschedulable", 1, None)
        assert found["waitsOn"] == ["NodeResourcesFit"]
        [woken] = found["wokenBy"]
        assert woken["plugin"] == "NodeResourcesFit"
        assert {"PodDelete", "NodeAdd", "NodeUpdateNodeAllocatable"} <= set(woken["events"])
        assert found["nextRetry"] > found["backoffUntil"] > found["story"][0]["time"]
        assert any("Insufficient cpu" in entry["text"] for entry in found["story"])


def test_a_gated_pod_names_its_gate() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1"), h.pod("held", schedulingGates=[{"name": "example.com/quota"}]))
        h.run_for(2)
        found = page(h, "held")
        assert (found["queue"], found["nextRetry"]) == ("gated", None)
        assert found["gate"] == {
            "plugin": "SchedulingGates",
            "message": "waiting for scheduling gates: [example.com/quota]",
        }


def test_pods_outside_the_queue() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1"), h.pod("runs"), h.pod("foreign", schedulerName="other"))
        h.run_until_running("runs")
        assert (page(h, "runs")["queue"], page(h, "runs")["node"]) == ("bound", "n1")
        assert page(h, "foreign")["queue"] == "notOurs"
        assert pod_page(h.scheduler.engine, (), "default", "nobody") is None
