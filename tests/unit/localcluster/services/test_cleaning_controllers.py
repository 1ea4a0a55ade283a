"""Controllers that clean up and count: garbage, budgets, pods of lost nodes."""

from __future__ import annotations

from typing import Any

from controllerkit import NOW, SELECTOR, Tree, kinds_of, owner, pod, put, replica_set
from pilotage.localcluster.controllers.budgets import Budgets
from pilotage.localcluster.controllers.garbage import Collect, Garbage
from pilotage.localcluster.controllers.namespaces import Empty, Namespaces
from pilotage.localcluster.controllers.plan import Delete, Patch, Plan
from pilotage.localcluster.controllers.podgc import LostPods
from pilotage.localcluster.objects import Cache, Moved

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
