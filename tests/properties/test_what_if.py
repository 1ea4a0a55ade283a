"""What-if: taking a pod away or adding it changes the answer as if the cluster had changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.framework.cycle import CycleState
from pilotage.frontends.replay.world import ReplayHandle
from pilotage.plugins.inter_pod_affinity import InterPodAffinity
from pilotage.plugins.pod_topology_spread import PodTopologySpread
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from reference.plain_spread_affinity import PlainCluster
from reference.random_clusters import Source

Plugin = InterPodAffinity | PodTopologySpread


def view(resource: str, tree: dict[str, Any]) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, copy.deepcopy(tree))


def build(plain: PlainCluster) -> ClusterState:
    cluster = ClusterState()
    for name, labels in plain.namespaces.items():
        tree = {"metadata": {"name": name, "labels": labels}}
        cluster.upsert_object("namespaces", view("namespaces", tree))
    for node in plain.nodes:
        cluster.upsert_node(view("nodes", node))
    for pod in plain.pods:
        cluster.upsert_pod(PodInfo(view("pods", pod)))
    return cluster


def answer(plugin: Plugin, cycle: CycleState, cluster: ClusterState, pod: PodInfo) -> list[tuple[int, int]]:
    found = plugin.filter_nodes(cycle, pod, cluster.nodes, cluster.nodes.live_rows)
    return list(zip(found.codes.tolist(), found.reasons.tolist(), strict=True))


def fresh(plugin: Plugin, cluster: ClusterState, pod: PodInfo) -> list[tuple[int, int]]:
    """The answer from PreFilter on, Skip counted as everything passes."""
    cycle = CycleState()
    if plugin.pre_filter(cycle, pod, cluster.nodes).is_skip:
        return [(0, 0)] * cluster.nodes.n_nodes
    return answer(plugin, cycle, cluster, pod)


def hard_pod(source: Source) -> PodInfo:
    """A pod that is hard to please, of a namespace and labels that others share."""
    tree = source.pod(richness=0.9)
    tree["metadata"]["labels"]["app"] = "x"
    tree["spec"]["topologySpreadConstraints"] = [
        {**source.constraint(), "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        for selector in ({"matchLabels": {"app": "x"}}, source.selector())
    ]
    return PodInfo(view("pods", tree))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [InterPodAffinity, PodTopologySpread])
def test_removing_and_adding_a_pod_equals_a_changed_cluster(kind: type[Plugin]) -> None:
    n_changed = 0
    for seed in range(250):
        source = Source(seed)
        plain = source.cluster()
        cluster = build(plain)
        plugin = kind(None, ReplayHandle(cluster))
        pod = hard_pod(source)
        cycle = CycleState()
        if plugin.pre_filter(cycle, pod, cluster.nodes).is_skip or not plain.pods:
            continue
        before = answer(plugin, cycle, cluster, pod)
        changed = cycle.clone()
        leaving = source.random.sample(plain.pods, (len(plain.pods) + 1) // 2)
        gone = [PodInfo(view("pods", tree)) for tree in leaving]
        rows = [cluster.nodes.row(info.node_name) for info in gone]
        for info, row in zip(gone, rows, strict=True):
            assert row is not None
            assert plugin.remove_pod(changed, pod, info, row, cluster.nodes).is_success
            cluster.delete_pod(info.uid)
        after = answer(plugin, changed, cluster, pod)
        assert after == fresh(plugin, cluster, pod), seed
        n_changed += after != before
        assert answer(plugin, cycle, cluster, pod) == before, "the original cycle was touched"
        for info, row in zip(gone, rows, strict=True):
            assert row is not None
            assert plugin.add_pod(changed, pod, info, row, cluster.nodes).is_success
            cluster.upsert_pod(info)
        assert answer(plugin, changed, cluster, pod) == before == fresh(plugin, cluster, pod), seed
    assert n_changed > 5


def test_nominated_pods_bring_their_anti_affinity() -> None:
    """While pods are nominated nothing is skipped, else a lower pod would slip in beside them."""
    cluster = ClusterState()
    cluster.upsert_node(view("nodes", {"metadata": {"name": "n", "labels": {"zone": "z"}}}))
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    high = PodInfo(view("pods", {"metadata": {"name": "h", "uid": "h"}, "spec": {"affinity": anti}}))
    pod = PodInfo(view("pods", {"metadata": {"name": "p", "uid": "p", "labels": {"app": "x"}}}))
    plugin = InterPodAffinity(None, ReplayHandle(cluster))
    assert plugin.pre_filter(CycleState(), pod, cluster.nodes).is_skip
    cluster.nominations.add(high, "n")
    cycle = CycleState()
    assert plugin.pre_filter(cycle, pod, cluster.nodes).is_success
    assert answer(plugin, cycle, cluster, pod) == [(0, 0)]
    plugin.add_pod(cycle, pod, high, 0, cluster.nodes)
    assert answer(plugin, cycle, cluster, pod) == [(2, 4)]
