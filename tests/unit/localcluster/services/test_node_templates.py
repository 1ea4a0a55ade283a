"""Nodes from templates and pools, and what is wrong with a template."""

from __future__ import annotations

import pytest

from pilotage.localcluster.nodes import NodeTemplateError, from_pools, generate

POOLS = {
    "zones": ["a", "b"],
    "pools": [
        {"name": "big", "count": 3, "resources": {"cpu": 16, "memory": "64Gi"}, "labels": {"disk": "ssd"}},
        {"name": "spot", "count": 1, "taints": [{"key": "spot", "effect": "NoSchedule"}]},
    ],
}


def test_without_a_template_equal_nodes_in_three_zones() -> None:
    nodes = generate(4)
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1", "node-2", "node-3"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert nodes[0]["status"]["allocatable"]["cpu"] == "4"
    assert generate(0) == []


def test_pools_deal_their_zones_and_keep_their_shapes() -> None:
    nodes = from_pools(POOLS)
    assert [node["metadata"]["name"] for node in nodes] == ["big-0", "big-1", "big-2", "spot-0"]
    labels = nodes[1]["metadata"]["labels"]
    assert (labels["topology.kubernetes.io/zone"], labels["pool"], labels["disk"]) == ("b", "big", "ssd")
    assert nodes[0]["status"]["capacity"] == {"cpu": "16", "memory": "64Gi", "pods": "110"}
    assert nodes[3]["spec"]["taints"] == [{"key": "spot", "effect": "NoSchedule"}]


def test_more_nodes_than_the_pools_hold() -> None:
    names = [node["metadata"]["name"] for node in generate(6, POOLS)]
    assert names == ["big-0", "big-1", "big-2", "spot-0", "big-0-1", "big-1-1"]
    assert len(set(names)) == 6


def test_a_node_as_template() -> None:
    template = {
        "kind": "Node",
        "metadata": {"name": "gpu", "uid": "old", "labels": {"kubernetes.io/hostname": "old", "x": "y"}},
        "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": 4}},
    }
    first, second = generate(2, template)
    assert second["metadata"]["name"] == "gpu-1"
    assert second["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu-1"
    assert "uid" not in first["metadata"]
    assert first["status"]["allocatable"] == {"cpu": "8", "nvidia.com/gpu": "4"}
    assert first["status"]["allocatable"] is not second["status"]["allocatable"]


def test_a_template_says_the_architecture() -> None:
    labels = {"kubernetes.io/arch": "arm64"}
    assert (
        generate(1, {"metadata": {"labels": labels}})[0]["metadata"]["labels"]["kubernetes.io/arch"]
        == "arm64"
    )
    pools = generate(2, {"pools": [{"name": "a", "labels": labels}]})
    assert [node["metadata"]["labels"]["kubernetes.io/arch"] for node in pools] == ["arm64", "arm64"]
    assert [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in pools] == ["a-0", "a-0-1"]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ({"kind": "Pod"}, "kind: expected Node"),
        ({"pools": "many"}, "pools: expected a list"),
        ({"pools": [{"count": 1}]}, r"pools\[0\].name: required"),
        ({"pools": [{"name": "a", "cuont": 1}]}, r"pools\[0\].cuont: unknown field"),
        ({"pools": [{"name": "a", "count": -1}]}, r"pools\[0\].count: expected"),
        ({"pools": [{"name": "a", "resources": {"cpu": "four"}}]}, r"pools\[0\].resources.cpu: .*four"),
        ({"pools": []}, "no node at all"),
        ({"pools": [{"name": "a", "labels": 3}]}, r"pools\[0\].labels: expected a mapping, got 3"),
        ({"pools": [{"name": "a", "resources": 3}]}, r"pools\[0\].resources: expected a mapping"),
        ({"pools": [3]}, r"pools\[0\].name: required"),
        ({"pools": [{"name": "a"}], "zones": 5}, "zones: expected a list of names"),
        ({"pools": [{"name": "a"}], "zone": ["a"]}, "zone: unknown field"),
        ({"nodes": 3}, "nodes: unknown field"),
        ({"metadata": 5}, "metadata: expected a mapping"),
        ({"metadata": {"labels": 5}}, "metadata.labels: expected a mapping"),
        ({"status": {"allocatable": 5}}, "status.allocatable: expected a mapping"),
        ({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}, r"status.allocatable.cpu: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(template: dict[str, object], text: str) -> None:
    with pytest.raises(NodeTemplateError, match=text):
        generate(1, template)
