"""The cluster state: who counts where, and what a fact changes."""

from __future__ import annotations

import pytest

from pilotage.state.nominations import Nominations
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import HostPort
from statekit import GI, cluster, decide_with, node, pod

PORT = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]


def cpu_on(state: object, name: str) -> int:
    row = state.nodes.row(name)  # type: ignore[attr-defined]  # ClusterState
    return int(state.nodes.requested[row, 0])  # type: ignore[attr-defined]  # ClusterState


def test_f2_a_node_that_comes_back_shows_its_pods() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 3}, on="n1"))
    state.delete_node("n1")
    state.check_invariants()
    waiting = pod("b", {"cpu": 2})
    assert decide_with(state, waiting).message == "no nodes available to schedule pods"
    state.upsert_node(node("n1", uid="another"))
    state.check_invariants()
    assert cpu_on(state, "n1") == 3000
    assert decide_with(state, waiting).message == "0/1 nodes are available: 1 Insufficient cpu."


def test_f2_a_pod_deleted_while_its_node_is_gone_leaves_nothing() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 3}, on="n1"))
    state.delete_node("n1")
    (change,) = state.delete_pod("pod-a")
    assert (change.old_node, change.new) == ("n1", None)
    state.upsert_node(node("n1"))
    state.check_invariants()
    assert cpu_on(state, "n1") == 0


def test_a_pod_may_arrive_before_its_node() -> None:
    state = cluster(pod("a", {"cpu": 3}, on="n1"), node("n1"))
    assert cpu_on(state, "n1") == 3000
    assert [p.name for p in state.pods_on(0)] == ["a"]


def test_repeats_and_outdated_facts_change_nothing() -> None:
    new = pod("a", {"cpu": 2}, on="n1", version="20")
    state = cluster(node("n1", version="7"), new)
    assert state.upsert_pod(new) == ()
    assert state.upsert_pod(pod("a", {"cpu": 1}, on="n1", version="19")) == ()
    assert state.upsert_node(node("n1", {"cpu": 1}, version="7")) == ()
    assert cpu_on(state, "n1") == 2000


def test_opaque_versions_are_compared_for_equality_only() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 2}, on="n1", version="zz"))
    assert state.upsert_pod(pod("a", {"cpu": 1}, on="n1", version="zz")) == ()
    assert len(state.upsert_pod(pod("a", {"cpu": 1}, on="n1", version="aa"))) == 1
    assert cpu_on(state, "n1") == 1000


def test_a_new_uid_is_a_deletion_and_an_addition() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 2}, on="n1", uid="old"))
    gone, came = state.upsert_pod(pod("a", {"cpu": 1}, uid="new"))
    assert gone.old is not None
    assert (gone.old.uid, gone.old_node) == ("old", "n1")
    assert came.old is None
    assert came.new is not None
    assert came.new.uid == "new"
    state.check_invariants()
    assert cpu_on(state, "n1") == 0


def test_an_older_incarnation_does_not_replace_a_newer_one() -> None:
    state = cluster(pod("a", uid="new", version="50"))
    assert state.upsert_pod(pod("a", uid="old", version="10")) == ()
    assert state.pod("new") is not None


def test_a_node_with_a_new_uid_keeps_its_pods() -> None:
    state = cluster(node("n1", uid="one"), pod("a", {"cpu": 2}, on="n1"))
    gone, came = state.upsert_node(node("n1", {"cpu": 8, "pods": 5}, uid="two"))
    assert (gone.new, came.old) == (None, None)
    state.check_invariants()
    assert cpu_on(state, "n1") == 2000
    assert state.delete_node("n1", uid="one") == ()


def test_f1_a_deleted_pod_leaves_in_every_role() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 4}))
    info = state.pod("pod-a")
    assert info is not None
    state.assume(info, "n1")
    (change,) = state.delete_pod("pod-a")
    assert change.was_assumed
    assert change.old_node == "n1"
    state.check_invariants()
    assert cpu_on(state, "n1") == 0
    assert state.forget("pod-a") == ()


def test_f7_forgetting_a_confirmed_pod_does_nothing() -> None:
    state = cluster(node("n1"), node("n2"), pod("p", {"cpu": 3}))
    info = state.pod("pod-p")
    assert info is not None
    state.assume(info, "n1")
    (change,) = state.upsert_pod(pod("p", {"cpu": 3}, on="n1"))
    assert change.was_assumed
    assert not state.is_assumed("pod-p")
    assert state.forget("pod-p") == ()
    assert cpu_on(state, "n1") == 3000


def test_f7_a_failed_bind_gives_the_room_back() -> None:
    state = cluster(node("n1"), node("n2"), pod("p", {"cpu": 3}))
    info = state.pod("pod-p")
    assert info is not None
    state.assume(info, "n1")
    (change,) = state.forget("pod-p")
    assert change.old is not None
    assert change.old.node_name == "n1"
    state.assume(info, "n2")
    state.check_invariants()
    assert (cpu_on(state, "n1"), cpu_on(state, "n2")) == (0, 3000)


def test_a_pod_is_not_assumed_twice() -> None:
    state = cluster(node("n1"), pod("p"))
    info = state.pod("pod-p")
    assert info is not None
    state.assume(info, "n1")
    with pytest.raises(ValueError, match="default/p is counted on node n1"):
        state.assume(info, "n1")


def test_bound_elsewhere_than_assumed_counts_where_the_api_says() -> None:
    state = cluster(node("n1"), node("n2"), pod("p", {"cpu": 1}))
    info = state.pod("pod-p")
    assert info is not None
    state.assume(info, "n1")
    state.upsert_pod(pod("p", {"cpu": 1}, on="n2"))
    state.check_invariants()
    assert (cpu_on(state, "n1"), cpu_on(state, "n2")) == (0, 1000)


def test_an_update_of_an_assumed_pod_keeps_the_assumption() -> None:
    state = cluster(node("n1"), pod("p", {"cpu": 1}))
    info = state.pod("pod-p")
    assert info is not None
    state.assume(info, "n1")
    state.upsert_pod(pod("p", {"cpu": 1}, labels={"touched": "yes"}))
    assert state.is_assumed("pod-p")
    assert cpu_on(state, "n1") == 1000


def test_a_terminal_pod_is_gone() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 1}, on="n1"))
    (change,) = state.upsert_pod(pod("a", {"cpu": 1}, on="n1", status={"phase": "Succeeded"}))
    assert change.new is None
    assert cpu_on(state, "n1") == 0
    assert state.upsert_pod(pod("x", on="n1", status={"phase": "Failed"})) == ()


def test_host_ports_are_released_with_their_pod() -> None:
    state = cluster(node("n1"), pod("a", containers=PORT, on="n1"))
    wanted = HostPort("0.0.0.0", "TCP", 80)
    assert list(state.nodes.port_conflicts(wanted)) == [0]
    state.delete_pod("pod-a")
    assert list(state.nodes.port_conflicts(wanted)) == []


def test_an_image_has_the_size_of_the_node_that_brought_it() -> None:
    state = cluster(node("n1", images={"a:1": 100}), node("n2", images={"a:1": 900}))
    image = state.nodes.image("a:1")
    assert image is not None
    assert (image.size, image.rows.tolist()) == (100, [0, 1])
    state.delete_node("n1")
    image = state.nodes.image("a:1")
    assert image is not None
    assert (image.size, image.rows.tolist()) == (100, [1])
    state.upsert_node(node("n2", images={}))
    assert state.nodes.image("a:1") is None


def test_rows_are_reused_and_clean() -> None:
    gpu = {"cpu": 1, "pods": 1, "example.com/gpu": 2}
    state = cluster(node("n1", gpu, labels={"zone": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    assert state.nodes.label_column("zone").tolist() == [0]
    state.delete_node("n1")
    state.upsert_node(node("n2"))
    state.check_invariants()
    assert (state.nodes.row("n2"), state.nodes.n_rows) == (0, 1)
    assert state.nodes.label_column("zone").tolist() == [-1]


def test_an_unreadable_node_keeps_its_pods_and_recovers() -> None:
    state = cluster(node("n1", version="5"), pod("a", {"cpu": 1}, on="n1"))
    state.upsert_unreadable_node("n1", "node-n1", "status.allocatable is a list")
    state.check_invariants()
    decision = decide_with(state, pod("b"))
    expected = "0/1 nodes are available: 1 node(s) could not be read: status.allocatable is a list."
    assert decision.message == expected
    state.upsert_node(node("n1", version="6"))
    state.check_invariants()
    assert decide_with(state, pod("b")).node == "n1"
    assert cpu_on(state, "n1") == 1000


@pytest.mark.parametrize(
    ("allocatable", "reason"),
    [
        ({}, "node(s) reported no allocatable resources"),
        ({"cpu": "banana"}, 'status.allocatable[cpu]: Invalid value: "banana"'),
        ({"memory": "-5Gi", "pods": 3}, "must not be negative"),
    ],
)
def test_a_node_that_makes_no_sense_gets_no_pods(allocatable: dict[str, object], reason: str) -> None:
    state = cluster(node("bad", allocatable), node("good"))
    assert decide_with(state, pod("p")).node == "good"
    state.delete_node("good")
    decision = decide_with(state, pod("p"))
    assert reason in decision.message
    assert decision.unschedulable_plugins == {"NodeResourcesFit"}


def test_a_nonsense_request_is_a_reason_on_the_pod() -> None:
    broken = pod("p", {"cpu": "lots"})
    assert broken.defect.startswith('spec.containers[0].resources.requests.cpu: Invalid value: "lots"')
    state = cluster(node("n1"), pod("bound", {"cpu": "lots"}, on="n1"))
    assert state.nodes.pod_count.tolist() == [1]
    decision = decide_with(state, broken)
    assert decision.message == f"0/1 nodes are available: {broken.defect}."


def test_huge_amounts_never_overflow() -> None:
    most = str(2**63 - 1)
    state = cluster(node("n1", {"cpu": most, "memory": most, "pods": 9}))
    for index in range(6):
        state.upsert_pod(pod(f"p{index}", {"cpu": most, "memory": most}, on="n1"))
    state.check_invariants()
    assert (state.nodes.requested >= 0).all()
    assert decide_with(state, pod("q", {"memory": most})).message.endswith("1 Insufficient memory.")


def test_objects_of_other_kinds_follow_the_same_laws() -> None:
    from pilotage.api.meta import ObjectMeta
    from pilotage.api.others import Service

    def service(version: str, uid: str = "u") -> Service:
        return Service(metadata=ObjectMeta(name="s", namespace="a", uid=uid, resource_version=version))

    state = cluster()
    assert len(state.upsert_object("services", service("2"))) == 1
    assert state.upsert_object("services", service("1")) == ()
    assert len(state.upsert_object("services", service("3", "v"))) == 2
    assert [s.metadata.uid for s in state.services("a")] == ["v"]
    assert state.delete_object("services", service("9", "u")) == ()
    assert len(state.delete_object("services", service("9", "v"))) == 1
    assert list(state.services("a")) == []


def test_an_overlay_leaves_the_table_alone() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 1, "memory": "1Gi"}, on="n1", containers=None))
    holder = pod("h", containers=PORT)
    overlay = NodeOverlay(state.nodes)
    overlay.add_pod(0, holder)
    overlay.remove_pod(0, "pod-a")
    assert [p.uid for p in overlay.pods(0)] == ["pod-h"]
    assert overlay.requested[0].tolist() == [0, 0, 0]
    assert list(overlay.port_conflicts(HostPort("1.2.3.4", "TCP", 80))) == [0]
    assert state.nodes.requested[0].tolist() == [1000, GI, 0]
    assert list(state.nodes.port_conflicts(HostPort("1.2.3.4", "TCP", 80))) == []
    state.check_invariants()


def test_replicas_share_a_signature() -> None:
    def replica(name: str, token: str) -> PodInfo:
        return pod(name, {"cpu": 1}, labels={"app": "web"}, volumes=[{"name": token, "projected": {}}])

    assert replica("a", "kube-api-access-1").signature == replica("b", "kube-api-access-2").signature
    assert replica("a", "x").signature != pod("c", {"cpu": 2}, labels={"app": "web"}).signature
    assert replica("a", "x").bound_to("n1").signature != replica("a", "x").signature


def test_a_terminal_pod_under_an_old_name_takes_the_old_one_away() -> None:
    state = cluster(node("n1"), pod("a", {"cpu": 1}, on="n1", uid="old"))
    changes = state.upsert_pod(pod("a", on="n1", uid="new", status={"phase": "Failed"}))
    assert [change.old.uid for change in changes if change.old] == ["old"]
    state.check_invariants()
    assert cpu_on(state, "n1") == 0


def test_pods_without_uid_are_told_apart_by_name() -> None:
    from pilotage.api.meta import ObjectMeta
    from pilotage.api.pods import Pod

    infos = [PodInfo(Pod(metadata=ObjectMeta(name=name, namespace="a"))) for name in "xy"]
    assert [info.uid for info in infos] == ["a/x", "a/y"]


def test_nominations() -> None:
    nominations = Nominations()
    first, second = pod("a"), pod("b")
    nominations.add(first, "n1")
    nominations.add(second, "n1")
    assert [info.name for info in nominations.on_node("n1")] == ["a", "b"]
    nominations.add(first, "n2")
    nominations.check_invariants()
    assert (nominations.node_of(first.uid), nominations.nodes()) == ("n2", ("n1", "n2"))
    nominations.add(second, "")
    assert (len(nominations), nominations.remove(second.uid), nominations.remove(first.uid)) == (1, "", "n2")
    nominations.check_invariants()


def test_a_nomination_ends_with_assume_bind_and_delete() -> None:
    state = cluster(node("n1"))
    for end in ("assume", "bind", "delete"):
        info = pod(end)
        state.upsert_pod(info)
        state.nominations.add(info, "n1")
        if end == "assume":
            state.assume(info, "n1")
        elif end == "bind":
            state.upsert_pod(pod(end, on="n1"))
        else:
            state.delete_pod(info.uid)
        assert len(state.nominations) == 0
