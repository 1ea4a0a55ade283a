"""The numbers behind each plugin's verdict, and what would have to change."""

from __future__ import annotations

from typing import Any

import pytest

from explainkit import changes, details, explained, on, rejection
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_config
from pilotage.testing import builders as b

SPOT = {"key": "spot", "value": "a", "effect": "NoSchedule"}
DEDICATED = {"key": "dedicated", "effect": "NoExecute"}
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def anti(app: str, key: str = HOST) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(app: str, key: str = HOST) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def zonal(terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def spread(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


# NodeResourcesFit


def test_c4_room_that_is_kept_for_a_resize() -> None:
    """C4: A has 4 of 10 CPU and wants 9, B has 4."""
    amounts = {"cpu": "4"}
    container = {"name": "main", "allocatedResources": amounts, "resources": {"requests": amounts}}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    resized = on(b.pod("a", cpu=9), "n1")
    resized["status"] |= {"containerStatuses": [container], "conditions": [pending]}
    found = explained([b.node("n1", cpu=10), resized, on(b.pod("b", cpu=4), "n1"), b.pod("n", cpu=1)], "n")
    text = "needs 1000m cpu, 0m free of 10000m, 5000m kept for the resize of default/a"
    assert details(found) == {"n1": text}
    [entry] = rejection(found, "n1").detail.numbers["resources"]
    assert (entry["free"], entry["kept"]) == (0, {"default/a": 5000})


def test_cpu_that_is_not_free() -> None:
    found = explained([b.node("n1"), on(b.pod("a", cpu="2500m"), "n1"), b.pod("p", cpu=2)], "p")
    assert details(found) == {"n1": "needs 2000m cpu, 1500m free of 4000m"}
    [entry] = rejection(found, "n1").detail.numbers["resources"]
    assert entry == {"resource": "cpu", "needs": 2000, "used": 2500, "free": 1500, "of": 4000}
    assert rejection(found, "n1").may_preempt
    assert changes(found) == {("with 500m less cpu (1500m instead of 2000m)",): ("n1",)}


def test_less_of_two_resources_at_once() -> None:
    nodes = [b.node("n1", cpu=2, memory="4Gi"), b.node("n2", cpu=1, memory="2Gi")]
    found = explained([*nodes, b.pod("p", cpu=3, memory="6Gi")], "p")
    assert details(found)["n1"] == (
        "needs 3000m cpu, 2000m free of 2000m, too small even when empty; "
        "needs 6Gi memory, 4Gi free of 4Gi, too small even when empty"
    )
    assert not rejection(found, "n1").may_preempt
    first = "with 1000m less cpu (2000m instead of 3000m) and 2Gi less memory (4Gi instead of 6Gi)"
    both = "with 2000m less cpu (1000m instead of 3000m) and 4Gi less memory (2Gi instead of 6Gi)"
    assert changes(found) == {(first,): ("n1",), (both,): ("n1", "n2")}


def test_a_resource_that_no_node_has() -> None:
    found = explained([b.node("n1"), b.pod("p", resources={"example.com/gpu": 2})], "p")
    assert details(found) == {"n1": "needs 2 example.com/gpu, the node has none"}
    assert found.what_ifs == []


def test_overcommitted_nodes_show_what_is_missing() -> None:
    found = explained([b.node("n1", cpu=4), on(b.pod("a", cpu="4500m"), "n1"), b.pod("p", cpu="100m")], "p")
    assert details(found) == {"n1": "needs 100m cpu, 0m free of 4000m, 500m more in use"}
    assert found.what_ifs == []  # asking for nothing is no smaller request


def test_ignored_resources_are_not_named() -> None:
    registry = default_registry()
    args = {"ignoredResources": ["example.com/gpu"]}
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}],
    }
    settings = load_config(tree, registry).settings
    pod = b.pod("p", cpu=5, resources={"example.com/gpu": 2})
    found = explained([b.node("n1"), pod], "p", settings=settings, registry=registry)
    assert details(found) == {"n1": "needs 5000m cpu, 4000m free of 4000m, too small even when empty"}
    assert changes(found) == {("with 1000m less cpu (4000m instead of 5000m)",): ("n1",)}


def test_the_number_of_pods() -> None:
    found = explained([b.node("n1", pods=1), on(b.pod("a"), "n1"), b.pod("p")], "p")
    assert details(found) == {"n1": "1 pod on it, 1 allowed"}
    assert changes(found) == {("with room for one more pod (allocatable pods)",): ("n1",)}


def test_a_node_that_cannot_be_used() -> None:
    broken = b.node("n1")
    broken["status"]["allocatable"]["cpu"] = "much"
    found = explained([broken, b.pod("p")], "p")
    assert "status.allocatable[cpu]" in details(found)["n1"]


def test_pods_nominated_to_the_node_count() -> None:
    """What is free without them would contradict the verdict."""
    waiting = b.pod("waits", cpu=3)
    waiting["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    found = explained([b.node("n1"), waiting, b.pod("p", cpu=2)], "p")
    assert details(found) == {
        "n1": "needs 2000m cpu, 1000m free of 4000m (with the pods nominated to it: default/waits)"
    }
    assert rejection(found, "n1").detail.numbers["nominated"] == ["default/waits"]


def test_a_nominated_pod_in_the_way_of_a_node_that_would_not_do_anyway() -> None:
    """The reason is what the filters saw with the nominated pod; the other one is not hidden."""
    waiting = b.pod("waits", cpu=3)
    waiting["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    there = on(b.pod("w1", labels={"app": "web"}), "n1")
    found = explained(
        [b.node("n1"), waiting, there, b.pod("p", cpu=2, affinity=anti("web"))], "p", closely=("n1",)
    )
    assert details(found) == {"n1": "needs 2000m cpu, 1000m free of 4000m"}
    assert [other.plugin for other in rejection(found, "n1").others] == ["InterPodAffinity"]


# Taints, cordons, labels


def test_taints_are_told_as_kubectl_writes_them() -> None:
    trees = [
        b.node("n1", taints=[SPOT]),
        b.node("n2", taints=[SPOT, DEDICATED]),
        b.node("n3", taints=[SPOT]),
        b.pod("p"),
    ]
    found = explained(trees, "p")
    assert details(found)["n1"] == "taint spot=a:NoSchedule"
    assert details(found)["n2"] == "taints spot=a:NoSchedule, dedicated:NoExecute"
    assert changes(found) == {
        ("but for taint spot=a:NoSchedule",): ("n1", "n3"),
        ("but for taints spot=a:NoSchedule, dedicated:NoExecute",): ("n1", "n2", "n3"),
    }


def test_a_cordoned_node() -> None:
    found = explained([b.node("n1", unschedulable=True), b.pod("p")], "p")
    assert details(found) == {"n1": "cordoned: spec.unschedulable is true"}
    assert changes(found) == {("but for the cordon",): ("n1",)}


def test_labels_of_the_selector() -> None:
    trees = [
        b.node("n1", labels={"disk": "hdd", "gpu": "yes"}),
        b.node("n2", labels={"disk": "ssd"}),
        b.pod("p", node_selector={"disk": "ssd", "gpu": "yes"}),
    ]
    found = explained(trees, "p")
    assert details(found) == {
        "n1": "nodeSelector disk=ssd: the node has disk=hdd",
        "n2": "nodeSelector gpu=yes: the node has no label gpu",
    }
    assert changes(found) == {
        ("but for nodeSelector disk=ssd",): ("n1",),
        ("but for nodeSelector gpu=yes",): ("n2",),
        ("but for the nodeSelector",): ("n1", "n2"),
    }


def test_required_affinity_and_its_expressions() -> None:
    wanted = zonal([{"key": ZONE, "operator": "In", "values": ["a"]}, {"key": "gpu", "operator": "Exists"}])
    trees = [b.node("n1", zone="b", labels={"gpu": "1"}), b.node("n2"), b.pod("p", affinity=wanted)]
    found = explained(trees, "p")
    assert details(found)["n1"] == f"required affinity ({ZONE}=a, gpu): the node has {ZONE}=b"
    assert changes(found) == {
        (f"but for required affinity {ZONE} In [a]",): ("n1",),
        ("but for the required node affinity",): ("n1", "n2"),
    }


def test_a_pinned_pod_says_that_the_other_nodes_were_not_looked_at() -> None:
    """E14: a DaemonSet's pod whose node is full."""
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    pinned = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [field]}]
            }
        }
    }
    trees = [b.node(n, pods=1) for n in ("n1", "n2", "n3")]
    trees += [on(b.pod(f"filler-{n}"), n) for n in ("n1", "n2", "n3")]
    found = explained([*trees, b.pod("daemon", affinity=pinned)], "daemon")
    assert details(found)["n1"] == "1 pod on it, 1 allowed"
    assert rejection(found, "n2").plugin == "NodeAffinity"
    assert not rejection(found, "n2").may_preempt
    assert details(found)["n2"] == "required affinity (metadata.name=n1): the node is n2"
    assert ("with room for one more pod (allocatable pods)",) in changes(found)


def test_features_that_the_node_does_not_declare() -> None:
    pod = b.pod("p", hostNetwork=True, hostUsers=False)
    found = explained([b.node("n1"), pod], "p")
    assert details(found) == {"n1": "does not declare UserNamespacesHostNetworkSupport"}


# NodePorts


def test_host_ports() -> None:
    def serving(name: str) -> dict[str, Any]:
        pod = b.pod(name)
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        return pod

    found = explained([b.node("n1"), on(serving("a"), "n1"), serving("p")], "p")
    assert details(found) == {"n1": "host port 8080/TCP is taken by default/a"}
    assert rejection(found, "n1").detail.group == "host port 8080/TCP is taken"
    assert changes(found) == {("but for host port 8080/TCP",): ("n1",)}


def test_host_ports_and_less_cpu_and_a_taint_together() -> None:
    """Changes add up, in whatever order they are found."""
    pod = b.pod("p", cpu=4, hostNetwork=True)
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 53, "protocol": "UDP"}]
    other = on({**pod, "metadata": {"name": "a", "namespace": "default"}, "spec": dict(pod["spec"])}, "n1")
    other["spec"]["containers"] = [{**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}]
    [(three, nodes)] = changes(explained([b.node("n1", taints=[SPOT]), other, pod], "p")).items()
    assert nodes == ("n1",)
    assert sorted(three) == [
        "but for host port 53/UDP",
        "but for taint spot=a:NoSchedule",
        "with 1000m less cpu (3000m instead of 4000m)",
    ]


# PodTopologySpread


def web(name: str, **spec: Any) -> dict[str, Any]:
    return b.pod(name, labels={"app": "web"}, **spec)


def test_skew_with_its_counts() -> None:
    trees = [b.node("n1", zone="a"), b.node("n2", zone="b", unschedulable=True), b.node("n3")]
    trees += [on(web("w1"), "n1"), on(web("w2"), "n1")]
    found = explained([*trees, web("p", topologySpreadConstraints=[spread(ZONE)])], "p")
    assert details(found)["n1"] == (
        f"{ZONE}=a: 2 matching + this pod - 0 in the emptiest domain = skew 3, maxSkew 1 (2 domains; app=web)"
    )
    numbers = rejection(found, "n1").detail.numbers
    assert (numbers["skew"], numbers["maxSkew"], numbers["minimum"], numbers["domains"]) == (3, 1, 0, 2)
    assert details(found)["n3"] == f"no label {ZONE}"
    assert changes(found) == {
        (f"with maxSkew 3 instead of 1 over {ZONE}",): ("n1",),
        (f"without the spread constraint over {ZONE}",): ("n1", "n3"),
        ("but for the cordon",): ("n2",),
    }


def test_too_few_domains() -> None:
    constraint = spread(ZONE, minDomains=3)
    trees = [b.node("n1", zone="a"), b.node("n2", zone="b"), on(web("w1"), "n1"), on(web("w2"), "n2")]
    found = explained([*trees, web("p", topologySpreadConstraints=[constraint])], "p")
    assert "2 domains of the 3 it wants" in details(found)["n1"]
    assert " - 0 in the emptiest domain" in details(found)["n1"]


# InterPodAffinity


def test_own_anti_affinity_names_the_pod() -> None:
    trees = [b.node("n1"), on(web("w1"), "n1"), b.pod("p", affinity=anti("web"))]
    found = explained(trees, "p")
    assert details(found) == {"n1": f"anti-affinity against app=web per {HOST}: default/w1"}
    assert rejection(found, "n1").detail.numbers["pod"] == "default/w1"
    assert changes(found) == {(f"without anti-affinity against app=web per {HOST}",): ("n1",)}


def test_anti_affinity_in_a_domain_names_the_node_and_counts() -> None:
    nodes = [b.node(name, zone="a") for name in ("n1", "n2")]
    trees = [*nodes, on(web("w1"), "n2"), on(web("w2"), "n2"), b.pod("p", affinity=anti("web", ZONE))]
    found = explained(trees, "p")
    assert details(found)["n1"] == (
        f"anti-affinity against app=web per {ZONE}: default/w1 on n2, in {ZONE}=a and 1 more"
    )


def test_anti_affinity_of_pods_that_are_there() -> None:
    trees = [b.node("n1"), on(b.pod("db", affinity=anti("web")), "n1"), web("p")]
    found = explained(trees, "p")
    assert details(found) == {"n1": f"anti-affinity of other pods against app=web per {HOST}: default/db"}


def test_affinity_to_nobody() -> None:
    trees = [b.node("n1", zone="a"), b.pod("p", affinity=near("cache", ZONE))]
    found = explained(trees, "p")
    assert details(found) == {
        "n1": f"affinity to app=cache per {ZONE}: no pod matches it in {ZONE}=a",
    }
    assert not rejection(found, "n1").may_preempt
    assert changes(found) == {(f"without affinity to app=cache per {ZONE}",): ("n1",)}


def test_all_required_affinity_at_once() -> None:
    affinity = near("cache")
    affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(
        near("db")["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    )
    found = explained([b.node("n1"), b.pod("p", affinity=affinity)], "p")
    assert "no pod matches it and all other required terms in" in details(found)["n1"]
    assert changes(found) == {("without its required pod affinity",): ("n1",)}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"namespaces": ["a", "b"]}, "app=web in namespace a, b per"),
        ({"namespaceSelector": {}}, "app=web in all namespaces per"),
        ({"namespaceSelector": {"matchLabels": {"t": "x"}}}, "app=web in namespaces with t=x per"),
    ],
)
def test_namespaces_of_a_term(more: dict[str, Any], text: str) -> None:
    affinity = near("web")
    affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0].update(more)
    found = explained([b.node("n1"), b.pod("p", affinity=affinity)], "p")
    assert text in details(found)["n1"]
