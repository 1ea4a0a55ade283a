"""Filters of the simple plugins through whole decisions: codes, exact texts, field cases."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.framework.settings import PluginRef
from pilotage.framework.status import Code
from pilotage.plugins import DEFAULT_MULTIPOINT
from statekit import cluster, decide_with, feasible, node, pod, profile

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def names(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": list(values)}


def test_cordoned_nodes_take_only_pods_that_tolerate_it() -> None:
    state = cluster(node("n1", unschedulable=True))
    decision = decide_with(state, pod("p"))
    assert decision.message == "0/1 nodes are available: 1 node(s) were unschedulable."
    assert decision.failures is not None
    assert decision.failures.code(0) is Code.UNRESOLVABLE
    tolerant = pod("t", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert decide_with(state, tolerant).node == "n1"


def test_untolerated_taints_reject() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    state = cluster(node("n1", taints=[taint]))
    decision = decide_with(state, pod("p"))
    assert decision.message == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    assert decision.unschedulable_plugins == {"TaintToleration"}
    assert decide_with(state, pod("t", tolerations=[{"key": "k", "value": "v"}])).node == "n1"
    soft = cluster(node("n1", taints=[{**taint, "effect": "PreferNoSchedule"}]))
    assert decide_with(soft, pod("p")).node == "n1"


def test_a_pod_that_names_its_node_fits_nowhere_else() -> None:
    state = cluster(node("n1"), node("n2"))
    info = pod("p")
    named = info.bound_to("n2")
    assert decide_with(state, named).node == "n2"
    missing = decide_with(state, info.bound_to("n9"))
    text = "0/2 nodes are available: 2 node(s) didn't match the requested node name."
    assert missing.message == text


def test_the_first_failing_plugin_gives_the_reason() -> None:
    state = cluster(
        node("n1", {"pods": 0}, unschedulable=True),
        node("n2", {"pods": 0, "cpu": 1}),
        node("n3", {"cpu": "100m", "pods": 9}),
    )
    decision = decide_with(state, pod("p", {"cpu": "500m"}))
    assert decision.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) were unschedulable."
    )
    assert decision.unschedulable_plugins == {"NodeUnschedulable", "NodeResourcesFit"}


def test_counts_are_sorted_as_text() -> None:
    small = [node(f"s{i}", {"cpu": "100m", "pods": 9}) for i in range(10)]
    cordoned = [node(f"c{i}", unschedulable=True) for i in range(2)]
    decision = decide_with(cluster(*small, *cordoned), pod("p", {"cpu": 1}))
    expected = "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable."
    assert decision.message == expected


# NodeAffinity


def test_e7_terms_are_alternatives() -> None:
    state = cluster(node("n1", labels={}), node("n2", labels={"foo": "bar"}))
    contradiction = {"matchFields": [names("n1"), names("n2")]}
    matching = {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}
    assert decide_with(state, pod("p", affinity=affinity(contradiction, matching))).node == "n2"


def test_e7_contradicting_terms_alone_conflict() -> None:
    state = cluster(node("n1"), node("n2"))
    decision = decide_with(state, pod("p", affinity=affinity({"matchFields": [names("n1"), names("n2")]})))
    assert decision.message == "0/2 nodes are available: pod affinity terms conflict."
    assert decision.status.code is Code.UNRESOLVABLE
    assert decision.unschedulable_plugins == {"NodeAffinity"}


def test_e7_an_empty_term_matches_nothing_and_the_selector_is_anded() -> None:
    state = cluster(node("n1", labels={"a": "1"}), node("n2", labels={"a": "1", "b": "1"}))
    decision = decide_with(state, pod("p", affinity=affinity({})))
    text = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    assert decision.message == text
    has_a = affinity({"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    assert decide_with(state, pod("p", affinity=has_a, nodeSelector={"b": "1"})).node == "n2"


def test_a_term_that_makes_no_sense_matches_nothing() -> None:
    state = cluster(node("n1"), node("n2", labels={"a": "1"}))
    nonsense = {"matchExpressions": [{"key": "a", "operator": "Sounds", "values": ["like"]}]}
    sensible = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    assert decide_with(state, pod("p", affinity=affinity(nonsense, sensible))).node == "n2"
    decision = decide_with(state, pod("p", affinity=affinity(nonsense)))
    text = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    assert decision.message == text


def test_pinned_names_leave_the_others_absent() -> None:
    state = cluster(node("n1", {"cpu": "100m", "pods": 5}), node("n2"), node("n3"))
    decision = decide_with(state, pod("p", {"cpu": 1}, affinity=affinity({"matchFields": [names("n1")]})))
    assert decision.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert decision.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}
    assert decision.evaluated == 1


def test_not_in_does_not_pin() -> None:
    state = cluster(node("n1"), node("n2"))
    excluded = affinity({"matchFields": [names("n1", operator="NotIn")]})
    assert decide_with(state, pod("p", affinity=excluded)).node == "n2"


def test_added_affinity_is_enforced_with_its_own_text() -> None:
    state = cluster(node("n1"), node("n2", labels={"pool": "batch"}))
    pool = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}
    args = {"NodeAffinity": {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [pool]}}}}
    assert decide_with(state, pod("p"), args=args).node == "n2"
    state.delete_node("n2")
    decision = decide_with(state, pod("p"), args=args)
    text = "0/1 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity."
    assert decision.message == text


# NodePorts


def sidecar(port: int) -> dict[str, Any]:
    ports = [{"containerPort": port, "hostPort": port}]
    return {"name": "s", "restartPolicy": "Always", "ports": ports}


def test_e2_sidecar_ports_count_and_init_ports_do_not() -> None:
    p1 = pod("p1", on="n1", hostNetwork=True, initContainers=[sidecar(8081)])
    state = cluster(node("n1"), p1)
    p2 = pod("p2", hostNetwork=True, initContainers=[sidecar(8081)])
    decision = decide_with(state, p2)
    assert decision.message == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert decision.failures is not None
    assert decision.failures.code(0) is Code.UNSCHEDULABLE
    ordinary = {key: value for key, value in sidecar(8081).items() if key != "restartPolicy"}
    assert decide_with(state, pod("p3", initContainers=[ordinary])).node == "n1"
    state.delete_pod(p1.uid)
    assert decide_with(state, p2).node == "n1"


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        (("0.0.0.0", "TCP"), ("10.0.0.1", "TCP"), False),
        (("10.0.0.1", "TCP"), ("", "TCP"), False),
        (("10.0.0.1", "TCP"), ("10.0.0.2", "TCP"), True),
        (("10.0.0.1", "TCP"), ("10.0.0.1", "TCP"), False),
        (("", "TCP"), ("", "UDP"), True),
    ],
)
def test_e2_addresses_and_protocols(held: tuple[str, str], wanted: tuple[str, str], fits: bool) -> None:
    def holder(name: str, of: tuple[str, str], on: str = "") -> Any:
        port = {"containerPort": 80, "hostPort": 80, "hostIP": of[0], "protocol": of[1]}
        return pod(name, on=on, containers=[{"name": "c", "ports": [port]}])

    state = cluster(node("n1"), holder("a", held, "n1"))
    assert decide_with(state, holder("b", wanted)).is_scheduled == fits


# Through PodTopologySpread as well


def spread(**extra: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "x"}}
    base = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return [{**base, **extra}]


def test_e5_default_taints_policy_counts_tainted_nodes() -> None:
    def labels(name: str) -> dict[str, str]:
        return {"kubernetes.io/hostname": name}

    taint = [{"key": "control-plane", "effect": "NoSchedule"}]
    masters = [node(f"m{i}", labels=labels(f"m{i}"), taints=taint) for i in range(3)]
    workers = [node(f"w{i}", labels=labels(f"w{i}")) for i in range(3)]
    there = [pod(f"p{i}", on=f"w{i}", labels={"app": "x"}) for i in range(3)]
    state = cluster(*masters, *workers, *there)
    key = "kubernetes.io/hostname"
    new = pod("new", labels={"app": "x"}, topologySpreadConstraints=spread(topologyKey=key))
    assert not decide_with(state, new).is_scheduled
    honoring = spread(topologyKey=key, nodeTaintsPolicy="Honor")
    new = pod("new", labels={"app": "x"}, topologySpreadConstraints=honoring)
    assert feasible(state, decide_with(state, new)) == {"w0", "w1", "w2"}


@pytest.mark.parametrize(("min_domains", "fits"), [(3, False), (2, True)])
def test_e5_min_domains_with_a_tainted_zone(min_domains: int, fits: bool) -> None:
    taint = [{"key": "broken", "effect": "NoSchedule"}]
    zones = [
        node("a", labels={"zone": "a"}),
        node("b", labels={"zone": "b"}),
        node("c", labels={"zone": "c"}, taints=taint),
    ]
    there = [pod(f"p-{z}", on=z, labels={"app": "x"}) for z in "ab"]
    constraint = spread(topologyKey="zone", minDomains=min_domains, nodeTaintsPolicy="Honor")
    new = pod("new", labels={"app": "x"}, topologySpreadConstraints=constraint)
    assert decide_with(cluster(*zones, *there), new).is_scheduled == fits


# What is not built yet


@pytest.mark.parametrize(
    ("spec", "need"),
    [
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}, 'uses resourceClaim "gpu"'),
        ({"schedulingGroup": {"podGroupName": "gang"}}, 'belongs to pod group "gang"'),
        ({"workloadRef": {"name": "train"}}, 'belongs to workload "train"'),
    ],
)
def test_needs_that_are_not_supported_are_named(spec: dict[str, Any], need: str) -> None:
    decision = decide_with(cluster(node("n1")), pod("p", **spec))
    assert decision.message == f"0/1 nodes are available: pod {need}, which is not supported yet."
    assert decision.unschedulable_plugins == {"NotBuiltYet"}


def test_config_map_volumes_need_nothing() -> None:
    info = pod("p", volumes=[{"name": "c", "configMap": {"name": "c"}}])
    assert decide_with(cluster(node("n1")), info).node == "n1"


def test_gates_are_named() -> None:
    state = cluster()
    gated = pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}])
    status = profile(state).run_pre_enqueue(gated)
    assert (status.code, status.reasons, status.plugin) == (
        Code.UNRESOLVABLE,
        ("waiting for scheduling gates: [a b]",),
        "SchedulingGates",
    )
    assert profile(state).run_pre_enqueue(pod("q")).is_success


def test_the_default_profile_runs_in_kube_schedulers_order() -> None:
    filters = [bound.name for bound in profile(cluster()).at("filter")]
    assert filters == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeDeclaredFeatures",
        "DeferredPodScheduling",
    ]
    weights = {bound.name: bound.weight for bound in profile(cluster()).at("score")}
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,  # scores only with the gate StorageCapacityScoring
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert PluginRef("DefaultBinder") in DEFAULT_MULTIPOINT
