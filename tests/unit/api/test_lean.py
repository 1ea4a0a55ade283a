"""What is kept of bound pods and of nodes: less memory, the same meaning."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api import lean
from pilotage.api.kinds import by_resource
from pilotage.api.lean import MIRROR, Sharing
from pilotage.client.decoding import LeanDecoder, TypedDecoder
from pilotage.state.pod_terms import terms_of
from pilotage.state.podinfo import PodInfo
from reference.differential import view
from reference.wide_source import WideSource
from statekit import node, pod

READ = (
    *("uid", "key", "name", "namespace", "labels", "priority", "defect", "requests", "usage"),
    *("nonzero", "nonzero_usage", "node_name", "is_terminal", "is_terminating", "start_time"),
    *("container_requests", "tolerations", "node_selector", "node_affinity", "host_ports", "images"),
    *("signature", "claims"),
)


def bound(name: str, **more: Any) -> Any:
    return pod(name, {"cpu": "1"}, on="n1", labels={"app": "a"}, **more).pod


@pytest.mark.parametrize("seed", range(40))
def test_a_slim_pod_means_the_same(seed: int) -> None:
    source, sharing = WideSource(seed), Sharing()
    for _ in range(5):
        whole = view("pods", source.pod(node="n1"))
        before, after = PodInfo(whole), PodInfo(sharing.slim(whole))
        for name in READ:
            assert getattr(after, name) == getattr(before, name), name
        assert terms_of(after) == terms_of(before)


def test_pending_pods_are_left_as_they_are() -> None:
    pending = pod("p").pod
    assert Sharing().slim(pending) is pending


def test_equal_parts_are_one_object() -> None:
    sharing = Sharing()
    one, two = sharing.slim(bound("one")), sharing.slim(bound("two"))
    assert one.spec.containers is two.spec.containers
    assert one.metadata.labels is two.metadata.labels
    assert one.spec.node_name is two.spec.node_name
    assert PodInfo(one).requests is PodInfo(two).requests
    assert (one.metadata.name, two.metadata.name) == ("one", "two")


def test_what_nobody_reads_is_dropped_and_the_rest_kept() -> None:
    conditions = [
        {"type": kind, "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("Ready", "PodScheduled", "PodResizePending", "DisruptionTarget")
    ]
    volumes = [{"name": "token-x1"}, {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    plain = [{"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "2"}}}]
    status = {"conditions": conditions, "containerStatuses": plain, "phase": "Running"}
    slim = Sharing().slim(bound("p", status=status, volumes=volumes))
    assert [c.type for c in slim.status.conditions] == ["PodResizePending", "DisruptionTarget"]
    assert slim.status.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"
    assert [s.name for s in slim.status.container_statuses] == ["side"]
    assert [v.name for v in slim.spec.volumes] == ["data"]


def test_of_annotations_only_the_mirror_stays() -> None:
    tree = {"metadata": {"name": "p", "annotations": {"x": "1", MIRROR: "h"}}, "spec": {"nodeName": "n"}}
    assert Sharing().slim(view("pods", tree)).metadata.annotations == {MIRROR: "h"}
    del tree["metadata"]["annotations"][MIRROR]
    assert Sharing().slim(view("pods", tree)).metadata.annotations is None


def test_images_are_shared_between_nodes_of_equal_size_only() -> None:
    sharing = Sharing()
    first, second = (sharing.slim(node(name, images={"a": 1, "b": 2})) for name in ("n1", "n2"))
    third = sharing.slim(node("n3", images={"a": 5}))
    assert first.status.images[1] is second.status.images[1]
    assert third.status.images[0].size_bytes == 5
    empty = node("n4")
    assert sharing.slim(empty) == empty


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "MAX_PARTS", 10)
    sharing = Sharing()
    slim = [sharing.slim(bound(f"p{i}", nodeSelector={"k": str(i)})) for i in range(100)]
    assert [pod.spec.node_selector for pod in slim] == [{"k": str(i)} for i in range(100)]


def test_only_the_schedulers_informers_lose_anything() -> None:
    kind = by_resource("pods")
    assert kind is not None
    meta = {"name": "p", "namespace": "default", "uid": "u", "annotations": {"x": "1"}}
    tree = {"metadata": meta, "spec": {"nodeName": "n"}}
    body = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [tree]})
    line = msgspec.json.encode({"type": "ADDED", "object": tree})
    for decoder, kept in ((TypedDecoder(kind), {"x": "1"}), (LeanDecoder(kind), None)):
        seen = decoder.frame(line).seen
        assert seen is not None
        assert seen.object.metadata.annotations == kept
        assert decoder.page(body).items[0].object.metadata.annotations == kept
