"""Field cases of the plugins on the whole system: E2 E5 E7 E11 E14 G1 G4."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.testing.harness import Harness

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
HOSTNAME = "kubernetes.io/hostname"


def test_e2_host_ports_of_sidecars_count_and_are_freed() -> None:
    port = {"containerPort": 8081, "hostPort": 8081}
    side = {"name": "side", "image": "i", "restartPolicy": "Always", "ports": [port]}
    once = {"name": "once", "image": "i", "ports": [port]}
    with Harness(seed=6) as h:
        h.create(h.node("n1"), h.pod("p1", initContainers=[side]))
        h.run_until_running("p1")
        h.create(h.pod("p2", initContainers=[side]), h.pod("p3", initContainers=[once]))
        h.run_until_running("p3")
        h.run_for(3)
        assert "free ports" in h.pod_state("p2").message
        h.delete("pods", "p1")
        h.run_until_running("p2", timeout=10)


def test_e5_taint_policies_of_spread() -> None:
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    for policy, is_bound in ((None, False), ("Ignore", False), ("Honor", True)):
        spread: dict[str, Any] = {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
        spread |= {"nodeTaintsPolicy": policy} if policy else {}
        with Harness(seed=7) as h:
            h.create(*(h.node(f"c{i}", taints=[taint]) for i in range(3)))
            h.create(*(h.node(f"w{i}") for i in range(3)))
            for number in range(3):
                h.create(h.pod(f"a{number}", labels={"app": "a"}, node_selector={HOSTNAME: f"w{number}"}))
            h.run_until_running("a0", "a1", "a2")
            h.create(h.pod("next", labels={"app": "a"}, topologySpreadConstraints=[spread]))
            h.run_for(5)
            assert bool(h.pod_state("next").node) == is_bound, policy


def test_e7_terms_are_ored_also_with_fields() -> None:
    def field(name: str) -> dict[str, Any]:
        return {"key": "metadata.name", "operator": "In", "values": [name]}

    terms = [
        {"matchFields": [field("n1"), field("n2")]},
        {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    with Harness(seed=8) as h:
        h.create(h.node("n1"), h.node("n2", labels={"foo": "bar"}))
        h.create(h.pod("a", affinity={"nodeAffinity": required}))
        h.run_until_bound("a")
        assert h.pod_state("a").node == "n2"


def test_e11_asking_nothing_of_an_overcommitted_resource() -> None:
    dev = "example.com/dev"
    with Harness(seed=9) as h:
        h.may_overcommit = True
        h.create(h.node("n1", resources={dev: 2}), h.pod("user", resources={dev: 2}))
        h.run_until_running("user")
        h.patch("nodes", "n1", {"status": {"allocatable": {dev: "0"}}}, subresource="status")
        h.create(h.pod("p0", cpu="100m", resources={dev: 0}), h.pod("p1", resources={dev: 1}))
        h.run_until_running("p0")
        h.run_for(3)
        assert h.pod_state("p1").message == (
            f"0/1 nodes are available: 1 Insufficient {dev}. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        h.patch("nodes", "n1", {"status": {"allocatable": {dev: "3"}}}, subresource="status")
        assert h.run_until_bound("p1", timeout=10) <= 2


def test_e14_a_pinned_pod_is_judged_on_its_node_alone() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = [{"matchFields": [field]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    with Harness(seed=10) as h:
        h.create(*(h.node(f"n{i}", pods=1) for i in (1, 2, 3)))
        h.create(h.pod("filler", node_selector={HOSTNAME: "n1"}))
        h.run_until_running("filler")
        h.create(h.pod("daemon", affinity={"nodeAffinity": required}))
        h.run_for(3)
        message = h.pod_state("daemon").message
        assert message == (
            "0/3 nodes are available: 1 Too many pods, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            "no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found "
            "for incoming pod, 2 Preemption is not helpful for scheduling."
        )


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
