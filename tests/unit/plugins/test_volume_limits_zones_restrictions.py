"""VolumeRestrictions (field case E8), NodeVolumeLimits and VolumeZone, each on clusters of a few nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotage.framework.cycle import CycleState
from pilotage.framework.status import Code
from pilotage.plugins.node_volume_limits import NodeVolumeLimits
from pilotage.plugins.volume_restrictions import VolumeRestrictions
from pilotage.plugins.volume_zone import VolumeZone
from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from statekit import FakeHandle, cluster, decide_with, feasible, node, pod
from volumekit import attachment, csi, csi_driver, csi_node, put, pv, pvc, sc, uses

FULL = "node(s) exceed max volume count"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod"
)


def user(*claims: str, name: str = "p", on: str = "", **spec: Any) -> PodInfo:
    return pod(name, volumes=uses(*claims), on=on, **spec)


def fits(plugin: Any, state: ClusterState, info: PodInfo) -> dict[str, tuple[str, ...]]:
    """What the plugin says of each node, nothing where it fits; all nodes fit when it skips."""
    cycle = CycleState()
    status = plugin.pre_filter(cycle, info, state.nodes)
    rows = state.nodes.live_rows
    names = [state.nodes.name(int(row)) for row in rows]
    if status.is_skip:
        return dict.fromkeys(names, ())
    assert status.is_success, status.message
    result = plugin.filter_nodes(cycle, info, state.nodes, rows)
    found = {}
    for name, row, code, bits in zip(names, rows.tolist(), result.codes, result.reasons, strict=True):
        texts = plugin.reason_texts(cycle, info, state.nodes, row, int(bits)) if code else ()
        found[name] = tuple(texts)
    return found


# VolumeRestrictions


def disk(kind: str, **source: Any) -> list[dict[str, Any]]:
    return [{"name": "d", kind: source}]


RBD = {"image": "i", "pool": "p"}


@pytest.mark.parametrize(
    ("there", "new", "conflict"),
    [
        (disk("gcePersistentDisk", pdName="a"), disk("gcePersistentDisk", pdName="a"), True),
        (disk("gcePersistentDisk", pdName="a"), disk("gcePersistentDisk", pdName="b"), False),
        (
            disk("gcePersistentDisk", pdName="a", readOnly=True),
            disk("gcePersistentDisk", pdName="a", readOnly=True),
            False,
        ),
        (
            disk("gcePersistentDisk", pdName="a", readOnly=True),
            disk("gcePersistentDisk", pdName="a"),
            True,
        ),
        (
            disk("awsElasticBlockStore", volumeID="a", readOnly=True),
            disk("awsElasticBlockStore", volumeID="a", readOnly=True),
            True,
        ),
        (disk("iscsi", iqn="q"), disk("iscsi", iqn="q"), True),
        (disk("iscsi", iqn="q", readOnly=True), disk("iscsi", iqn="q", readOnly=True), False),
        (disk("rbd", monitors=["m", "n"], **RBD), disk("rbd", monitors=["n"], **RBD), True),
        (disk("rbd", monitors=["m"], **RBD), disk("rbd", monitors=["n"], **RBD), False),
        (
            disk("rbd", monitors=["m"], image="i", pool="p"),
            disk("rbd", monitors=["m"], image="i", pool="q"),
            False,
        ),
        (disk("rbd", monitors=["m"], image="i"), disk("rbd", monitors=["m"], image="i", pool="rbd"), True),
        (disk("awsElasticBlockStore", volumeID="a"), disk("gcePersistentDisk", pdName="a"), False),
    ],
)
def test_disks_that_cannot_be_on_one_node(
    there: list[dict[str, Any]], new: list[dict[str, Any]], conflict: bool
) -> None:
    state = cluster(node("n1"), node("n2"), pod("old", on="n1", volumes=there))
    decision = decide_with(state, pod("p", volumes=new))
    assert feasible(state, decision) == ({"n2"} if conflict else {"n1", "n2"})
    if conflict:
        texts = fits(VolumeRestrictions({}, FakeHandle(state)), state, pod("p", volumes=new))
        assert texts["n1"] == ("node(s) had no available disk",)


def exclusive(*pods: PodInfo) -> ClusterState:
    state = cluster(node("n1"), node("n2"), *pods)
    return put(state, sc("fast"), pvc("c", mode="ReadWriteOncePod"), pvc("shared"))


def test_a_claim_for_one_pod_is_in_use_on_every_node() -> None:
    state = exclusive(user("c", name="old", on="n1"))
    plugin = VolumeRestrictions({}, FakeHandle(state))
    assert fits(plugin, state, user("c")) == {"n1": (IN_USE,), "n2": (IN_USE,)}
    assert fits(plugin, state, user("shared")) == {"n1": (), "n2": ()}
    assert decide_with(state, user("c")).status.code is Code.UNSCHEDULABLE


def test_an_assumed_user_counts_and_a_forgotten_one_does_not() -> None:
    state, old = exclusive(), user("c", name="old")
    plugin = VolumeRestrictions({}, FakeHandle(state))
    state.upsert_pod(old)
    assert fits(plugin, state, user("c"))["n1"] == ()
    state.assume(old, "n2")
    assert fits(plugin, state, user("c"))["n1"] == (IN_USE,)
    state.forget(old.uid)
    assert fits(plugin, state, user("c"))["n1"] == ()
    state.check_invariants()


def test_namesakes_in_other_namespaces_do_not_conflict() -> None:
    state = exclusive(pod("old", namespace="elsewhere", on="n1", volumes=uses("c")))
    assert fits(VolumeRestrictions({}, FakeHandle(state)), state, user("c"))["n1"] == ()


def test_what_if_the_user_goes_or_another_comes() -> None:
    old = user("c", name="old", on="n1")
    state = exclusive(old)
    plugin, cycle, info = VolumeRestrictions({}, FakeHandle(state)), CycleState(), user("c")
    assert plugin.pre_filter(cycle, info, state.nodes).is_success
    row, rows, overlay = state.nodes.row("n1"), np.array([0, 1]), NodeOverlay(state.nodes)
    assert row is not None
    trial = cycle.clone()
    assert plugin.remove_pod(trial, info, old, row, overlay).is_success
    assert not plugin.filter_nodes(trial, info, overlay, rows).codes.any()
    assert plugin.add_pod(trial, info, old, row, overlay).is_success
    assert plugin.filter_nodes(trial, info, overlay, rows).codes.all()
    stranger = pod("x", namespace="elsewhere", volumes=uses("c"))
    assert plugin.remove_pod(trial, info, stranger, row, overlay).is_success
    assert plugin.filter_nodes(trial, info, overlay, rows).codes.all()
    assert plugin.filter_nodes(cycle, info, state.nodes, rows).codes.all(), "the original is untouched"


def test_pods_without_such_volumes_skip() -> None:
    state = exclusive()
    plugin = VolumeRestrictions({}, FakeHandle(state))
    for info in (pod("p"), user("c"), user("shared"), pod("p", volumes=[{"name": "x", "emptyDir": {}}])):
        assert plugin.pre_filter(CycleState(), info, state.nodes).is_skip
    status = plugin.pre_filter(CycleState(), user("gone"), state.nodes)
    assert (status.code, status.message) == (
        Code.UNRESOLVABLE,
        'persistentvolumeclaim "gone" not found',
    )


# NodeVolumeLimits


def limited(*trees: dict[str, Any], count: int | None = 2) -> ClusterState:
    """n1 takes two volumes of csi.example.com, n2 has no CSINode."""
    state = put(
        cluster(node("n1"), node("n2")), csi_node("n1", csi=count), sc("fast", provisioner="csi.example.com")
    )
    for index in range(4):
        put(state, pv(f"v{index}", csi=csi(f"h{index}"), phase="Bound"), pvc(f"c{index}", to=f"v{index}"))
    return put(state, *trees)


def full(state: ClusterState, info: PodInfo, **gates: bool) -> bool:
    handle = FakeHandle(state)
    handle.gates = gates
    found = fits(NodeVolumeLimits({}, handle), state, info)
    assert found["n2"] == ()
    assert found["n1"] in ((), (FULL,))
    return found["n1"] == (FULL,)


def test_volumes_count_once_per_node() -> None:
    state = limited()
    assert not full(state, user("c0", "c1"))
    assert full(state, user("c0", "c1", "c2"))
    state.upsert_pod(user("c0", name="a", on="n1"))
    assert not full(state, user("c1"))
    assert not full(state, user("c0", "c1")), "c0 is there already"
    assert full(state, user("c1", "c2"))
    state.upsert_pod(user("c0", "c1", name="b", on="n1"))
    assert not full(state, user("c0", "c1"))
    assert full(state, user("c2"))


@pytest.mark.parametrize(("count", "is_full"), [(0, True), (1, False), (None, False)])
def test_what_a_limit_is(count: int | None, is_full: bool) -> None:
    assert full(limited(count=count), user("c0")) is is_full


def test_another_driver_has_limits_of_its_own() -> None:
    state = limited(csi_node("n1", other=0))
    assert not full(state, user("c0", "c1", "c2"))


def test_unbound_claims_count_under_the_provisioner_of_their_class() -> None:
    state = limited(pvc("new"), pvc("newer"), pvc("newest"), pvc("odd", "nowhere"), pvc("none", None))
    assert full(state, user("new", "newer", "newest"))
    assert not full(state, user("new", "newer", "odd", "none"))
    state.upsert_pod(user("new", "c0", name="a", on="n1"))
    assert not full(state, user("new"))
    assert full(state, user("newer"))


def test_attachments_count_though_no_pod_uses_the_volume() -> None:
    state = limited(attachment("a", "n1", "v0"), attachment("b", "n1", "v1"), attachment("c", "n2", "v2"))
    assert full(state, user("c2"))
    assert not full(state, user("c0"))
    assert (
        full(limited(*(attachment(f"a{i}", "n1", f"v{i}") for i in range(4))), user("c0", "c1", "new"))
        is False
    )


def test_an_attachment_of_another_driver_does_not_count() -> None:
    state = limited(attachment("a", "n1", "v0", "other"), attachment("b", "n1", "v1", "other"))
    assert not full(state, user("c2"))


def test_missing_claims_of_pods_on_nodes_do_not_count() -> None:
    state = limited()
    state.upsert_pod(user("gone", "c0", name="a", on="n1"))
    assert not full(state, user("c1"))


def test_disks_that_a_csi_driver_serves_by_now() -> None:
    ebs = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    limit = {"name": "ebs.csi.aws.com", "nodeID": "x", "allocatable": {"count": 1}}
    state = limited({**ebs, "spec": {"drivers": [limit]}})
    put(
        state, pv("w", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"}, phase="Bound"), pvc("w", to="w")
    )
    state.upsert_pod(pod("a", on="n1", volumes=disk("awsElasticBlockStore", volumeID="vol-1")))
    assert not full(state, user("w"))
    assert full(state, pod("b", volumes=disk("awsElasticBlockStore", volumeID="vol-2")))


def test_a_driver_may_ask_to_be_installed() -> None:
    driver = csi_driver("csi.example.com", preventPodSchedulingIfMissing=True)
    state, handle = limited(driver), FakeHandle(limited())
    handle = FakeHandle(state)
    handle.gates = {"VolumeLimitScaling": True}
    found = fits(NodeVolumeLimits({}, handle), state, user("c0"))
    assert found == {"n1": (), "n2": ("csi.example.com CSI driver is not installed on the node",)}
    assert not full(state, user("c0")), "without the gate nobody asks"


def test_pods_without_volumes_to_attach_skip() -> None:
    state = limited()
    plugin = NodeVolumeLimits({}, FakeHandle(state))
    for info in (pod("p"), pod("p", volumes=[{"name": "x", "configMap": {"name": "y"}}])):
        assert plugin.pre_filter(CycleState(), info, state.nodes).is_skip


# VolumeZone

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def zoned(labels: dict[str, str]) -> ClusterState:
    nodes = {
        "bare": {},
        "a": {ZONE: "a", REGION: "r"},
        "b": {ZONE: "b", REGION: "r"},
        "old": {OLD_ZONE: "a"},
        "region": {REGION: "r"},
    }
    state = cluster(*(node(name, labels=of) for name, of in nodes.items()))
    return put(state, pv("v", labels=labels, phase="Bound"), pvc("c", to="v"))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({ZONE: "a"}, {"bare", "a"}),
        ({ZONE: "a__c"}, {"bare", "a"}),
        ({ZONE: "a__b"}, {"bare", "a", "b"}),
        ({ZONE: "a__"}, {"bare", "a", "b", "old", "region"}),
        ({OLD_ZONE: "a"}, {"bare", "a", "old"}),
        ({ZONE: "b", REGION: "r"}, {"bare", "b"}),
        ({REGION: "r"}, {"bare", "a", "b", "region"}),
        ({REGION: "s"}, {"bare"}),
        ({"disk": "ssd"}, {"bare", "a", "b", "old", "region"}),
    ],
)
def test_zones_of_volumes(labels: dict[str, str], expected: set[str]) -> None:
    state = zoned(labels)
    found = fits(VolumeZone({}, FakeHandle(state)), state, user("c"))
    assert {name for name, texts in found.items() if not texts} == expected
    assert set(found.values()) <= {(), ("node(s) had no available volume zone",)}
    assert feasible(state, decide_with(state, user("c"))) == expected


@pytest.mark.parametrize(
    ("trees", "text"),
    [
        ((), 'persistentvolumeclaim "c" not found'),
        ((pvc("c", to="v"),), 'persistentvolume "v" not found'),
        ((pvc("c", None),), "PersistentVolumeClaim had no pv name and storageClass name"),
        ((pvc("c", "x"),), 'storageclass.storage.k8s.io "x" not found'),
        ((pvc("c", "x"), sc("x", waits=False)), "PersistentVolume had no name"),
        ((pvc("c", "x"), sc("x")), ""),
    ],
)
def test_claims_that_have_no_zone_yet(trees: tuple[dict[str, Any], ...], text: str) -> None:
    state = put(cluster(node("n1")), *trees)
    status = VolumeZone({}, FakeHandle(state)).pre_filter(CycleState(), user("c"), state.nodes)
    if text:
        assert (status.code, status.message) == (Code.UNRESOLVABLE, text)
    else:
        assert status.is_skip


def test_more_texts_of_claims() -> None:
    state = cluster(node("n1"))
    plugin = VolumeZone({}, FakeHandle(state))
    assert (
        plugin.pre_filter(CycleState(), user(""), state.nodes).message == "PersistentVolumeClaim had no name"
    )
    storage_class = sc("x")
    del storage_class["volumeBindingMode"]
    put(state, storage_class, pvc("c", "x"))
    message = plugin.pre_filter(CycleState(), user("c"), state.nodes).message
    assert message == 'VolumeBindingMode not set for StorageClass "x"'
