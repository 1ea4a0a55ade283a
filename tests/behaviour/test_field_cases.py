"""Field cases G1 and G4 on the whole system: messages that add up, gauges that are true."""

from __future__ import annotations

import pytest

from pilotage.testing.harness import Harness

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
HOSTNAME = "kubernetes.io/hostname"


def test_g1_the_counts_of_a_message_add_up() -> None:
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    with Harness(seed=11) as h:
        h.create(*(h.node(f"t{i}", taints=[taint], labels={"ok": "yes"}) for i in range(3)))
        h.create(*(h.node(f"s{i}", cpu="500m", labels={"ok": "yes"}) for i in range(2)), h.node("w"))
        h.create(h.pod("a", cpu=1, node_selector={"ok": "yes"}))
        h.run_for(3)
        assert h.pod_state("a").message == (
            "0/6 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "2 Insufficient cpu, 3 node(s) had untolerated taint(s). no new claims to deallocate, "
            "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
        )


GATE = [{"name": "example.com/x"}]


@pytest.mark.parametrize("cpu", ["1", "1000"])
def test_g4_the_gauges_are_the_real_lengths(cpu: str) -> None:
    with Harness(seed=12) as h:
        h.create(h.node("n1"), h.pod("a", cpu=cpu, schedulingGates=GATE))
        h.run_for(3)
        assert lengths(h) == (0, 0, 0, 1)
        h.patch("pods", "a", {"spec": {"schedulingGates": [{"$patch": "delete", **GATE[0]}]}})
        h.run_for(5)
        assert lengths(h) == (0, 0, 1 if cpu == "1000" else 0, 0)
        h.delete("pods", "a", grace=0)
        h.run_for(3)
        assert lengths(h) == (0, 0, 0, 0)


def lengths(h: Harness) -> tuple[int, int, int, int]:
    found = h.engine.statistics()
    return found.active, found.backoff, found.unschedulable, found.gated
