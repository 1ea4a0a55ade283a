"""Controllers as pure functions: a cache in, writes out."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.decode import convert_object
from pilotage.api.meta import KubeObject
from pilotage.localcluster.controllers.budgets import Budgets
from pilotage.localcluster.controllers.deployments import (
    HASH_LABEL,
    REVISION,
    Deployments,
    template_hash,
)
from pilotage.localcluster.controllers.garbage import Collect, Garbage
from pilotage.localcluster.controllers.namespaces import Empty, Namespaces
from pilotage.localcluster.controllers.plan import Create, Delete, Patch, Plan
from pilotage.localcluster.controllers.podgc import LostPods
from pilotage.localcluster.controllers.replicasets import ReplicaSets, missed_least_first
from pilotage.localcluster.controllers.statefulsets import StatefulSets, revision
from pilotage.localcluster.kubelet.nodes import NodeKubelets, NodeLeases, lease_period
from pilotage.localcluster.kubelet.pods import PodKubelets
from pilotage.localcluster.objects import Cache, Moved, Whole, kind_of

NOW = 1_700_000_000.0
Tree = dict[str, Any]
versions = iter(range(1, 10**9))


def put(cache: Cache, resource: str, name: str, tree: Tree | None = None, **meta: Any) -> KubeObject:
    namespaced = resource not in ("nodes", "namespaces")
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(next(versions)), "generation": 1}
    metadata |= {"namespace": "default"} if namespaced else {}
    view = convert_object(kind_of(resource), {**(tree or {}), "metadata": metadata | meta})
    cache.told(resource, view)
    return view


def owner(kind: str, name: str, api_version: str = "apps/v1") -> list[Tree]:
    return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def pod(cache: Cache, name: str, *, node: str = "", ready: bool = False, phase: str = "Pending", **meta: Any):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}]
    status = {"phase": "Running" if ready else phase, "conditions": conditions if ready else []}
    return put(cache, "pods", name, {"spec": {"nodeName": node}, "status": status}, **meta)


TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def replica_set(cache: Cache, replicas: int, **meta: Any) -> KubeObject:
    spec = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE}
    return put(cache, "replicasets.apps", "web", {"spec": spec}, **meta)


def kinds_of(plan: Plan) -> list[str]:
    return [type(write).__name__ for write in plan.writes]


# -- ReplicaSet


def test_replicaset_creates_what_is_missing_and_reports() -> None:
    cache = Cache()
    replica_set(cache, 3)
    pod(cache, "web-1", ready=True, labels={"app": "web"}, ownerReferences=owner("ReplicaSet", "web"))
    plan = ReplicaSets().reconcile("default/web", cache, NOW)
    assert kinds_of(plan) == ["Create", "Create", "Patch"]
    create, status = plan.writes[0], plan.writes[-1]
    assert isinstance(create, Create)
    assert isinstance(status, Patch)
    assert create.body["metadata"]["generateName"] == "web-"
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert status.body["status"] == {
        "replicas": 1,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 1,
    }


def test_replicaset_ignores_terminating_and_finished_pods() -> None:
    cache = Cache()
    replica_set(cache, 1)
    mine = {"labels": {"app": "web"}, "ownerReferences": owner("ReplicaSet", "web")}
    pod(cache, "a", deletionTimestamp="2023-11-14T22:13:20Z", **mine)
    pod(cache, "b", phase="Failed", **mine)
    assert kinds_of(ReplicaSets().reconcile("default/web", cache, NOW)) == ["Create", "Patch"]


def test_replicaset_takes_away_those_missed_least() -> None:
    cache = Cache()
    replica_set(cache, 1)
    mine = {"labels": {"app": "web"}, "ownerReferences": owner("ReplicaSet", "web")}
    pods = [
        pod(cache, "ready", node="n1", ready=True, **mine),
        pod(cache, "bound", node="n2", **mine),
        pod(cache, "waiting", **mine),
    ]
    assert [each.metadata.name for each in missed_least_first(pods)] == ["waiting", "bound", "ready"]
    plan = ReplicaSets().reconcile("default/web", cache, NOW)
    assert [write.name for write in plan.writes if isinstance(write, Delete)] == ["waiting", "bound"]


def test_crowded_node_and_youngest_first() -> None:
    cache = Cache()
    old, new = "2023-11-14T22:00:00Z", "2023-11-14T22:10:00Z"
    pods = [
        pod(cache, "alone", node="n1", ready=True, creationTimestamp=new),
        pod(cache, "pair-old", node="n2", ready=True, creationTimestamp=old),
        pod(cache, "pair-new", node="n2", ready=True, creationTimestamp=new),
    ]
    assert [each.metadata.name for each in missed_least_first(pods)] == ["pair-new", "pair-old", "alone"]


def test_replicaset_adopts_and_releases() -> None:
    cache = Cache()
    replica_set(cache, 1)
    pod(cache, "orphan", labels={"app": "web"})
    pod(cache, "stray", labels={"app": "other"}, ownerReferences=owner("ReplicaSet", "web"))
    patches = [
        write
        for write in ReplicaSets().reconcile("default/web", cache, NOW).writes
        if isinstance(write, Patch) and write.resource == "pods"
    ]
    assert {write.name: write.strategic for write in patches} == {"orphan": True, "stray": True}
    assert patches[0].body["metadata"]["ownerReferences"] == [
        {"$patch": "delete", "uid": "uid-web"},
    ]


def test_min_ready_seconds_makes_available_later() -> None:
    cache = Cache()
    spec = {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE, "minReadySeconds": 10}
    put(cache, "replicasets.apps", "web", {"spec": spec})
    pod(cache, "a", ready=True, labels={"app": "web"}, ownerReferences=owner("ReplicaSet", "web"))
    plan = ReplicaSets().reconcile("default/web", cache, NOW + 4)
    [status] = plan.writes
    assert isinstance(status, Patch)
    assert (status.body["status"]["readyReplicas"], "availableReplicas" in status.body["status"]) == (
        1,
        False,
    )
    assert plan.requeue_after == 6


def test_news_of_a_pod_concern_its_replicaset() -> None:
    cache = Cache()
    replica_set(cache, 1)
    owned = pod(cache, "a", labels={"app": "web"}, ownerReferences=owner("ReplicaSet", "web"))
    bare = pod(cache, "b", labels={"app": "web"})
    controller = ReplicaSets()
    assert set(controller.keys(Moved("pods", owned, None), cache)) == {"default/web"}
    assert set(controller.keys(Moved("pods", None, bare), cache)) == {"default/web"}
    assert set(controller.keys(Moved("pods", bare, bare), cache)) == set()


# -- Deployment


def deployment(cache: Cache, replicas: int = 3, template: Tree = TEMPLATE, **spec: Any) -> KubeObject:
    body = {"replicas": replicas, "selector": SELECTOR, "template": template, **spec}
    return put(cache, "deployments.apps", "web", {"spec": body})


def test_deployment_makes_its_first_replicaset_at_full_size() -> None:
    cache = Cache()
    deployment(cache)
    [create, status] = Deployments().reconcile("default/web", cache, NOW).writes
    assert isinstance(create, Create)
    hashed = template_hash(TEMPLATE)
    assert create.body["metadata"]["name"] == f"web-{hashed}"
    assert create.body["metadata"]["annotations"] == {REVISION: "1"}
    assert create.body["spec"]["replicas"] == 3
    assert create.body["spec"]["selector"]["matchLabels"] == {"app": "web", HASH_LABEL: hashed}
    assert create.body["spec"]["template"]["metadata"]["labels"] == {"app": "web", HASH_LABEL: hashed}
    assert isinstance(status, Patch)


def test_template_hash_is_blind_to_the_order_of_keys() -> None:
    turned = dict(reversed(TEMPLATE.items()))
    assert template_hash(turned) == template_hash(TEMPLATE)
    assert template_hash(TEMPLATE) != template_hash({**TEMPLATE, "spec": {}})


def with_hash(cache: Cache, name: str, hashed: str, replicas: int, available: int, rev: str) -> None:
    spec = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE}
    status = {"replicas": replicas, "availableReplicas": available, "readyReplicas": available}
    meta = {
        "labels": {HASH_LABEL: hashed},
        "ownerReferences": owner("Deployment", "web"),
        "annotations": {REVISION: rev},
    }
    put(cache, "replicasets.apps", name, {"spec": spec, "status": status}, **meta)


def test_a_new_template_starts_empty_beside_the_old_one_then_grows() -> None:
    cache = Cache()
    deployment(cache, 4)
    with_hash(cache, "web-old", "old", 4, 4, "1")
    [create, _] = Deployments().reconcile("default/web", cache, NOW).writes
    assert isinstance(create, Create)
    assert (create.body["spec"]["replicas"], create.body["metadata"]["annotations"]) == (0, {REVISION: "2"})
    with_hash(cache, "web-new", template_hash(TEMPLATE), 0, 0, "2")
    writes = Deployments().reconcile("default/web", cache, NOW).writes
    assert isinstance(writes[0], Patch)
    assert (writes[0].name, writes[0].body) == ("web-new", {"spec": {"replicas": 1}})


def test_going_back_finds_the_old_replicaset_and_raises_its_revision() -> None:
    cache = Cache()
    deployment(cache, 2)
    with_hash(cache, "web-a", template_hash(TEMPLATE), 0, 0, "1")
    with_hash(cache, "web-b", "other", 2, 2, "2")
    writes = Deployments().reconcile("default/web", cache, NOW).writes
    assert "Create" not in [type(write).__name__ for write in writes]
    raised = [
        write.name
        for write in writes
        if isinstance(write, Patch) and "annotations" in write.body.get("metadata", {})
    ]
    assert raised == ["web-a", "web"]


def test_old_replicasets_beyond_the_history_limit_go() -> None:
    cache = Cache()
    deployment(cache, 1, revisionHistoryLimit=1)
    for number in range(3):
        with_hash(cache, f"web-{number}", f"h{number}", 0, 0, str(number + 1))
    with_hash(cache, "web-now", template_hash(TEMPLATE), 1, 1, "4")
    writes = Deployments().reconcile("default/web", cache, NOW).writes
    assert [write.name for write in writes if isinstance(write, Delete)] == ["web-0", "web-1"]


def test_a_quiet_deployment_writes_nothing() -> None:
    cache = Cache()
    deployment(cache, 1)
    with_hash(cache, "web-now", template_hash(TEMPLATE), 1, 1, "1")
    for _ in range(2):
        for write in Deployments().reconcile("default/web", cache, NOW).writes:
            assert isinstance(write, Patch)
            apply(cache, write)
    assert Deployments().reconcile("default/web", cache, NOW + 60).writes == ()


def apply(cache: Cache, write: Patch) -> None:
    key = f"{write.namespace}/{write.name}" if write.namespace else write.name
    view = cache.get(write.resource, key)
    tree = _merge(msgspec.to_builtins(view), dict(write.body))
    tree["metadata"]["resourceVersion"] = str(next(versions))
    cache.told(write.resource, convert_object(kind_of(write.resource), tree))


def _merge(tree: Tree, patch: Tree) -> Tree:
    merged = {**tree}
    for key, value in patch.items():
        merged[key] = _merge(tree.get(key) or {}, value) if isinstance(value, dict) else value
    return merged


# -- StatefulSet


def stateful_set(cache: Cache, replicas: int, **spec: Any) -> Whole:
    body = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE, "serviceName": "db", **spec}
    view = put(cache, "statefulsets.apps", "db", {"spec": body})
    assert isinstance(view, Whole)
    return view


def test_statefulset_makes_claims_then_pods_in_order() -> None:
    cache = Cache()
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    view = stateful_set(cache, 2, volumeClaimTemplates=[claim])
    claims = [
        write
        for write in StatefulSets().reconcile("default/db", cache, NOW).writes
        if isinstance(write, Create)
    ]
    assert [write.body["metadata"]["name"] for write in claims] == ["data-db-0", "data-db-1"]
    for write in claims:
        put(cache, "persistentvolumeclaims", write.body["metadata"]["name"])
    [create, _] = StatefulSets().reconcile("default/db", cache, NOW).writes
    assert isinstance(create, Create)
    assert create.body["metadata"]["name"] == "db-0"
    assert create.body["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    ]
    mine = {
        "ownerReferences": owner("StatefulSet", "db"),
        "labels": {"controller-revision-hash": revision(view)},
    }
    pod(cache, "db-0", **mine)
    assert "Create" not in kinds_of(StatefulSets().reconcile("default/db", cache, NOW))
    pod(cache, "db-0", ready=True, **mine)
    created = [
        write.body["metadata"]["name"]
        for write in StatefulSets().reconcile("default/db", cache, NOW).writes
        if isinstance(write, Create)
    ]
    assert created == ["db-1"]


def test_statefulset_scales_down_and_updates_from_the_top() -> None:
    cache = Cache()
    view = stateful_set(cache, 2)
    good = {"controller-revision-hash": revision(view)}
    for number in range(3):
        pod(
            cache,
            f"db-{number}",
            ready=True,
            labels=good if number else {"controller-revision-hash": "old"},
            ownerReferences=owner("StatefulSet", "db"),
        )
    plan = StatefulSets().reconcile("default/db", cache, NOW)
    assert [write.name for write in plan.writes if isinstance(write, Delete)] == ["db-2"]
    cache.told_deleted("pods", cache.get("pods", "default/db-2"))
    plan = StatefulSets().reconcile("default/db", cache, NOW)
    assert [write.name for write in plan.writes if isinstance(write, Delete)] == ["db-0"]


# -- Garbage


def collect(cache: Cache, key: str) -> Plan:
    return Garbage().reconcile(key, cache, NOW)


def test_dependents_of_a_dead_owner_are_collected() -> None:
    cache = Cache()
    gone = replica_set(cache, 1)
    pod(cache, "a", ownerReferences=owner("ReplicaSet", "web"))
    assert collect(cache, "pods|default/a").writes == ()
    cache.told_deleted("replicasets.apps", gone)
    assert list(Garbage().keys(Moved("replicasets.apps", gone, None), cache)) == ["pods|default/a"]
    assert isinstance(collect(cache, "pods|default/a").writes[0], Collect)


def test_an_owner_of_the_same_name_with_another_uid_is_dead() -> None:
    cache = Cache()
    replica_set(cache, 1, uid="other")
    pod(cache, "a", ownerReferences=owner("ReplicaSet", "web"))
    assert isinstance(collect(cache, "pods|default/a").writes[0], Collect)


def test_one_living_owner_keeps_the_object() -> None:
    cache = Cache()
    replica_set(cache, 1)
    refs = [*owner("ReplicaSet", "web"), {**owner("ReplicaSet", "dead")[0], "controller": False}]
    pod(cache, "a", ownerReferences=refs)
    [patch] = collect(cache, "pods|default/a").writes
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["ownerReferences"] == [{"$patch": "delete", "uid": "uid-dead"}]


def test_owners_of_unknown_kinds_count_as_alive() -> None:
    cache = Cache()
    pod(cache, "a", ownerReferences=owner("Workflow", "w", "example.com/v1"))
    assert collect(cache, "pods|default/a").writes == ()


def test_foreground_waits_for_dependents() -> None:
    cache = Cache()
    replica_set(cache, 1, deletionTimestamp="2023-11-14T22:13:20Z", finalizers=["foregroundDeletion"])
    dependent = pod(cache, "a", ownerReferences=owner("ReplicaSet", "web"))
    assert kinds_of(collect(cache, "replicasets.apps|default/web")) == ["Delete"]
    cache.told_deleted("pods", dependent)
    keys = list(Garbage().keys(Moved("pods", dependent, None), cache))
    assert keys == ["replicasets.apps|default/web"]
    [patch] = collect(cache, keys[0]).writes
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["finalizers"] == []


def test_orphan_takes_the_references_off_first() -> None:
    cache = Cache()
    replica_set(cache, 1, deletionTimestamp="2023-11-14T22:13:20Z", finalizers=["orphan"])
    dependent = pod(cache, "a", ownerReferences=owner("ReplicaSet", "web"))
    [patch] = collect(cache, "replicasets.apps|default/web").writes
    assert isinstance(patch, Patch)
    assert (patch.name, patch.strategic) == ("a", True)
    cache.told_deleted("pods", dependent)
    [patch] = collect(cache, "replicasets.apps|default/web").writes
    assert isinstance(patch, Patch)
    assert patch.name == "web"


def test_a_terminating_namespace_is_emptied() -> None:
    cache = Cache()
    put(cache, "namespaces", "shop", deletionTimestamp="2023-11-14T22:13:20Z")
    put(cache, "namespaces", "live")
    assert Namespaces().reconcile("shop", cache, NOW).writes == (Empty("shop"),)
    assert Namespaces().reconcile("live", cache, NOW).writes == ()


# -- PodDisruptionBudget


def budget(cache: Cache, status: Tree | None = None, **spec: Any) -> None:
    tree = {"spec": {"selector": SELECTOR, **spec}, "status": status or {}}
    put(cache, "poddisruptionbudgets.policy", "web", tree)


def budget_status(cache: Cache) -> Tree:
    [patch] = Budgets().reconcile("default/web", cache, NOW).writes
    assert isinstance(patch, Patch)
    return patch.body["status"]


def test_budgets_by_number_and_share() -> None:
    cache = Cache()
    replica_set(cache, 4)
    for number in range(4):
        mine = {"labels": {"app": "web"}, "ownerReferences": owner("ReplicaSet", "web")}
        pod(cache, f"p{number}", ready=number != 0, **mine)
    for spec, expected in (
        ({"minAvailable": 2}, (4, 3, 2, 1)),
        ({"minAvailable": "75%"}, (4, 3, 3, 0)),
        ({"maxUnavailable": 1}, (4, 3, 3, 0)),
        ({"maxUnavailable": "50%"}, (4, 3, 2, 1)),
    ):
        budget(cache, **spec)
        status = budget_status(cache)
        found = tuple(
            status[name]
            for name in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        )
        assert found == expected, spec


def test_a_disrupted_pod_counts_as_gone_for_two_minutes() -> None:
    cache = Cache()
    pod(cache, "p0", ready=True, labels={"app": "web"})
    pod(cache, "p1", ready=True, labels={"app": "web"})
    before = {"disruptedPods": {"p0": "2023-11-14T22:13:00Z", "p1": "2023-11-14T22:00:00Z"}}
    budget(cache, before, minAvailable=1)
    status = budget_status(cache)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)
    assert status["disruptedPods"] == {"p0": "2023-11-14T22:13:00Z", "p1": None}


# -- pods of lost nodes


def test_pods_of_a_node_that_stays_away_are_removed() -> None:
    cache = Cache()
    controller = LostPods(20.0)
    pod(cache, "a", node="n1", ready=True)
    first = controller.reconcile("n1", cache, NOW)
    assert (first.writes, first.requeue_after) == ((), 20.0)
    [delete] = controller.reconcile("n1", cache, NOW + 20).writes
    assert isinstance(delete, Delete)
    assert delete.grace_seconds == 0


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    cache = Cache()
    controller = LostPods(20.0)
    pod(cache, "a", node="n1", ready=True)
    controller.reconcile("n1", cache, NOW)
    put(cache, "nodes", "n1")
    assert controller.reconcile("n1", cache, NOW + 30).writes == ()


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
