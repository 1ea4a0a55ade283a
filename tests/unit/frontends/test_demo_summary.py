"""The demo's summary from plain objects, and its workload against what it promises."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.quantity import milli_value
from pilotage.frontends.demo.runner import PodLog, demo_nodes, demo_objects
from pilotage.frontends.demo.summary import NO_ZONE, Pending, percentile, summarise

Tree = dict[str, Any]


def node(name: str, cpu: str, pool: str = "big", zone: str | None = "a") -> Tree:
    labels = {"pool": pool} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"cpu": cpu}}}


def pod(name: str, cpu: str = "1", *, on: str = "", phase: str = "Pending", message: str = "") -> Tree:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": phase, "conditions": [condition] if message else []},
    }


def test_counts_zones_and_utilisation() -> None:
    nodes = [node("n1", "4"), node("n2", "2", "small", "b"), node("n3", "2", "small", None)]
    pods = [pod("a", "1", on="n1", phase="Running"), pod("b", "1500m", on="n2"), pod("c")]
    found = summarise(pods, nodes, [0.1, 0.3], 2.0, {"sent": 4})
    assert (found.nodes, found.bound, found.running) == (3, 2, 1)
    assert found.zones == {NO_ZONE: 0, "a": 1, "b": 1}
    assert {pool.pool: pool.cpu for pool in found.utilisation} == {"big": (0.25,), "small": (0.75, 0.0)}
    assert (found.bind_p50, found.bind_p99, found.elapsed, found.calls) == (0.3, 0.3, 2.0, {"sent": 4})


def test_sidecars_count_and_init_containers_do_not() -> None:
    one = pod("a", "1", on="n1")
    one["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "init", "resources": {"requests": {"cpu": "3"}}},
    ]
    assert summarise([one], [node("n1", "4")], [], 0.0, {}).utilisation[0].cpu == (0.375,)


def test_pending_pods_are_grouped_by_owner_and_reason() -> None:
    owned = [pod("web-x7-a", message="no room"), pod("web-x7-b", message="no room"), pod("solo")]
    for tree in owned[:2]:
        tree["metadata"] |= {
            "labels": {"pod-template-hash": "x7"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-x7"}],
        }
    assert summarise(owned, [], [], 0.0, {}).pending == (
        Pending(("shop/solo",), "not tried yet"),
        Pending(("shop/web-x7-a", "shop/web-x7-b"), "no room"),
    )


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0.0), ([7.0], 0.99, 7.0), ([3.0, 1.0, 2.0], 0.5, 2.0), (list(range(100)), 0.99, 99)],
)
def test_percentile(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_the_log_of_a_watch_follows_each_pod() -> None:
    log = PodLog()
    waiting = pod("a", message="no room")
    log.record("ADDED", waiting, 1.0)
    assert (log.decided, log.refused, log.is_settled(1)) == (1, {"a"}, True)
    log.record("MODIFIED", pod("a", on="n1"), 3.0)
    assert (log.refused, log.bind_seconds(), log.is_settled(1)) == (set(), [2.0], False)
    log.record("MODIFIED", pod("a", on="n1", phase="Running"), 4.0)
    assert (log.is_settled(1), log.is_settled(2), log.changed) == (True, False, 4.0)
    log.record("DELETED", pod("b"), 5.0)
    assert log.decided == 1


def test_the_workload_is_what_the_demo_promises() -> None:
    nodes, objects = demo_nodes(), demo_objects()
    zones = {tree["metadata"]["labels"]["topology.kubernetes.io/zone"] for tree in nodes}
    assert (len(nodes), len(zones)) == (50, 3)
    assert len({str(tree["status"]["allocatable"]) for tree in nodes}) == 5
    deployments = [tree for tree in objects if tree["kind"] == "Deployment"]
    assert 200 < sum(tree["spec"]["replicas"] for tree in deployments) < 500
    text = str(deployments)
    for feature in (
        "topologySpreadConstraints",
        "podAntiAffinity",
        "nodeAffinity",
        "tolerations",
        "nodeSelector",
    ):
        assert feature in text


def test_the_workload_fills_half_to_three_quarters_of_the_cluster() -> None:
    whole = sum(milli_value(tree["status"]["allocatable"]["cpu"]) for tree in demo_nodes())
    asked = 0
    for tree in demo_objects():
        if tree["kind"] == "Deployment" and tree["metadata"]["name"] != "warehouse":
            containers = tree["spec"]["template"]["spec"]["containers"]
            cpu = sum(milli_value(c["resources"]["requests"]["cpu"]) for c in containers)
            asked += cpu * tree["spec"]["replicas"]
    assert 0.5 < asked / whole < 0.75
