"""PodTopologySpread and InterPodAffinity on small clusters whose answer a reader can check by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from pilotage.api.nodes import Node
from pilotage.api.others import Namespace, ReplicaSet, Service
from pilotage.api.pods import Pod
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Hint
from pilotage.framework.status import Code
from pilotage.frontends.replay.world import ReplayHandle
from pilotage.plugins.inter_pod_affinity import InterPodAffinity
from pilotage.plugins.pod_topology_spread import PodTopologySpread
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo

Tree = dict[str, Any]
Plugin = PodTopologySpread | InterPodAffinity
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(name: str, zone: str | None = None, **spec: Any) -> Node:
    labels = {HOST: name, **({ZONE: zone} if zone is not None else {})}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec}, Node)


def pod(
    name: str,
    labels: Tree | None = None,
    node: str = "",
    namespace: str = "ns",
    meta: Tree | None = None,
    **spec: Any,
) -> PodInfo:
    metadata = {"name": name, "uid": name, "namespace": namespace, "labels": labels or {}, **(meta or {})}
    return PodInfo(msgspec.convert({"metadata": metadata, "spec": {"nodeName": node, **spec}}, Pod))


def cluster_of(*objects: Node | PodInfo | Namespace) -> ClusterState:
    cluster = ClusterState()
    for one in objects:
        if isinstance(one, PodInfo):
            cluster.upsert_pod(one)
        elif isinstance(one, Node):
            cluster.upsert_node(one)
        else:
            cluster.upsert_object("namespaces", one)
    return cluster


def namespace(name: str, **labels: str) -> Namespace:
    full = {"kubernetes.io/metadata.name": name, **labels}
    return msgspec.convert({"metadata": {"name": name, "labels": full}}, Namespace)


def verdicts(plugin: Plugin, cluster: ClusterState, info: PodInfo) -> dict[str, str]:
    """Node -> reason, empty for a pass."""
    view, cycle = cluster.nodes, CycleState()
    if plugin.pre_filter(cycle, info, view).is_skip:
        return {view.name(int(row)): "" for row in view.live_rows}
    found = plugin.filter_nodes(cycle, info, view, view.live_rows)
    texts = {}
    for row, code, bits in zip(view.live_rows, found.codes, found.reasons, strict=True):
        reasons = plugin.reason_texts(cycle, info, view, int(row), int(bits)) if code else ("",)
        texts[view.name(int(row))] = reasons[0]
    return texts


def scores(plugin: Plugin, cluster: ClusterState, info: PodInfo) -> dict[str, int] | None:
    """Node -> normalised score; None when the plugin skips."""
    view, cycle, rows = cluster.nodes, CycleState(), cluster.nodes.live_rows
    if plugin.pre_score(cycle, info, view, rows).is_skip:
        return None
    values = plugin.normalize(cycle, info, plugin.score_nodes(cycle, info, view, rows), rows)
    return {view.name(int(row)): int(value) for row, value in zip(rows, values, strict=True)}


def spread_plugin(cluster: ClusterState, args: Tree | None = None) -> PodTopologySpread:
    return PodTopologySpread(args, ReplayHandle(cluster))


def affinity_plugin(cluster: ClusterState, args: Tree | None = None) -> InterPodAffinity:
    return InterPodAffinity(args, ReplayHandle(cluster))


def constraint(key: str = ZONE, when: str = "DoNotSchedule", **fields: Any) -> Tree:
    selector = {"matchLabels": {"app": "a"}}
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": selector, **fields}


def wants(*constraints: Tree, labels: Tree | None = None, **spec: Any) -> PodInfo:
    return pod("p", labels or {"app": "a"}, topologySpreadConstraints=list(constraints), **spec)


def term(key: str = HOST, **fields: Any) -> Tree:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}, **fields}


SKEW = "node(s) didn't match pod topology spread constraints"


class TestSpreadFilter:
    def test_skew_and_missing_key(self) -> None:
        cluster = cluster_of(
            node("n1", "a"),
            node("n2", "b"),
            node("n3"),
            pod("e", {"app": "a"}, "n1", terminationGracePeriodSeconds=0),
        )
        found = verdicts(spread_plugin(cluster), cluster, wants(constraint()))
        assert found == {"n1": SKEW, "n2": "", "n3": f"{SKEW} (missing required label)"}

    def test_the_first_failing_constraint_gives_the_reason(self) -> None:
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), pod("e", {"app": "a"}, "n1"))
        info = wants(constraint(), constraint("rack"))
        assert verdicts(spread_plugin(cluster), cluster, info)["n1"].endswith("(missing required label)")

    def test_an_empty_selector_counts_no_pods_but_the_pod_itself(self) -> None:
        cluster = cluster_of(node("n1", "a"), pod("e", {"app": "a"}, "n1"))
        assert verdicts(spread_plugin(cluster), cluster, wants(constraint(labelSelector={}))) == {"n1": ""}
        info = wants(constraint(labelSelector={}, minDomains=2))
        assert verdicts(spread_plugin(cluster), cluster, info) == {"n1": ""}

    def test_terminating_pods_and_other_namespaces_do_not_count(self) -> None:
        dying = pod("d", {"app": "a"}, "n1", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        stranger = pod("s", {"app": "a"}, "n1", namespace="other")
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), dying, stranger)
        assert verdicts(spread_plugin(cluster), cluster, wants(constraint())) == {"n1": "", "n2": ""}

    def test_tainted_nodes_are_empty_domains_unless_taints_are_honoured(self) -> None:
        """Field case E5 a."""
        taint = {"key": "control-plane", "effect": "NoSchedule"}
        nodes = [node("m1", "a", taints=[taint]), node("w1", "b"), node("w2", "c")]
        cluster = cluster_of(*nodes, pod("e1", {"app": "a"}, "w1"), pod("e2", {"app": "a"}, "w2"))
        plugin = spread_plugin(cluster)
        assert verdicts(plugin, cluster, wants(constraint(HOST)))["w1"] == SKEW
        assert verdicts(plugin, cluster, wants(constraint(HOST, nodeTaintsPolicy="Honor")))["w1"] == ""

    @pytest.mark.parametrize(("min_domains", "reason"), [(2, ""), (3, SKEW)])
    def test_too_few_domains_count_as_an_empty_one(self, min_domains: int, reason: str) -> None:
        """Field case E5 b."""
        taint = {"key": "t", "effect": "NoSchedule"}
        nodes = [node("n1", "a"), node("n2", "b"), node("n3", "c", taints=[taint])]
        cluster = cluster_of(*nodes, pod("e1", {"app": "a"}, "n1"), pod("e2", {"app": "a"}, "n2"))
        info = wants(constraint(nodeTaintsPolicy="Honor", minDomains=min_domains))
        assert verdicts(spread_plugin(cluster), cluster, info)["n1"] == reason

    @pytest.mark.parametrize("is_merged", [False, True])
    def test_old_revisions_do_not_count(self, is_merged: bool) -> None:
        """Field case E4, whether or not the API server has merged the key."""
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), pod("e", {"app": "a", "rev": "1"}, "n1"))
        selector: Tree = {"matchLabels": {"app": "a"}}
        if is_merged:
            selector["matchExpressions"] = [{"key": "rev", "operator": "In", "values": ["2"]}]
        info = wants(
            constraint(labelSelector=selector, matchLabelKeys=["rev", "absent"]),
            labels={"app": "a", "rev": "2"},
        )
        assert verdicts(spread_plugin(cluster), cluster, info) == {"n1": "", "n2": ""}

    def test_a_bad_selector_rejects_the_pod_with_its_place(self) -> None:
        cluster = cluster_of(node("n1", "a"))
        expression = {"key": "a", "operator": "Like", "values": ["b"]}
        info = wants(constraint(labelSelector={"matchExpressions": [expression]}))
        status = spread_plugin(cluster).pre_filter(CycleState(), info, cluster.nodes)
        assert status.code is Code.UNRESOLVABLE
        assert "spec.topologySpreadConstraints[0].labelSelector" in status.message


class TestSpreadScore:
    def test_fewer_matches_score_higher_and_a_missing_key_0(self) -> None:
        cluster = cluster_of(
            node("n1", "a"),
            node("n2", "b"),
            node("n3"),
            *(pod(f"e{i}", {"app": "a"}, "n1") for i in range(2)),
        )
        info = wants(constraint(when="ScheduleAnyway"))
        # n1: 2 x ln(2 + 2) = 2.77 -> 3, n2: 0; 100 x (3 + 0 - s) / 3
        assert scores(spread_plugin(cluster), cluster, info) == {"n1": 0, "n2": 100, "n3": 0}

    def test_without_any_match_every_node_gets_100(self) -> None:
        cluster = cluster_of(node("n1", "a"), node("n2", "b"))
        info = wants(constraint(when="ScheduleAnyway"))
        assert scores(spread_plugin(cluster), cluster, info) == {"n1": 100, "n2": 100}

    def test_system_defaults_need_a_service_or_a_controller(self) -> None:
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), pod("e", {"app": "a"}, "n1"))
        plugin = spread_plugin(cluster)
        info = pod("p", {"app": "a"})
        assert scores(plugin, cluster, info) is None
        service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "a"}}}
        cluster.upsert_object("services", msgspec.convert(service, Service))
        found = scores(plugin, cluster, info)
        assert found is not None
        assert found["n2"] > found["n1"]
        cluster.delete_object("services", msgspec.convert(service, Service))
        assert scores(plugin, cluster, info) is None

    def test_the_controllers_selector_is_used(self) -> None:
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), pod("e", {"tier": "f"}, "n1"))
        selector = {"matchLabels": {"tier": "f"}}
        tree = {"metadata": {"name": "rs", "namespace": "ns"}, "spec": {"selector": selector}}
        cluster.upsert_object("replicasets.apps", msgspec.convert(tree, ReplicaSet))
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1", "controller": True}
        info = pod("p", {"tier": "f"}, meta={"ownerReferences": [owner]})
        found = scores(spread_plugin(cluster), cluster, info)
        assert found is not None
        assert found["n2"] > found["n1"]

    def test_default_constraints_of_the_profile_filter_too(self) -> None:
        args = {
            "defaultingType": "List",
            "defaultConstraints": [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
        }
        cluster = cluster_of(node("n1", "a"), node("n2", "b"), pod("e", {"app": "a"}, "n1"))
        service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "a"}}}
        cluster.upsert_object("services", msgspec.convert(service, Service))
        plugin = spread_plugin(cluster, args)
        assert verdicts(plugin, cluster, pod("p", {"app": "a"})) == {"n1": SKEW, "n2": ""}
        own = wants(constraint(HOST, when="ScheduleAnyway"))
        assert verdicts(plugin, cluster, own) == {"n1": "", "n2": ""}, "own constraints replace the defaults"


AFFINITY = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class TestAffinityFilter:
    def test_reasons_in_their_order(self) -> None:
        keep_away = {
            "podAntiAffinity": {REQUIRED: [{**term(), "labelSelector": {"matchLabels": {"me": "1"}}}]}
        }
        cluster = cluster_of(
            node("n1", "a"),
            node("n2", "a"),
            node("n3", "b"),
            pod("e1", {"app": "a"}, "n1"),
            pod("e2", {}, "n2", affinity=keep_away),
        )
        both = {"podAffinity": {REQUIRED: [term(ZONE)]}, "podAntiAffinity": {REQUIRED: [term(HOST)]}}
        found = verdicts(affinity_plugin(cluster), cluster, pod("p", {"me": "1"}, affinity=both))
        assert found == {"n1": ANTI, "n2": EXISTING, "n3": AFFINITY}

    def test_all_required_terms_must_be_met_by_one_pod(self) -> None:
        cluster = cluster_of(node("n1", "a"), pod("e1", {"app": "a"}, "n1"), pod("e2", {"tier": "f"}, "n1"))
        terms = [term(), {**term(), "labelSelector": {"matchLabels": {"tier": "f"}}}]
        info = pod("p", affinity={"podAffinity": {REQUIRED: terms}})
        assert verdicts(affinity_plugin(cluster), cluster, info) == {"n1": AFFINITY}
        cluster.upsert_pod(pod("e3", {"app": "a", "tier": "f"}, "n1"))
        assert verdicts(affinity_plugin(cluster), cluster, info) == {"n1": ""}

    def test_the_first_pod_of_its_kind_goes_where_the_keys_are(self) -> None:
        cluster = cluster_of(node("n1", "a"), node("n2"))
        affinity = {"podAffinity": {REQUIRED: [term(ZONE)]}}
        plugin = affinity_plugin(cluster)
        assert verdicts(plugin, cluster, pod("p", {"app": "a"}, affinity=affinity)) == {
            "n1": "",
            "n2": AFFINITY,
        }
        assert verdicts(plugin, cluster, pod("q", {"app": "b"}, affinity=affinity))["n1"] == AFFINITY

    @pytest.mark.parametrize("owner", ["incoming", "existing"])
    @pytest.mark.parametrize(
        ("other", "is_rejected"), [("workload-a", False), ("workload-b", True), ("late", True)]
    )
    def test_negative_namespace_selectors(self, owner: str, other: str, is_rejected: bool) -> None:
        """Field case E1, for the pod's own terms and for existing pods' ones."""
        names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["workload-a"]}
        anti = {
            "podAntiAffinity": {
                REQUIRED: [{**term(), "namespaceSelector": {"matchExpressions": [names]}}],
            }
        }
        existing_terms, incoming_terms = (anti, {}) if owner == "existing" else ({}, anti)
        mine, theirs = (other, "workload-a") if owner == "existing" else ("workload-a", other)
        existing = pod("x", {"app": "a"}, "n1", namespace=theirs, affinity=existing_terms)
        cluster = cluster_of(namespace("workload-a"), namespace("workload-b"), node("n1", "a"), existing)
        plugin = affinity_plugin(cluster)
        incoming = pod("p", {"app": "a"}, namespace=mine, affinity=incoming_terms)
        assert bool(verdicts(plugin, cluster, incoming)["n1"]) is is_rejected
        cluster.upsert_object("namespaces", namespace("late"))
        assert bool(verdicts(plugin, cluster, incoming)["n1"]) is is_rejected

    def test_a_node_without_the_key_passes_anti_affinity(self) -> None:
        cluster = cluster_of(node("n1"), pod("e", {"app": "a"}, "n1"))
        info = pod("p", affinity={"podAntiAffinity": {REQUIRED: [term(ZONE)]}})
        assert verdicts(affinity_plugin(cluster), cluster, info) == {"n1": ""}


class TestAffinityScore:
    def test_weights_of_both_sides(self) -> None:
        prefers = {"podAffinity": {PREFERRED: [{"weight": 30, "podAffinityTerm": term()}]}}
        avoids = {"podAntiAffinity": {PREFERRED: [{"weight": 20, "podAffinityTerm": term()}]}}
        needs = {"podAffinity": {REQUIRED: [term()]}}
        cluster = cluster_of(
            *(node(f"n{i}", "z") for i in range(1, 5)),
            pod("e1", {}, "n1", affinity=prefers),
            pod("e2", {}, "n2", affinity=avoids),
            pod("e3", {}, "n3", affinity=needs),
        )
        info = pod("p", {"app": "a"})
        plugin = affinity_plugin(cluster, {"hardPodAffinityWeight": 5})
        # raw 30, -20, 5, 0
        assert scores(plugin, cluster, info) == {"n1": 100, "n2": 0, "n3": 50, "n4": 40}
        no_hard = affinity_plugin(cluster, {"hardPodAffinityWeight": 0})
        assert scores(no_hard, cluster, info) == {"n1": 100, "n2": 0, "n3": 40, "n4": 40}

    def test_ignoring_preferences_of_existing_pods(self) -> None:
        prefers = {"podAffinity": {PREFERRED: [{"weight": 30, "podAffinityTerm": term()}]}}
        cluster = cluster_of(node("n1", "z"), node("n2", "z"), pod("e", {}, "n1", affinity=prefers))
        plugin = affinity_plugin(cluster, {"ignorePreferredTermsOfExistingPods": True})
        assert scores(plugin, cluster, pod("p", {"app": "a"})) is None

    def test_normalised_in_doubles_and_truncated(self) -> None:
        """29 of 100 gives 28: the quotient is taken before the factor."""
        plugin = affinity_plugin(cluster_of())
        raw = np.array([0, 29, 100], np.int64)
        found = plugin.normalize(CycleState(), pod("p"), raw, np.arange(3))
        assert found.tolist() == [0, 28, 100]


class TestHints:
    def test_spread_wakes_for_pods_that_change_a_count(self) -> None:
        plugin = spread_plugin(cluster_of())
        hint, info = plugin._after_pod, wants(constraint())
        match, other = pod("e", {"app": "a"}, "n1"), pod("e", {"app": "b"}, "n1")
        assert hint(info, None, match) is Hint.QUEUE
        assert hint(info, match, None) is Hint.QUEUE
        assert hint(info, match, other) is Hint.QUEUE
        assert hint(info, other, pod("e", {"app": "c"}, "n1")) is Hint.SKIP
        assert hint(info, None, pod("e", {"app": "a"}, "n1", namespace="other")) is Hint.SKIP

    def test_spread_wakes_for_nodes_that_change_a_domain(self) -> None:
        plugin = spread_plugin(cluster_of())
        hint, info = plugin._after_node, wants(constraint())
        assert hint(info, None, node("n", "a")) is Hint.QUEUE
        assert hint(info, node("n", "a"), None) is Hint.QUEUE
        assert hint(info, None, node("n")) is Hint.SKIP
        assert hint(info, node("n", "a"), node("n", "b")) is Hint.QUEUE
        tainted = node("n", "a", taints=[{"key": "t", "effect": "NoSchedule"}])
        assert hint(info, node("n", "a"), tainted) is Hint.SKIP
        assert hint(wants(constraint(nodeTaintsPolicy="Honor")), node("n", "a"), tainted) is Hint.QUEUE

    def test_spread_wakes_for_own_tolerations_where_taints_are_honoured(self) -> None:
        hint = spread_plugin(cluster_of())._after_toleration
        assert hint(wants(constraint()), None, None) is Hint.SKIP
        assert hint(wants(constraint(nodeTaintsPolicy="Honor")), None, None) is Hint.QUEUE

    def test_affinity_wakes_for_matching_pods(self) -> None:
        hint = affinity_plugin(cluster_of())._after_pod
        match, other = pod("e", {"app": "a"}, "n1"), pod("e", {"app": "b"}, "n1")
        near = pod("p", affinity={"podAffinity": {REQUIRED: [term()]}})
        assert hint(near, None, match) is Hint.QUEUE
        assert hint(near, None, other) is Hint.SKIP
        assert hint(near, other, match) is Hint.QUEUE
        assert hint(near, match, None) is Hint.SKIP
        first = pod("p", {"app": "a"}, affinity={"podAffinity": {REQUIRED: [term()]}})
        assert hint(first, match, None) is Hint.QUEUE, "it may be the first of its kind now"
        far = pod("p", affinity={"podAntiAffinity": {REQUIRED: [term()]}})
        assert hint(far, match, None) is Hint.QUEUE
        assert hint(far, match, other) is Hint.QUEUE
        assert hint(far, None, match) is Hint.SKIP

    def test_affinity_wakes_when_a_pod_that_kept_it_away_leaves(self) -> None:
        hint = affinity_plugin(cluster_of())._after_pod
        guard = pod("e", {}, "n1", affinity={"podAntiAffinity": {REQUIRED: [term()]}})
        assert hint(pod("p", {"app": "a"}), guard, None) is Hint.QUEUE
        assert hint(pod("p", {"app": "b"}), guard, None) is Hint.SKIP
        assert hint(pod("p", {"app": "a"}), pod("p", {"app": "a"}), pod("p", {})) is Hint.QUEUE, "own labels"

    def test_affinity_wakes_for_nodes_with_its_keys(self) -> None:
        hint = affinity_plugin(cluster_of())._after_node
        near = pod("p", affinity={"podAffinity": {REQUIRED: [term(ZONE)]}})
        far = pod("p", affinity={"podAntiAffinity": {REQUIRED: [term(ZONE)]}})
        assert hint(near, None, node("n", "a")) is Hint.QUEUE
        assert hint(near, None, node("n")) is Hint.SKIP
        assert hint(near, node("n"), node("n", "a")) is Hint.QUEUE
        assert hint(near, node("n", "a"), node("n")) is Hint.SKIP
        assert hint(far, None, node("n")) is Hint.QUEUE
        assert hint(far, node("n", "a"), node("n")) is Hint.QUEUE
        assert hint(far, node("n", "a"), node("n", "a")) is Hint.SKIP
        assert hint(pod("p"), None, node("n", "a")) is Hint.SKIP
