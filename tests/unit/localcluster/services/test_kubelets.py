"""Kubelets and the cache as pure functions: a cache in, writes out."""

from __future__ import annotations

from controllerkit import NOW, pod, put
from pilotage.localcluster.controllers.plan import Delete, Patch, Plan
from pilotage.localcluster.kubelet.nodes import NodeKubelets, NodeLeases, lease_period
from pilotage.localcluster.kubelet.pods import PodKubelets
from pilotage.localcluster.objects import Cache

# -- kubelet


def test_a_bare_node_gets_a_machine_and_conditions() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    [status, labels] = NodeKubelets().reconcile("n1", cache, NOW).writes
    assert isinstance(status, Patch)
    assert isinstance(labels, Patch)
    body = status.body["status"]
    assert body["allocatable"]["cpu"] == "4"
    assert {entry["type"]: entry["status"] for entry in body["conditions"]}["Ready"] == "True"
    assert labels.body["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


def test_what_the_user_said_about_a_node_stays() -> None:
    cache = Cache()
    for name, given, wanted in (
        ("cap", {"capacity": {"cpu": "2"}}, {"allocatable": {"cpu": "2"}}),
        ("none", {"allocatable": {}}, {}),
        ("both", {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}, {}),
    ):
        put(cache, "nodes", name, {"status": given})
        status = NodeKubelets().reconcile(name, cache, NOW).writes[0]
        assert isinstance(status, Patch)
        amounts = {
            key: value for key, value in status.body["status"].items() if key in ("capacity", "allocatable")
        }
        assert amounts == wanted, name


def test_a_node_without_kubelet_is_left_alone() -> None:
    cache = Cache()
    put(cache, "nodes", "n1", annotations={"pilotage.dev/kubelet": "none"})
    pod(cache, "a", node="n1")
    assert NodeKubelets().reconcile("n1", cache, NOW).writes == ()
    assert NodeLeases().reconcile("n1", cache, NOW).writes == ()
    assert PodKubelets(NodeKubelets().addresses).reconcile("default/a", cache, NOW).writes == ()


def test_leases_are_renewed_in_their_period() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    leases = NodeLeases()
    first = leases.reconcile("n1", cache, NOW)
    assert len(first.writes) == 1
    assert first.requeue_after is not None
    due = NOW + first.requeue_after
    assert leases.reconcile("n1", cache, due - 0.4).writes == ()
    second = leases.reconcile("n1", cache, due)
    assert (len(second.writes), second.requeue_after) == (1, 10.0)
    assert lease_period(1000) == 50.0


def test_a_bound_pod_runs_after_its_delay() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    kubelet = PodKubelets(NodeKubelets().addresses, start_seconds=2.0)
    pod(cache, "a", node="n1")
    assert kubelet.reconcile("default/a", cache, NOW) == Plan((), 2.0)
    [patch] = kubelet.reconcile("default/a", cache, NOW + 2).writes
    assert isinstance(patch, Patch)
    status = patch.body["status"]
    assert (status["phase"], status["podIP"], patch.uid) == ("Running", "10.0.0.1", "uid-a")
    pod(cache, "a", node="n1", ready=True)
    assert kubelet.reconcile("default/a", cache, NOW + 9).writes == ()


def test_container_statuses_tell_what_was_allocated() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    spec = {
        "nodeName": "n1",
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "once"}],
    }
    put(cache, "pods", "a", {"spec": spec, "status": {"phase": "Pending"}})
    kubelet = PodKubelets(NodeKubelets().addresses, start_seconds=0.0)
    [patch] = kubelet.reconcile("default/a", cache, NOW).writes
    assert isinstance(patch, Patch)
    [status] = patch.body["status"]["containerStatuses"]
    assert status["allocatedResources"] == {"cpu": "1"}
    assert status["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    side, once = patch.body["status"]["initContainerStatuses"]
    assert "running" in side["state"]
    assert once["state"]["terminated"]["exitCode"] == 0


def terminating(cache: Cache, grace: int, **annotations: str) -> None:
    pod(
        cache,
        "a",
        node="n1",
        ready=True,
        deletionTimestamp="2023-11-14T22:13:50Z",
        deletionGracePeriodSeconds=grace,
        annotations=annotations,
    )


def test_a_deleted_pod_stops_soon_or_when_it_was_told_to() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    for notes, grace, seconds in (
        ({}, 30, 1.0),
        ({"pilotage.dev/stop-seconds": "120"}, 120, 120.0),
        ({"pilotage.dev/stop-seconds": "120"}, 30, 30.0),
        ({"pilotage.dev/stop-seconds": "nonsense"}, 30, 1.0),
    ):
        terminating(cache, grace, **notes)
        kubelet = PodKubelets(NodeKubelets().addresses)
        assert kubelet.reconcile("default/a", cache, NOW) == Plan((), seconds)
        [delete] = kubelet.reconcile("default/a", cache, NOW + seconds).writes
        assert isinstance(delete, Delete)
        assert (delete.grace_seconds, delete.uid) == (0, "uid-a")


def test_a_whole_grace_period_by_setting() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    terminating(cache, 30)
    assert PodKubelets(NodeKubelets().addresses, stop_seconds=None).reconcile(
        "default/a", cache, NOW
    ) == Plan((), 30)


def test_run_seconds_end_a_pod_well() -> None:
    cache = Cache()
    put(cache, "nodes", "n1")
    status = {"phase": "Running", "startTime": "2023-11-14T22:13:20Z"}
    meta = {"annotations": {"pilotage.dev/run-seconds": "5"}}
    put(cache, "pods", "a", {"spec": {"nodeName": "n1"}, "status": status}, **meta)
    kubelet = PodKubelets(NodeKubelets().addresses)
    assert kubelet.reconcile("default/a", cache, NOW + 2) == Plan((), 3.0)
    [patch] = kubelet.reconcile("default/a", cache, NOW + 5).writes
    assert isinstance(patch, Patch)
    assert patch.body["status"]["phase"] == "Succeeded"


# -- cache


def test_the_cache_never_goes_back() -> None:
    cache = Cache()
    new = put(cache, "nodes", "n1", resourceVersion="900000001")
    old = put(Cache(), "nodes", "n1", resourceVersion="5")
    assert cache.told("nodes", old) is None
    assert cache.get("nodes", "n1") is new
    assert cache.answered_deleted("nodes", "n1", new.metadata.uid) is not None
    assert cache.told("nodes", new) is None
    assert cache.told_deleted("nodes", new) is None
    assert cache.told("nodes", old) is not None


def test_answers_that_no_watch_confirms_are_forgotten() -> None:
    cache = Cache()
    view = put(Cache(), "nodes", "n1")
    assert cache.answered("nodes", view, NOW) is not None
    assert cache.forget_unconfirmed(NOW + 60) == []
    assert [moved.new for moved in cache.forget_unconfirmed(NOW + 121)] == [None]
    cache.answered("nodes", view, NOW)
    cache.told("nodes", view)
    assert cache.forget_unconfirmed(NOW + 1000) == []
