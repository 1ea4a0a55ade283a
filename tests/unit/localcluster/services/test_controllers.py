"""Controllers of workloads as pure functions: a cache in, writes out."""

from __future__ import annotations

from typing import Any

import msgspec

from controllerkit import NOW, SELECTOR, TEMPLATE, Tree, kinds_of, owner, pod, put, replica_set, versions
from pilotage.api.decode import convert_object
from pilotage.api.meta import KubeObject
from pilotage.localcluster.controllers.deployments import (
    HASH_LABEL,
    REVISION,
    Deployments,
    template_hash,
)
from pilotage.localcluster.controllers.plan import Create, Delete, Patch
from pilotage.localcluster.controllers.replicasets import ReplicaSets, missed_least_first
from pilotage.localcluster.controllers.statefulsets import StatefulSets, revision
from pilotage.localcluster.objects import Cache, Moved, Whole, kind_of

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
