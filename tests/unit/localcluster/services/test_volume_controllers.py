"""Volume controllers as pure functions: a cache in, the next write out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.kinds import by_kind
from pilotage.localcluster.controllers.ephemeral import EphemeralVolumes
from pilotage.localcluster.controllers.plan import Create, Delete, Patch
from pilotage.localcluster.controllers.volumes import VolumeClaims, VolumePhases
from pilotage.localcluster.objects import Cache, Moved
from volumekit import pv, pvc, ref, sc, view_of

KEY = "default/c"
SELECTED = "volume.kubernetes.io/selected-node"


def cache_of(*trees: dict[str, Any]) -> Cache:
    cache = Cache()
    for tree in trees:
        put(cache, tree)
    return cache


def put(cache: Cache, tree: dict[str, Any]) -> Moved | None:
    kind = by_kind(tree.get("apiVersion", "v1"), tree["kind"])
    assert kind is not None
    return cache.told(kind.resource, view_of(tree))


def node(name: str, zone: str = "") -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def next_write(cache: Cache, *external: str) -> Any:
    """The one write for the claim, None for nothing."""
    writes = VolumeClaims(external).reconcile(KEY, cache, 0.0).writes
    assert len(writes) <= 1
    return writes[0] if writes else None


def test_an_immediate_claim_takes_the_smallest_volume() -> None:
    cache = cache_of(sc("fast", waits=False), pvc("c", size="2Gi"), pv("a", size="9Gi"), pv("b", size="3Gi"))
    put(cache, pv("small", size="1Gi"))
    write = next_write(cache)
    assert isinstance(write, Patch)
    assert (write.resource, write.name) == ("persistentvolumes", "b")
    assert write.body["spec"]["claimRef"]["uid"] == "uid-c"
    assert write.body["metadata"]["resourceVersion"]
    # The answer brings the next step.
    put(cache, pv("b", size="3Gi", claimRef=ref("c")))
    write = next_write(cache)
    assert (write.resource, write.body["spec"]) == ("persistentvolumeclaims", {"volumeName": "b"})
    assert write.body["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    put(cache, {**pvc("c", size="2Gi", to="b"), "status": {"phase": "Pending"}})
    write = next_write(cache)
    assert (write.subresource, write.body["status"]["phase"]) == ("status", "Bound")
    assert write.body["status"]["capacity"] == {"storage": "3Gi"}
    put(cache, pvc("c", size="2Gi", to="b"))
    assert next_write(cache) is None


@pytest.mark.parametrize(
    "trees",
    [
        (sc("fast"), pvc("c"), pv("v")),  # waits for its consumer
        (sc("fast", waits=False, provisioner="kubernetes.io/no-provisioner"), pvc("c")),
        (sc("fast", waits=False, provisioner="outside"), pvc("c")),
        (pvc("c", "nowhere"),),
        (pvc("c", None),),
        (pvc("c", volumeName="gone"),),
        (pvc("c", volumeName="v"), pv("v", claimRef=ref("other"))),
        (),
    ],
)
def test_claims_that_wait(trees: tuple[dict[str, Any], ...]) -> None:
    assert next_write(cache_of(*trees), "outside") is None


def test_a_volume_is_made_where_the_scheduler_wants_it() -> None:
    cache = cache_of(sc("fast"), pvc("c", annotations={SELECTED: "n1"}), node("n1", "z"), pv("free"))
    write = next_write(cache)
    assert isinstance(write, Create)
    spec = write.body["spec"]
    assert write.body["metadata"]["name"] == "pvc-uid-c"
    assert spec["claimRef"]["uid"] == "uid-c"
    assert spec["csi"]["driver"] == "example.com/disks"
    assert spec["persistentVolumeReclaimPolicy"] == "Delete"
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["z"]
    put(cache, pvc("c", annotations={SELECTED: "n9"}))
    write = next_write(cache)
    assert write.body["metadata"]["annotations"] == {SELECTED: None}, "that node is gone: choose again"


def test_an_immediate_claim_is_provisioned_anywhere() -> None:
    write = next_write(cache_of(sc("fast", waits=False), pvc("c")))
    assert isinstance(write, Create)
    assert "nodeAffinity" not in write.body["spec"]


def test_a_volume_that_is_reserved_without_uid_is_completed() -> None:
    reserved = pv("v", claimRef={"namespace": "default", "name": "c"}, phase="Available")
    write = next_write(cache_of(sc("fast"), pvc("c"), reserved))
    assert write.body["spec"]["claimRef"]["uid"] == "uid-c"
    assert "annotations" not in write.body["metadata"]


def test_a_claim_that_names_its_volume() -> None:
    write = next_write(cache_of(pvc("c", volumeName="v"), pv("v")))
    assert (write.resource, write.name) == ("persistentvolumes", "v")
    write = next_write(cache_of(pvc("c", volumeName="v"), pv("v", claimRef=ref("c"))))
    assert write.body["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    cache = cache_of(pvc("c", None), sc("other"))
    assert next_write(cache) is None
    marked = sc("standard")
    marked["metadata"] = {"name": "standard", "annotations": default}
    put(cache, marked)
    assert next_write(cache).body["spec"] == {"storageClassName": "standard"}


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    assert next_write(cache_of(pvc("c", to="v"))).body == {"status": {"phase": "Lost"}}


def test_what_a_change_concerns() -> None:
    cache = cache_of(sc("fast"), pvc("c"), pvc("d", to="v"), pvc("e", "other"))
    claims = VolumeClaims()

    def keys(tree: dict[str, Any]) -> list[str]:
        moved = put(cache, tree)
        assert moved is not None
        return sorted(claims.keys(moved, cache))

    assert keys(pv("w")) == ["default/c"]
    assert keys(pv("v", claimRef=ref("d"))) == ["default/d"]
    assert keys(sc("other")) == ["default/e"]
    assert keys(pvc("c")) == ["default/c"]
    assert keys(node("n1")) == []


@pytest.mark.parametrize(
    ("volume", "claims", "expected"),
    [
        (pv("v", phase="Pending"), (), "Available"),
        (pv("v", phase="Available"), (), None),
        (pv("v", phase="Pending", claimRef={"namespace": "default", "name": "c"}), (), "Available"),
        (pv("v", phase="Available", claimRef=ref("c")), (pvc("c"),), None),
        (pv("v", phase="Available", claimRef=ref("c")), (pvc("c", to="v"),), "Bound"),
        (pv("v", phase="Bound", claimRef=ref("c")), (pvc("c", to="v"),), None),
        (pv("v", phase="Bound", claimRef=ref("c")), (), "Released"),
        (pv("v", phase="Available", claimRef=ref("c")), (), None),
        (pv("v", phase="Pending", claimRef=ref("c")), (), "Available"),
        (pv("v", phase="Bound", claimRef=ref("c", uid="older")), (pvc("c"),), "Released"),
    ],
)
def test_phases(volume: dict[str, Any], claims: tuple[dict[str, Any], ...], expected: str | None) -> None:
    writes = VolumePhases().reconcile("v", cache_of(volume, *claims), 0.0).writes
    found = [write.body["status"]["phase"] for write in writes if isinstance(write, Patch)]
    assert found == ([expected] if expected else [])


def test_a_made_volume_goes_with_its_claim() -> None:
    made = pv("v", phase="Bound", claimRef=ref("c"), persistentVolumeReclaimPolicy="Delete")
    made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "x"}
    (write,) = VolumePhases().reconcile("v", cache_of(made), 0.0).writes
    assert isinstance(write, Delete)
    made["metadata"]["annotations"] = {}
    (write,) = VolumePhases().reconcile("v", cache_of(made), 0.0).writes
    assert isinstance(write, Patch), "a volume that a person made stays"


def test_claims_of_ephemeral_volumes() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = {"volumes": [{"name": "s", "ephemeral": {"volumeClaimTemplate": template}}], "containers": []}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    cache, controller = Cache(), EphemeralVolumes()
    moved = put(cache, pod)
    assert moved is not None
    (key,) = controller.keys(moved, cache)
    (write,) = controller.reconcile(key, cache, 0.0).writes
    assert isinstance(write, Create)
    assert write.body["metadata"]["name"] == "p-s"
    assert write.body["metadata"]["labels"] == {"a": "b"}
    (owner,) = write.body["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("uid-p", True)
    assert write.body["spec"] == template["spec"]
    put(cache, pvc("p-s"))
    assert controller.reconcile(key, cache, 0.0).writes == ()
    done = msgspec.convert({**pod, "status": {"phase": "Succeeded"}}, dict[str, Any])
    cache = Cache()
    put(cache, done)
    assert controller.reconcile(key, cache, 0.0).writes == ()
