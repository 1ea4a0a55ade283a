"""Field cases E2 E10 E11 E14 on the whole system: ports, requests, over-committed nodes, pinned pods."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.testing.builders import priority_class
from pilotage.testing.harness import Harness

HOSTNAME = "kubernetes.io/hostname"
DEV = "example.com/dev"
NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/1 nodes are available: "
    "1 Preemption is not helpful for scheduling."
)


# -- E2 ------------------------------------------------------------------------------------------


def sidecar(port: dict[str, Any], *, always: bool = True) -> dict[str, Any]:
    """An init container with a port: a sidecar if it runs always."""
    return {"name": "side", "image": "i", "ports": [port], **({"restartPolicy": "Always"} if always else {})}


@pytest.mark.parametrize("host_network", [True, False])
def test_e2_host_ports_of_sidecars_count_and_are_freed(host_network: bool) -> None:
    port = {"containerPort": 8081, "hostPort": 8081}
    more = {"hostNetwork": True} if host_network else {}
    with Harness(seed=1) as h:
        h.create(h.node("n1"), h.pod("p1", initContainers=[sidecar(port)], **more))
        h.run_until_running("p1")
        h.create(h.pod("p2", initContainers=[sidecar(port)], **more))
        h.create(h.pod("p3", initContainers=[sidecar(port, always=False)], **more))
        h.run_until_running("p3")
        h.run_for(3)
        assert h.pod_state("p2").message.startswith(
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. "
        )
        h.delete("pods", "p1", grace=0)
        assert h.run_until_bound("p2", timeout=10) <= 2


def with_port(h: Harness, name: str, port: int, protocol: str, address: str) -> dict[str, Any]:
    fields = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": address}
    return h.pod(name, initContainers=[sidecar({key: value for key, value in fields.items() if value})])


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        ((8081, "TCP", "0.0.0.0"), (8081, "TCP", "10.0.0.1"), False),
        ((8081, "TCP", "10.0.0.1"), (8081, "TCP", ""), False),
        ((8081, "TCP", "10.0.0.1"), (8081, "TCP", "10.0.0.1"), False),
        ((8081, "TCP", "10.0.0.1"), (8081, "TCP", "10.0.0.2"), True),
        ((8081, "TCP", ""), (8081, "UDP", ""), True),
        ((8081, "TCP", ""), (8082, "TCP", ""), True),
        ((8081, "", ""), (8081, "TCP", ""), False),
    ],
)
def test_e2_ports_conflict_by_number_protocol_and_address(
    held: tuple[int, str, str], wanted: tuple[int, str, str], fits: bool
) -> None:
    with Harness(seed=2) as h:
        h.create(h.node("n1"), with_port(h, "p1", *held))
        h.run_until_running("p1")
        h.create(with_port(h, "p2", *wanted))
        h.run_for(3)
        assert bool(h.pod_state("p2").node) == fits


# -- E10 -----------------------------------------------------------------------------------------


def scoring(*enabled: str) -> dict[str, Any]:
    """A profile with these score plugins alone."""
    score = {"enabled": [{"name": name} for name in enabled], "disabled": [{"name": "*"}]}
    return {"profiles": [{"schedulerName": "default-scheduler", "plugins": {"score": score}}]}


def crowd(h: Harness) -> None:
    """30 pods without requests on n1; n2 is empty."""
    h.create(h.node("n1", memory="8Gi"), h.node("n2", memory="8Gi"))
    names = [f"idle{i}" for i in range(30)]
    h.create(*(h.pod(name, node_selector={HOSTNAME: "n1"}) for name in names))
    h.run_until_running(*names)


def test_e10_least_allocated_counts_pods_without_requests() -> None:
    with Harness(seed=3, settings=scoring("NodeResourcesFit")) as h:
        crowd(h)
        for number in range(3):
            h.create(h.pod(f"p{number}", cpu=1, memory="2Gi"))
            h.run_until_bound(f"p{number}")
        # n1 scores 0; n2 75, 50 and 25.
        assert [h.pod_state(f"p{number}").node for number in range(3)] == ["n2", "n2", "n2"]


def test_e10_balance_looks_at_real_requests_only() -> None:
    # With equal scores the choice is by lot: over several seeds each node is taken.
    found = set()
    for seed in range(8):
        with Harness(seed=seed, settings=scoring("NodeResourcesBalancedAllocation")) as h:
            crowd(h)
            h.create(h.pod("p", cpu=1, memory="2Gi"))
            h.run_until_bound("p")
            found.add(h.pod_state("p").node)
    assert found == {"n1", "n2"}


def test_e10_the_filter_looks_at_real_requests_only() -> None:
    with Harness(seed=4) as h:
        crowd(h)
        h.create(h.pod("p", cpu=4, memory="8Gi", node_selector={HOSTNAME: "n1"}))
        h.run_until_bound("p", timeout=5)


# -- E11 -----------------------------------------------------------------------------------------


def test_e11_asking_nothing_of_an_overcommitted_resource() -> None:
    with Harness(seed=5) as h:
        h.may_overcommit = True
        h.create(h.node("n1", resources={DEV: 2}), *(h.pod(f"u{i}", resources={DEV: 1}) for i in range(2)))
        h.run_until_running("u0", "u1")
        h.patch("nodes", "n1", {"status": {"allocatable": {DEV: "0"}}}, subresource="status")
        h.create(h.pod("p0", cpu="100m", resources={DEV: 0}), h.pod("p1", resources={DEV: 1}))
        h.run_until_running("p0")
        h.run_for(3)
        assert h.pod_state("p1").message == (f"0/1 nodes are available: 1 Insufficient {DEV}. {NOT_HELPFUL}")
        tries = len(h.attempts("p1"))
        h.patch("nodes", "n1", {"status": {"allocatable": {DEV: "1"}}}, subresource="status")
        h.run_for(3)
        assert not h.pod_state("p1").node
        h.patch("nodes", "n1", {"status": {"allocatable": {DEV: "3"}}}, subresource="status")
        assert h.run_until_bound("p1", timeout=10) <= 5
        assert len(h.attempts("p1")) <= tries + 2


def test_e11_asking_no_cpu_of_a_node_with_too_much_of_it_in_use() -> None:
    with Harness(seed=6) as h:
        h.may_overcommit = True
        h.create(h.node("n1", cpu=5), h.pod("user", cpu="4500m"))
        h.run_until_running("user")
        h.patch("nodes", "n1", {"status": {"allocatable": {"cpu": "4"}}}, subresource="status")
        h.create(h.pod("none", cpu=0, memory="64Mi"), h.pod("little", cpu="1m", memory="64Mi"))
        h.run_until_running("none")
        h.run_for(3)
        assert not h.pod_state("little").node


@pytest.mark.parametrize(
    ("amounts", "asked", "fits"),
    [
        ({"cpu": "100m"}, {"cpu": "0.1"}, True),
        ({"cpu": "100m"}, {"cpu": "0.1001"}, False),
        ({"cpu": "100m"}, {"cpu": "100500u"}, False),
        ({"memory": "1k"}, {"memory": "1e3"}, True),
        ({"memory": "1e3"}, {"memory": "1Ki"}, False),
        ({"memory": "1Ki"}, {"memory": "1024"}, True),
        ({"memory": "128974848"}, {"memory": "128974848000m"}, True),
        ({"memory": "128974848"}, {"memory": "128974848001m"}, False),
        ({DEV: "1e3"}, {DEV: "1k"}, True),
    ],
)
def test_e11_quantities_are_exact_and_rounded_up(
    amounts: dict[str, str], asked: dict[str, str], fits: bool
) -> None:
    with Harness(seed=7, services=None) as h:
        h.create(h.node("n1", resources=amounts), h.pod("a", resources=asked))
        h.run_for(3)
        assert bool(h.pod_state("a").node) == fits
        if not fits:
            (resource,) = asked
            assert f"1 Insufficient {resource}. " in h.pod_state("a").message


# -- E14 -----------------------------------------------------------------------------------------

DAEMON = "0/3 nodes are available: 1 Too many pods, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "


def full(h: Harness) -> None:
    """Three nodes of six pods each, a pod of a daemon set on n1, and 15 fillers that find no room."""
    h.create(priority_class(10), priority_class(1000))
    h.create(*(h.node(f"n{i}", pods=6) for i in (1, 2, 3)))
    h.create(daemon(h, "daemon-0"))
    h.run_until_running("daemon-0")
    h.create(*(h.pod(f"f{i:02}", grace=0) for i in range(17)))
    h.run_until_running(*(f"f{i:02}" for i in range(17)))
    h.create(*(h.pod(f"late{i:02}", grace=0) for i in range(15)))
    h.run_for(3)


def daemon(h: Harness, name: str, **fields: Any) -> dict[str, Any]:
    """Pinned to n1 as the daemon set controller pins its pods."""
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pinned]}}
    return h.pod(name, affinity={"nodeAffinity": required}, grace=0, **fields)


def test_e14_an_equal_pinned_pod_has_no_victims_and_waits_for_its_turn() -> None:
    with Harness(seed=8) as h:
        full(h)
        h.delete("pods", "daemon-0", grace=0)
        h.create(daemon(h, "daemon-1"))
        h.run_for(30)
        # The slot goes to the oldest of the backlog.
        assert h.pod_state("late00").node == "n1"
        assert [name for name, state in h.pod_states("default").items() if not state.node] == [
            "daemon-1",
            *(f"late{i:02}" for i in range(1, 15)),
        ]
        assert h.pod_state("daemon-1").message == DAEMON + (
            "no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found "
            "for incoming pod, 2 Preemption is not helpful for scheduling."
        )
        assert not h.requests(method="DELETE", client="scheduler")
        h.check_converged()


def test_e14_an_important_pinned_pod_has_one_victim_on_its_node() -> None:
    with Harness(seed=9) as h:
        full(h)
        h.delete("pods", "daemon-0", grace=0)
        h.run_for(5)
        on_n1 = [name for name, state in h.pod_states("default").items() if state.node == "n1"]
        # All but one of n1's pods are more important than the pods of the other nodes.
        (lowest, *others) = on_n1
        for number, name in enumerate(others):
            h.delete("pods", name, grace=0)
            h.create(h.pod(f"mid{number}", priority=10, node_selector={HOSTNAME: "n1"}, grace=0))
            h.run_until_bound(f"mid{number}", timeout=20)
        h.run_for(5)
        before = h.now
        h.create(daemon(h, "daemon-1", priority=1000))
        h.run_until_running("daemon-1", timeout=20)
        deleted = h.requests(method="DELETE", client="scheduler", since=before)
        assert [record.path.rpartition("/")[2] for record in deleted] == [lowest]
        assert h.pod_state("daemon-1").node == "n1"
        assert all(h.pod_state(f"mid{number}").exists for number in range(len(others)))
        h.run_for(30)
        assert len(h.requests(method="DELETE", client="scheduler", since=before)) == 1
