"""Which cluster events an object's change means, and their labels (spec/queue.md, section 6)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.events import Resource
from pilotage.scheduling import cluster_events
from pilotage.state.podinfo import PodInfo


def node(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> Node:
    tree = {"metadata": {"name": "n1"} | metadata, "spec": spec or {}, "status": status or {}}
    return msgspec.convert(tree, Node)


def pod(spec: dict[str, Any] | None = None, cpu: str = "1", **metadata: Any) -> PodInfo:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    tree = {
        "metadata": {"name": "p", "uid": "u"} | metadata,
        "spec": {"containers": [container]} | (spec or {}),
    }
    return PodInfo(msgspec.convert(tree, Pod))


TAINT = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
READY = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}]}
LATER = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2", "reason": "x"}]}
NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (node(), node(TAINT), ["NodeUpdateNodeTaint"]),
        (node({"unschedulable": True}), node(), ["NodeUpdateNodeTaint"]),
        (node(), node({"unschedulable": True}), []),
        (
            node(status={"allocatable": {"cpu": "1"}}),
            node(status={"allocatable": {"cpu": "2"}}),
            ["NodeUpdateNodeAllocatable"],
        ),
        (node(), node(labels={"a": "b"}), ["NodeUpdateNodeLabel"]),
        (node(), node(annotations={"a": "b"}), ["NodeUpdateNodeAnnotation"]),
        (node(status=READY), node(status=LATER), []),
        (node(status=READY), node(status=NOT_READY), ["NodeUpdateNodeCondition"]),
        (node(), node(status={"declaredFeatures": ["f"]}), ["NodeUpdateNodeDeclaredFeature"]),
        (
            node(),
            node({"podPreemptionPolicy": {"disableResizePreemption": ["me"]}}),
            ["NodeUpdateNodePreemptionPolicy"],
        ),
        (node(), node(TAINT, labels={"a": "b"}), ["NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]),
    ],
)
def test_node_updates(old: Node, new: Node, labels: list[str]) -> None:
    assert [str(event) for event in cluster_events.node_updated(old, new)] == labels


BOUND = {"nodeName": "n1"}


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (pod(BOUND), pod(BOUND, labels={"a": "b"}), ["AssignedPodUpdatePodLabel"]),
        (pod(BOUND, cpu="2"), pod(BOUND, cpu="1500m"), ["AssignedPodUpdatePodScaleDown"]),
        (pod(BOUND, cpu="1"), pod(BOUND, cpu="2"), ["AssignedPodUpdate"]),
        (pod(), pod(annotations={"a": "b"}), ["UnschedulablePodUpdate"]),
        (
            pod({"tolerations": []}),
            pod({"tolerations": [{"key": "k"}]}),
            ["UnschedulablePodUpdatePodToleration"],
        ),
        (
            pod({"schedulingGates": [{"name": "g"}]}),
            pod(),
            ["UnschedulablePodUpdatePodSchedulingGatesEliminated"],
        ),
        (
            pod({"schedulingGates": [{"name": "g"}, {"name": "h"}]}),
            pod({"schedulingGates": [{"name": "g"}]}),
            ["UnschedulablePodUpdate"],
        ),
        (
            pod(cpu="2"),
            pod(cpu="1", labels={"a": "b"}),
            ["UnschedulablePodUpdatePodLabel", "UnschedulablePodUpdatePodScaleDown"],
        ),
    ],
)
def test_pod_updates(old: PodInfo, new: PodInfo, labels: list[str]) -> None:
    assert [str(event) for event in cluster_events.pod_updated(old, new)] == labels


def test_scale_down_of_a_bound_pod_follows_the_largest_of_spec_allocated_and_actual() -> None:
    def resized(actual: str) -> PodInfo:
        status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": actual}}}]}
        tree = msgspec.to_builtins(pod(BOUND).pod) | {"status": status}
        return PodInfo(msgspec.convert(tree, Pod))

    assert str(cluster_events.pod_updated(resized("3"), resized("1"))[0]) == "AssignedPodUpdatePodScaleDown"


def test_other_kinds_and_adds() -> None:
    thing = KubeObject()
    assert (
        str(cluster_events.object_event("persistentvolumeclaims", None, thing)) == "PersistentVolumeClaimAdd"
    )
    assert str(cluster_events.object_event("csinodes.storage.k8s.io", thing, thing)) == "CSINodeUpdate"
    assert str(cluster_events.object_event("services", thing, None)) == "ServiceDelete"
    assert cluster_events.object_event("configmaps", None, thing) is None
    assert str(cluster_events.pod_added(Resource.UNSCHEDULABLE_POD)) == "UnschedulablePodAdd"
    assert str(cluster_events.pod_deleted()) == "AssignedPodDelete"
    assert str(cluster_events.node_added()) == "NodeAdd"
    assert str(cluster_events.node_deleted()) == "NodeDelete"
