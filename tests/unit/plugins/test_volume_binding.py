"""VolumeBinding: where claims can be had, what is promised and written, when it is done. Field case E13."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import AwaitObjects
from pilotage.framework.profile import Profile
from pilotage.framework.status import Code
from pilotage.framework.volume_calls import BindVolume, SelectNode
from pilotage.plugins.volume_binding import VolumeBinding
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from statekit import FakeHandle, cluster, decide_with, feasible, node, pod, profile, scores_of
from volumekit import capacity, csi_driver, put, pv, pvc, ref, remove, sc, uses

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED = "volume.kubernetes.io/selected-node"
LOCAL = "kubernetes.io/no-provisioner"


def three(*trees: dict[str, Any]) -> ClusterState:
    """n1 and n2 in zone a, n3 in zone b."""
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    nodes = [
        node(name, labels={"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone})
        for name, zone in zones.items()
    ]
    return put(cluster(*nodes), *trees)


def user(*claims: str, **spec: Any) -> PodInfo:
    return pod("p", volumes=uses(*claims), **spec)


def decided(state: ClusterState, *claims: str) -> Decision:
    return decide_with(state, user(*claims))


def reasons(state: ClusterState, *claims: str) -> dict[str, tuple[str, ...]]:
    """What VolumeBinding alone says of each node; empty where it fits."""
    plugin, cycle = VolumeBinding({}, FakeHandle(state)), CycleState()
    info = user(*claims)
    assert plugin.pre_filter(cycle, info, state.nodes).is_success
    rows = state.nodes.live_rows
    result = plugin.filter_nodes(cycle, info, state.nodes, rows)
    assert set(result.codes.tolist()) <= {Code.SUCCESS, Code.UNRESOLVABLE}
    return {
        state.nodes.name(int(row)): tuple(plugin.reason_texts(cycle, info, state.nodes, int(row), int(bits)))
        for row, bits in zip(rows, result.reasons, strict=True)
    }


# PreFilter


@pytest.mark.parametrize(
    ("trees", "text"),
    [
        ((), 'persistentvolumeclaim "c" not found'),
        ((pvc("c", "now"), sc("now", waits=False)), "pod has unbound immediate PersistentVolumeClaims"),
        ((pvc("c", None),), "pod has unbound immediate PersistentVolumeClaims"),
        ((pvc("c", "nowhere"),), "pod has unbound immediate PersistentVolumeClaims"),
        # A claim that names its volume is bound by the controller, whatever its class.
        ((pvc("c", volumeName="v"), sc("fast")), "pod has unbound immediate PersistentVolumeClaims"),
        (
            ({**pvc("c", to="v"), "status": {"phase": "Lost"}},),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
    ],
)
def test_pods_that_fit_nowhere(trees: tuple[dict[str, Any], ...], text: str) -> None:
    decision = decided(three(*trees), "c")
    # PreFilter ends before DynamicResources: the suffix is added by the caller, see test_golden.
    assert decision.message == f"0/3 nodes are available: {text}."
    assert decision.status.code is Code.UNRESOLVABLE


def test_a_claim_that_is_being_deleted() -> None:
    claim = pvc("c")
    claim["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    decision = decided(three(sc("fast"), claim), "c")
    assert 'persistentvolumeclaim "c" is being deleted' in decision.message


def test_a_class_without_a_mode_is_an_error() -> None:
    storage_class = sc("fast")
    del storage_class["volumeBindingMode"]
    decision = decided(three(storage_class, pvc("c")), "c")
    assert decision.status.code is Code.ERROR
    assert 'VolumeBindingMode not set for StorageClass "fast"' in decision.message


def test_claims_of_ephemeral_volumes() -> None:
    state = three(sc("fast"))
    info = pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    assert text in decide_with(state, info).message
    put(state, pvc("p-scratch"))
    assert "was not created for pod default/p (pod is not owner)" in decide_with(state, info).message
    owned = pvc("p-scratch")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": info.uid, "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    put(state, owned)
    assert decide_with(state, info).is_scheduled


# Bound claims


def test_bound_claims_go_where_their_volumes_are() -> None:
    state = three(pv("v", node="n2", phase="Bound"), pvc("c", to="v"))
    assert reasons(state, "c") == {"n1": (AFFINITY,), "n2": (), "n3": (AFFINITY,)}


def test_a_bound_claim_whose_volume_is_gone() -> None:
    state = three(pv("v", node="n2", phase="Bound"), pvc("c", to="v"), pvc("d", to="lost"))
    # The first claim that fails decides, node by node.
    assert reasons(state, "c", "d") == {"n1": (AFFINITY,), "n2": (GONE,), "n3": (AFFINITY,)}


def test_reasons_of_bound_and_unbound_claims_add_up() -> None:
    state = three(sc("local", provisioner=LOCAL), pv("v", node="n2", phase="Bound"), pvc("c", to="v"))
    put(state, pvc("d", "local"))
    assert reasons(state, "c", "d") == {
        "n1": (AFFINITY, NO_VOLUME),
        "n2": (NO_VOLUME,),
        "n3": (AFFINITY, NO_VOLUME),
    }


# Static volumes


@pytest.mark.parametrize(
    ("volume", "fits"),
    [
        (pv("v", "local"), True),
        (pv("v", "local", phase="Pending"), False),
        (pv("v", "local", phase="Released"), False),
        (pv("v", "other"), False),
        (pv("v", "local", size="4Gi"), False),
        (pv("v", "local", size="5Gi"), True),
        (pv("v", "local", volumeMode="Block"), False),
        (pv("v", "local", mode="ReadOnlyMany"), False),
        (pv("v", "local", accessModes=["ReadOnlyMany", "ReadWriteOnce"]), True),
        (pv("v", "local", claimRef=ref("other")), False),
        (pv("v", "local", claimRef=ref("c")), True),
        (pv("v", "local", claimRef=ref("c"), phase="Pending"), True),
        (pv("v", "local", claimRef=ref("c", uid="an-older-one")), False),
        (pv("v", "local", claimRef=ref("c"), size="4Gi"), False),
        (pv("v", "local", volumeAttributesClassName="gold"), False),
    ],
)
def test_which_volumes_fit(volume: dict[str, Any], fits: bool) -> None:
    state = three(sc("local", provisioner=LOCAL), pvc("c", "local", size="5Gi"), volume)
    assert reasons(state, "c") == dict.fromkeys(("n1", "n2", "n3"), () if fits else (NO_VOLUME,))


def test_selectors_of_claims() -> None:
    state = three(sc("local", provisioner=LOCAL), pv("v", "local", labels={"tier": "gold"}))
    put(state, pvc("c", "local", selector={"matchLabels": {"tier": "gold"}}))
    put(state, pvc("d", "local", selector={"matchLabels": {"tier": "silver"}}))
    assert decided(state, "c").is_scheduled
    assert not decided(state, "d").is_scheduled


def test_a_volume_on_its_way_out_is_not_taken() -> None:
    volume = pv("v", "local")
    volume["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert not decided(three(sc("local", provisioner=LOCAL), pvc("c", "local"), volume), "c").is_scheduled


def chosen(state: ClusterState, on: str, *claims: str) -> dict[str, str]:
    """Claim -> volume that Reserve would give it on a node."""
    built, cycle, info = profile(state), CycleState(), user(*claims)
    _filtered(built, state, cycle, info)
    assert built.run_reserve(cycle, info, on).is_success
    given = {
        claim.metadata.name: volume.name
        for volume in state.volumes.volumes_of_class("local")
        if (claim := state.volumes.claim_of(volume.name)) is not None
    }
    built.run_unreserve(cycle, info, on)
    assert not state.volumes.promising
    return given


def _filtered(built: Profile, state: ClusterState, cycle: CycleState, info: PodInfo) -> None:
    outcome = built.run_pre_filter(cycle, info, state.nodes)
    assert outcome.status.is_success, outcome.status.message
    plugin = built.plugins["VolumeBinding"]
    plugin.filter_nodes(cycle, info, state.nodes, state.nodes.live_rows)


def test_the_smallest_volume_that_fits_and_none_twice() -> None:
    state = three(sc("local", provisioner=LOCAL))
    for name, on, size in (("a", "n1", "50Gi"), ("b", "n1", "5Gi"), ("c", "n1", "1Gi"), ("d", "n2", "9Gi")):
        put(state, pv(name, "local", on, size=size))
    put(state, pvc("one", "local", size="4Gi"), pvc("two", "local", size="3Gi"))
    # The smaller claim chooses first.
    assert chosen(state, "n1", "one", "two") == {"two": "b", "one": "a"}
    assert reasons(state, "one", "two")["n2"] == (NO_VOLUME,)


def test_a_reserved_volume_out_of_reach_excludes_the_others() -> None:
    state = three(sc("local", provisioner=LOCAL), pvc("c", "local"))
    put(state, pv("mine", "local", "n1", claimRef=ref("c")), pv("free", "local", "n2"))
    assert reasons(state, "c") == {"n1": (), "n2": (NO_VOLUME,), "n3": (NO_VOLUME,)}


# Provisioning


def test_allowed_topologies() -> None:
    zone = "topology.kubernetes.io/zone"
    state = three(sc("fast", topologies=[{zone: ["b", "c"]}, {zone: ["a"], "disk": ["ssd"]}]), pvc("c"))
    assert reasons(state, "c") == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,), "n3": ()}


def test_provisioning_where_no_volume_fits() -> None:
    state = three(sc("fast"), pvc("c"), pv("v", "fast", "n1"))
    built, cycle, info = profile(state), CycleState(), user("c")
    _filtered(built, state, cycle, info)
    plugin = built.plugins["VolumeBinding"]
    placement = cycle.read("VolumeBinding/claims", object).placement  # type: ignore[attr-defined]
    names = {state.nodes.name(row): row for row in range(3)}
    assert [v.name for v, _ in placement.volumes_at(names["n1"])] == ["v"]
    assert placement.provisioned_at(names["n1"]) == []
    assert placement.volumes_at(names["n2"]) == []
    assert [claim.metadata.name for claim in placement.provisioned_at(names["n2"])] == ["c"]
    assert plugin.name == "VolumeBinding"


def test_a_claim_on_its_way_to_a_node_goes_nowhere_else() -> None:
    state = three(sc("fast"), pvc("c", annotations={SELECTED: "n2"}), pv("v", "fast"))
    assert reasons(state, "c") == {"n1": (NO_VOLUME,), "n2": (), "n3": (NO_VOLUME,)}


def test_a_claim_on_its_way_to_a_node_that_is_gone_is_free() -> None:
    state = three(sc("fast"), pvc("c", annotations={SELECTED: "n9"}))
    assert reasons(state, "c") == {"n1": (), "n2": (), "n3": ()}


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, {"n1", "n2"}),
        ({"maximumVolumeSize": "1Gi"}, set()),
        ({"maximumVolumeSize": "5Gi"}, {"n1", "n2"}),
        ({"capacity": "4Gi"}, set()),
        ({"nodeTopology": None}, set()),
        ({"nodeTopology": {}}, {"n1", "n2", "n3"}),
        ({"storageClassName": "other"}, set()),
        ({"capacity": "much"}, set()),
    ],
)
def test_storage_capacity(more: dict[str, Any], fits: set[str]) -> None:
    state = three(sc("fast", provisioner="d"), pvc("c", size="5Gi"), csi_driver("d", storageCapacity=True))
    room = {**capacity("room", "fast", "10Gi", {"topology.kubernetes.io/zone": "a"}), **more}
    put(state, {key: value for key, value in room.items() if value is not None})
    assert {name for name, texts in reasons(state, "c").items() if not texts} == fits
    assert all(texts in ((), (NO_SPACE,)) for texts in reasons(state, "c").values())


def test_capacity_is_asked_only_of_drivers_that_tell_it() -> None:
    state = three(sc("fast", provisioner="d"), pvc("c"), csi_driver("d", storageCapacity=False))
    assert decided(state, "c").is_scheduled
    remove(state, csi_driver("d"))
    assert decided(state, "c").is_scheduled


def test_a_claim_that_makes_no_sense_is_named() -> None:
    state = three(sc("fast"), pvc("c", size="much"))
    decision = decided(state, "c")
    assert decision.status.code is Code.ERROR
    assert 'persistentvolumeclaim "c": ' in decision.message
    assert "much" in decision.message


# Score


def test_scores_only_with_the_gate() -> None:
    state = three(sc("fast", provisioner="d"), pvc("c", size="5Gi"), csi_driver("d", storageCapacity=True))
    put(state, capacity("a", "fast", "10Gi", {"topology.kubernetes.io/zone": "a"}))
    put(state, capacity("b", "fast", "50Gi", {"topology.kubernetes.io/zone": "b"}))
    decision = decided(state, "c")
    assert decision.scores is not None
    assert "VolumeBinding" not in decision.scores.by_plugin
    built = profile(state)
    built.plugins["VolumeBinding"].handle.gates = {"StorageCapacityScoring": True}
    cycle, info = CycleState(), user("c")
    _filtered(built, state, cycle, info)
    plugin, rows = built.plugins["VolumeBinding"], np.arange(3)
    assert plugin.pre_score(cycle, info, state.nodes, rows).is_success
    assert plugin.score_nodes(cycle, info, state.nodes, rows).tolist() == [50, 50, 90]
    assert scores_of(state, decision, "NodeResourcesFit")
    assert feasible(state, decision) == {"n1", "n2", "n3"}


# Reserve and PreBind


def reserved(state: ClusterState, on: str, info: PodInfo) -> tuple[VolumeBinding, CycleState]:
    built, cycle = profile(state), CycleState()
    _filtered(built, state, cycle, info)
    state.assume(info, on)
    assert built.run_reserve(cycle, info, on).is_success
    plugin = built.plugins["VolumeBinding"]
    assert isinstance(plugin, VolumeBinding)
    return plugin, cycle


def test_the_next_decision_sees_what_is_promised() -> None:
    state = three(sc("local", provisioner=LOCAL), sc("fast"), pvc("c", "local"), pvc("d", "local"), pvc("e"))
    put(state, pv("v", "local", "n1"))
    first = user("c", "e")
    plugin, cycle = reserved(state, "n1", first)
    assert reasons(state, "d") == dict.fromkeys(("n1", "n2", "n3"), (NO_VOLUME,))
    assert reasons(state, "e") == {"n1": (), "n2": (NO_VOLUME,), "n3": (NO_VOLUME,)}
    assert reasons(state, "c")["n1"] == ()
    plugin.unreserve(cycle, first, "n1")
    assert reasons(state, "d")["n1"] == ()
    assert reasons(state, "e")["n3"] == ()


def test_nothing_is_to_be_done_for_bound_claims() -> None:
    state = three(pv("v", phase="Bound"), pvc("c", to="v"))
    info = user("c")
    plugin, cycle = reserved(state, "n1", info)
    assert plugin.pre_bind_pre_flight(cycle, info, "n1").is_skip
    assert plugin.pre_bind_pre_flight(CycleState(), pod("q"), "n1").is_skip


def waiting(state: ClusterState, info: PodInfo) -> AwaitObjects:
    plugin, cycle = reserved(state, "n1", info)
    assert plugin.pre_bind_pre_flight(cycle, info, "n1").is_success
    answer = plugin.pre_bind(cycle, info, "n1")
    assert isinstance(answer, AwaitObjects)
    return answer


def test_what_is_written_and_when_it_is_done() -> None:
    state = three(sc("fast"), pvc("c", size="5Gi"), pvc("d", size="50Gi"), pv("v", "fast", "n1"))
    answer = waiting(state, user("c", "d"))
    bind, select = answer.calls
    assert isinstance(bind, BindVolume)
    assert (bind.key.resource, bind.key.name, bind.claim.name) == ("persistentvolumes", "v", "c")
    assert isinstance(select, SelectNode)
    assert (select.key.namespace, select.key.name, select.node) == ("default", "d", "n1")
    assert answer.timeout == 600
    assert set(answer.watched()) == {
        ("nodes", "n1"),
        ("persistentvolumes", "v"),
        ("persistentvolumeclaims", "default/c"),
        ("persistentvolumeclaims", "default/d"),
    }
    assert answer.check(False) is None
    put(state, pv("v", "fast", "n1", claimRef=ref("c")), pvc("d", size="50Gi", annotations={SELECTED: "n1"}))
    assert answer.check(True) is None
    put(state, pvc("c", size="5Gi", to="v"), pvc("d", size="50Gi", to="made"))
    assert answer.check(True) is None, "the volume that was made is not known yet"
    assert ("persistentvolumes", "made") in answer.watched()
    put(state, pv("made", "fast", claimRef=ref("d")))
    status = answer.check(True)
    assert status is not None
    assert status.is_success
    assert not state.volumes.promising


def test_what_is_written_already_is_not_written_again() -> None:
    state = three(sc("fast"), pvc("c", annotations={SELECTED: "n1"}), pvc("d"))
    put(state, pv("v", "fast", "n1", claimRef=ref("d")))
    assert waiting(state, user("c", "d")).calls == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (pvc("c"), 'provisioning failed for PVC "c"'),
        (pvc("c", annotations={SELECTED: "n2"}), 'provisioning failed for PVC "c"'),
        ({**pvc("c"), "metadata": {**pvc("c")["metadata"], "uid": "another"}}, '"c" is gone'),
        (pv("v", "fast", "n1"), 'persistentvolume "v" is no longer reserved for PVC "d"'),
        (pv("v", "fast", "n2", claimRef=ref("d")), 'persistentvolume "v" cannot be reached from node "n1"'),
    ],
)
def test_what_ends_the_wait(change: dict[str, Any], text: str) -> None:
    state = three(sc("fast"), pvc("c", size="50Gi"), pvc("d"), pv("v", "fast", "n1"))
    answer = waiting(state, user("c", "d"))
    put(state, pvc("c", size="50Gi", annotations={SELECTED: "n1"}), pv("v", "fast", "n1", claimRef=ref("d")))
    assert answer.check(False) is None
    put(state, change)
    status = answer.check(True)
    assert status is not None
    assert status.code is Code.ERROR
    assert text in status.message
    assert state.volumes.promising, "Unreserve takes it back, not the check"


def test_a_node_or_volume_that_goes_ends_the_wait() -> None:
    state = three(sc("fast"), pvc("c"), pv("v", "fast", "n1"))
    answer = waiting(state, user("c"))
    remove(state, pv("v"))
    status = answer.check(False)
    assert status is not None
    assert 'persistentvolume "v" is gone' in status.message
    put(state, pv("v", "fast", "n1"))
    state.delete_node("n1")
    status = answer.check(False)
    assert status is not None
    assert 'node "n1" is gone' in status.message


def test_the_timeout_names_the_claims() -> None:
    state = three(sc("fast"), pvc("c"), pvc("d"))
    plugin = VolumeBinding({"bindTimeoutSeconds": 7}, FakeHandle(state))
    cycle, info = CycleState(), user("c", "d")
    assert plugin.pre_filter(cycle, info, state.nodes).is_success
    assert plugin.reserve(cycle, info, "n1").is_success
    answer = plugin.pre_bind(cycle, info, "n1")
    assert isinstance(answer, AwaitObjects)
    assert answer.timeout == 7
    assert 'timed out after 7s waiting for claims "c", "d"' in answer.timed_out().message
