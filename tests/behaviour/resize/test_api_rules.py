"""What pods/resize and a node's policy refuse, in the API server's words (R10, R15)."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.client.api import ApiError
from pilotage.testing.harness import Harness

Tree = dict[str, Any]


def pod(h: Harness, **more: Any) -> Tree:
    resources = {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}
    resources["limits"] = {"cpu": "2", "example.com/gpu": "1"}
    tree = h.pod("p", **more)
    tree["spec"]["containers"][0]["resources"] = resources
    tree["spec"]["initContainers"] = [
        {"name": "once", "image": "i", "resources": {"requests": {"cpu": "1"}}},
        {"name": "side", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ]
    return dict(tree)


def refusal(h: Harness, spec: Tree) -> str:
    with pytest.raises(ApiError) as caught:
        h.patch("pods", "p", {"spec": spec}, subresource="resize")
    assert caught.value.status == 422
    return caught.value.message


def container(**resources: Any) -> Tree:
    return {"containers": [{"name": "main", "resources": resources}]}


@pytest.fixture
def h() -> Any:
    with Harness(seed=1, scheduler=False, services=None) as harness:
        yield harness


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (container(requests={"memory": None}), "resource requests cannot be removed"),
        (container(limits={"cpu": None}), "resource limits cannot be removed"),
        (
            container(requests={"example.com/gpu": "2"}, limits={"example.com/gpu": "2"}),
            "only cpu and memory resources are mutable",
        ),
        (
            {"initContainers": [{"name": "once", "resources": {"requests": {"cpu": "2"}}}]},
            "resources for non-sidecar init containers are immutable",
        ),
        (container(requests={"cpu": "3"}), "must be less than or equal to cpu limit"),
    ],
)
def test_what_may_not_be_changed(h: Harness, spec: Tree, text: str) -> None:
    h.create(pod(h))
    before = h.get("pods", "p", "default")
    assert text in refusal(h, spec)
    assert h.get("pods", "p", "default") == before, "a refused resize changes nothing"


def test_the_qos_class_stays(h: Harness) -> None:
    tree = h.pod("p", cpu=1)
    tree["spec"]["containers"][0]["resources"] = {
        part: {"cpu": "1", "memory": "1Gi"} for part in ("requests", "limits")
    }
    h.create(tree)
    text = "Pod QOS Class may not change as a result of resizing"
    assert text in refusal(h, container(limits={"cpu": "2"}))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "static pods cannot be resized"),
        ({"os": {"name": "windows"}}, "windows pods cannot be resized"),
    ],
)
def test_pods_that_cannot_be_resized(h: Harness, parts: Tree, text: str) -> None:
    tree = pod(h)
    tree["metadata"] |= {"annotations": parts["annotations"]} if "annotations" in parts else {}
    tree["spec"] |= {"os": parts["os"]} if "os" in parts else {}
    h.create(tree)
    assert text in refusal(h, container(requests={"cpu": "500m"}))


def test_a_resize_moves_the_generation_and_leaves_the_status(h: Harness) -> None:
    h.create(pod(h))
    before = h.get("pods", "p", "default")
    side = {"initContainers": [{"name": "side", "resources": {"requests": {"cpu": "2"}}}]}
    h.patch("pods", "p", {"spec": {**container(requests={"cpu": "1500m"}), **side}}, subresource="resize")
    after = h.get("pods", "p", "default")
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["status"] == before["status"]
    assert after["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    assert after["spec"]["initContainers"][1]["resources"]["requests"]["cpu"] == "2"


def test_amounts_do_not_change_through_the_pod_itself(h: Harness) -> None:
    h.create(pod(h))
    with pytest.raises(ApiError) as caught:
        h.patch("pods", "p", {"spec": container(requests={"cpu": "1500m"})})
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("owners", "text"),
    [
        (["a", "b", "a"], 'disableResizePreemption[2]: Duplicate value: "a"'),
        (["not a key"], "disableResizePreemption[0]: Invalid value"),
        ([f"owner-{n}" for n in range(21)], "must have at most 20 items"),
    ],
)
def test_a_nodes_policy_is_checked(h: Harness, owners: list[str], text: str) -> None:
    h.create(h.node("n1", cpu=4))
    with pytest.raises(ApiError) as caught:
        h.patch("nodes", "n1", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": owners}}})
    assert text in caught.value.message


def test_a_nodes_policy_is_kept(h: Harness) -> None:
    h.create(h.node("n1", cpu=4))
    owners = ["example.com/autoscaler"]
    h.patch("nodes", "n1", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": owners}}})
    kept = h.get("nodes", "n1")["spec"]["podPreemptionPolicy"]["disableResizePreemption"]
    assert kept == owners
