"""What a simulated kubelet makes of resizes (R15)."""

from __future__ import annotations

from typing import Any

import pytest

from controllerkit import put
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.plan import Patch
from pilotage.localcluster.kubelet.allocation import CPU_MANAGER
from pilotage.localcluster.kubelet.resizes import ResizeKubelets
from pilotage.localcluster.objects import Cache

Tree = dict[str, Any]
PROGRESS = {"type": "PodResizeInProgress", "status": "True", "reason": ""}


def node(cache: Cache, cpu: str = "10", policy: list[str] | None = None, **annotations: str) -> Node:
    spec = {"podPreemptionPolicy": {"disableResizePreemption": policy}} if policy else {}
    status = {"allocatable": {"cpu": cpu, "memory": "10Gi"}}
    view = put(cache, "nodes", "n1", {"spec": spec, "status": status}, annotations=annotations)
    assert isinstance(view, Node)
    return view


def pod(
    cache: Cache,
    name: str,
    wants: str,
    allocated: str,
    *conditions: Tree,
    actual: str = "",
    priority: int = 0,
    limits: str = "",
    **meta: Any,
) -> Pod:
    bounds = {"limits": {"cpu": limits, "memory": "1Gi"}} if limits else {}
    requests = {"cpu": wants} | ({"memory": "1Gi"} if limits else {})
    container = {"name": "c", "image": "i", "resources": {"requests": requests, **bounds}}
    had = requests | {"cpu": allocated}
    entry = {"name": "c", "allocatedResources": had}
    entry["resources"] = {"requests": requests | {"cpu": actual or allocated}, **bounds}
    spec = {"nodeName": "n1", "containers": [container], "priority": priority}
    status = {"phase": "Running", "containerStatuses": [entry], "conditions": list(conditions)}
    view = put(cache, "pods", name, {"spec": spec, "status": status}, uid=name, **meta)
    assert isinstance(view, Pod)
    return view


def pending(reason: str = "Deferred", since: str = "", message: str = "") -> Tree:
    entry = {"type": "PodResizePending", "status": "True", "reason": reason, "message": message}
    return entry | {"lastTransitionTime": since, "observedGeneration": 3}


def statuses(kubelets: ResizeKubelets, cache: Cache, now: float = 0.0) -> dict[str, Tree]:
    """Pod -> status that is written."""
    written = kubelets.reconcile("n1", cache, now).writes
    found = {}
    for write in written:
        assert isinstance(write, Patch)
        assert (write.subresource, write.strategic) == ("status", True)
        found[write.name] = write.body["status"]
    return found


def allocated(status: Tree) -> str:
    return str(status["containerStatuses"][0]["allocatedResources"]["cpu"])


def conditions(status: Tree) -> dict[str, str]:
    """Type -> reason, `-` where it is removed."""
    return {c["type"]: "-" if "$patch" in c else c["reason"] for c in status.get("conditions", ())}


def test_taken_then_in_force() -> None:
    cache, kubelets = Cache(), ResizeKubelets(resize_seconds=2.0)
    node(cache)
    pod(cache, "r", "6", "4")
    found = statuses(kubelets, cache)["r"]
    assert allocated(found) == "6"
    assert found["containerStatuses"][0]["resources"]["requests"]["cpu"] == "4"
    assert conditions(found)["PodResizeInProgress"] == ""
    pod(cache, "r", "6", "6", PROGRESS, actual="4")
    assert not statuses(kubelets, cache, 1.0)
    done = statuses(kubelets, cache, 2.0)["r"]
    assert done["containerStatuses"][0]["resources"]["requests"]["cpu"] == "6"
    assert conditions(done) == {"PodResizeInProgress": "-"}


def test_an_older_resize_ends_while_a_newer_wish_waits() -> None:
    cache, kubelets = Cache(), ResizeKubelets(resize_seconds=2.0)
    node(cache)
    pod(cache, "r", "60", "6", PROGRESS, actual="4")
    first = statuses(kubelets, cache)["r"]
    assert conditions(first) == {"PodResizePending": "Deferred"}
    done = statuses(kubelets, cache, 2.0)["r"]
    assert allocated(done) == "6"
    assert done["containerStatuses"][0]["resources"]["requests"]["cpu"] == "6"


def test_others_count_with_what_is_allocated_and_terminating_ones_too() -> None:
    cache = Cache()
    node(cache)
    pod(cache, "other", "9", "3")
    pod(cache, "going", "3", "3", deletionTimestamp="2026-01-01T00:00:00Z")
    pod(cache, "r", "5", "4", priority=1)
    found = statuses(ResizeKubelets(), cache)
    assert conditions(found["r"]) == {"PodResizePending": "Deferred"}
    text = "Node didn't have enough resource: cpu, requested: 5000, used: 6000, capacity: 10000"
    assert found["r"]["conditions"][0]["message"] == text
    assert "going" not in found


def test_nothing_is_written_twice() -> None:
    cache = Cache()
    node(cache)
    text = "Node didn't have enough resource: cpu, requested: 16000, used: 0, capacity: 10000"
    pod(cache, "r", "16", "4", pending(message=text), generation=3)
    assert not statuses(ResizeKubelets(), cache)
    assert ResizeKubelets().reconcile("n1", cache, 0.0).requeue_after == 180.0


def test_a_wish_taken_back_clears_the_condition() -> None:
    cache = Cache()
    node(cache)
    pod(cache, "r", "4", "4", pending())
    assert conditions(statuses(ResizeKubelets(), cache)["r"]) == {"PodResizePending": "-"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"wants": "1", "allocated": "3"}, {"wants": "7", "allocated": "3", "priority": 10}),
        ({"wants": "5", "allocated": "3", "priority": 10}, {"wants": "5", "allocated": "3"}),
        ({"wants": "5", "allocated": "3", "limits": "5"}, {"wants": "5", "allocated": "3"}),
        (
            {"wants": "5", "allocated": "3", "since": "2026-01-01T00:00:00Z"},
            {"wants": "5", "allocated": "3", "since": "2026-01-02T00:00:00Z"},
        ),
    ],
)
def test_who_comes_first(first: Tree, second: Tree) -> None:
    """Two CPU are free: enough for one of them. No increase, priority, Guaranteed, the longest waiting."""
    for names in (("a", "z"), ("z", "a")):
        cache = Cache()
        node(cache, "8")
        for name, options in zip(names, (first, second), strict=True):
            more = dict(options)
            since = more.pop("since", "")
            waits = [pending(since=since)] if since else []
            pod(cache, name, more.pop("wants"), more.pop("allocated"), *waits, **more)
        found = statuses(ResizeKubelets(), cache)
        assert allocated(found[names[0]]) == first["wants"]
        is_shrinking = first["wants"] < first["allocated"]  # then there is room for the other one too
        assert ("containerStatuses" in found[names[1]]) == is_shrinking


@pytest.mark.parametrize("case", ["static cpu", "static pod"])
def test_infeasible(case: str) -> None:
    cache = Cache()
    node(cache, **({CPU_MANAGER: "static"} if case == "static cpu" else {}))
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}} if case == "static pod" else {}
    pod(cache, "r", "5", "4", limits="5", **mirror)
    found = ResizeKubelets().reconcile("n1", cache, 0.0)
    assert found.requeue_after is None
    [write] = found.writes
    assert isinstance(write, Patch)
    assert conditions(write.body["status"]) == {"PodResizePending": "Infeasible"}


def test_the_nodes_policy_is_told_on_deferred_pods_alone() -> None:
    cache = Cache()
    node(cache, policy=["example.com/autoscaler"])
    pod(cache, "r", "16", "4")
    pod(cache, "quiet", "1", "1")
    found = statuses(ResizeKubelets(), cache)
    assert conditions(found["r"]) == {
        "PodResizePending": "Deferred",
        "PodResizePreemptionDisabled": "PreemptionDisabledByNodePolicy",
    }
    assert "quiet" not in found


def test_a_node_without_a_kubelet_is_left_alone() -> None:
    cache = Cache()
    node(cache, **{"pilotage.dev/kubelet": "none"})
    pod(cache, "r", "6", "4")
    assert not statuses(ResizeKubelets(), cache)
