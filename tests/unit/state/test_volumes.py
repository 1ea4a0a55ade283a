from __future__ import annotations

from pilotage.state.volume_values import compile_request, compile_volume
from statekit import cluster, node, pod
from volumekit import csi, put, pv, pvc, ref, remove, sc, uses, view_of


def test_promises_hold_while_one_of_their_pods_does() -> None:
    state = put(cluster(node("n1")), pvc("c"), pv("v"))
    volumes = state.volumes
    claim = volumes.claim("default", "c")
    assert claim is not None
    for uid in ("p", "q"):
        volumes.give(uid, "v", claim)
        volumes.send(uid, claim, "n1")
    assert volumes.promising == {"p", "q"}
    volumes.release("p")
    volumes.release("p")
    assert volumes.selected_node(claim) == "n1"
    shown = volumes.volumes_of_class("fast")[0]
    assert shown.view.spec.claim_ref is not None
    assert shown.view.spec.claim_ref.uid == claim.metadata.uid
    known = volumes.volume("v")
    assert known is not None
    assert known.view.spec.claim_ref is None, "the object itself never changes"
    volumes.release("q")
    assert volumes.selected_node(claim) == ""
    assert volumes.volumes_of_class("fast")[0].view.spec.claim_ref is None
    assert not volumes.promising


def test_volumes_follow_their_objects() -> None:
    state = put(cluster(), pv("b"), pv("a"), pv("x", "other"))
    assert [one.name for one in state.volumes.volumes_of_class("fast")] == ["a", "b"]
    before = state.volumes.volume("a")
    put(state, pv("b", "other"))
    assert [one.name for one in state.volumes.volumes_of_class("fast")] == ["a"]
    assert [one.name for one in state.volumes.volumes_of_class("other")] == ["b", "x"]
    assert state.volumes.volume("a") is before, "compiled once per version"
    remove(state, pv("a"))
    assert state.volumes.volume("a") is None


def test_users_are_pods_on_nodes() -> None:
    first, second = pod("a", on="n1", volumes=uses("c")), pod("b", volumes=uses("c", "c", "d"))
    state = cluster(node("n1"), first, second)
    assert state.volumes.is_used("default", "c")
    assert not state.volumes.is_used("default", "d")
    assert not state.volumes.is_used("elsewhere", "c")
    state.assume(second, "n1")
    assert state.volumes.is_used("default", "d")
    state.delete_pod(first.uid)
    state.check_invariants()
    assert state.volumes.is_used("default", "c")
    state.forget(second.uid)
    assert not state.volumes.is_used("default", "c")
    state.check_invariants()


def test_users_on_nodes_that_are_gone_or_unknown() -> None:
    state = cluster(node("n1"), pod("a", on="n1", volumes=uses("c")), pod("b", on="n9", volumes=uses("d")))
    state.delete_node("n1")
    assert state.volumes.is_used("default", "c")
    assert state.volumes.is_used("default", "d")
    state.upsert_node(node("n9"))
    state.check_invariants()
    state.upsert_pod(pod("b", on="n9", volumes=uses("e")))
    assert not state.volumes.is_used("default", "d")
    state.check_invariants()


def test_nonsense_becomes_a_defect() -> None:
    claim = view_of(pvc("c", size="much"))
    assert "much" in compile_request(claim).defect  # type: ignore[arg-type]
    bad_selector = pvc("c", selector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    assert "Near" in compile_request(view_of(bad_selector)).defect  # type: ignore[arg-type]
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}
    volume = compile_volume(view_of(pv("v", nodeAffinity={"required": terms})))  # type: ignore[arg-type]
    assert "Near" in volume.defect
    assert volume.affinity is not None
    assert not volume.affinity.matches({"a": "b"}, "n1")


def test_other_storage_objects_by_name() -> None:
    state = put(cluster(), sc("fast"), pv("v", csi=csi("h"), claimRef=ref("c")))
    assert state.volumes.storage_class("fast") is not None
    assert state.volumes.storage_class("slow") is None
    assert state.volumes.csi_driver("d") is None
    assert state.volumes.csi_node("n") is None
    assert list(state.volumes.capacities()) == []
    assert list(state.volumes.attachments()) == []
