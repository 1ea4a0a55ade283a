"""Deletion: grace, finalizers, preconditions, collections; and eviction, which is a deletion by leave."""

from __future__ import annotations

from typing import Any

import pytest

from restkit import PODS, Api, container

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def api() -> Api:
    return Api()


def delete(api: Api, name: str, **options: Any) -> Any:
    return api.call("DELETE", f"{PODS}/{name}", options or None)


def meta_of(api: Api, name: str) -> Any:
    return api.get(f"{PODS}/{name}").body["metadata"]


def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    api.pod("p")
    answer = delete(api, "p")
    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert api.get(f"{PODS}/p").status == 404


def test_a_bound_pod_waits_for_its_kubelet(api: Api) -> None:
    api.pod("p", node="n1")
    watch = api.watch(PODS, resourceVersion=api.get(PODS).version)
    delete(api, "p")
    meta = meta_of(api, "p")
    assert meta["deletionGracePeriodSeconds"] == 30
    assert meta["deletionTimestamp"] == "2027-01-15T08:00:30Z"
    assert meta["generation"] == 2
    delete(api, "p", gracePeriodSeconds=0)
    assert watch.told() == [("MODIFIED", "p"), ("DELETED", "p")]


def test_a_repeated_deletion_only_shortens_the_grace(api: Api) -> None:
    api.pod("p", node="n1")
    delete(api, "p", gracePeriodSeconds=20)
    api.now += 5
    delete(api, "p", gracePeriodSeconds=60)
    assert meta_of(api, "p")["deletionTimestamp"] == "2027-01-15T08:00:20Z"
    delete(api, "p", gracePeriodSeconds=10)
    meta = meta_of(api, "p")
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (10, "2027-01-15T08:00:10Z")


@pytest.mark.parametrize(("given", "used"), [(5, 5), (-3, 1), (None, 7)])
def test_where_the_grace_comes_from(api: Api, given: int | None, used: int) -> None:
    spec = {"containers": [container()], "terminationGracePeriodSeconds": 7, "nodeName": "n1"}
    api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    delete(api, "p", **({} if given is None else {"gracePeriodSeconds": given}))
    assert meta_of(api, "p")["deletionGracePeriodSeconds"] == used


def test_finished_pods_go_at_once(api: Api) -> None:
    api.pod("p", node="n1")
    api.set_status("p", {"phase": "Succeeded"})
    delete(api, "p")
    assert api.get(f"{PODS}/p").status == 404


def test_the_query_may_carry_the_options(api: Api) -> None:
    api.pod("p", node="n1")
    api.call("DELETE", f"{PODS}/p", gracePeriodSeconds="3")
    assert meta_of(api, "p")["deletionGracePeriodSeconds"] == 3
    assert api.call("DELETE", f"{PODS}/p", gracePeriodSeconds="x").status == 400


def test_finalizers_hold_an_object_until_they_are_gone(api: Api) -> None:
    api.pod("p", finalizers=["x/a", "x/b"])
    delete(api, "p", gracePeriodSeconds=0)
    assert "deletionTimestamp" in meta_of(api, "p")
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": ["x/b"]}})
    assert api.get(f"{PODS}/p").status == 200
    watch = api.watch(PODS, resourceVersion=api.get(PODS).version)
    assert api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}}).status == 200
    assert api.get(f"{PODS}/p").status == 404
    assert watch.told()[-1] == ("DELETED", "p")


def test_a_deletion_mark_cannot_be_written_or_taken_back(api: Api) -> None:
    api.pod("p", node="n1")
    api.patch(f"{PODS}/p", {"metadata": {"deletionTimestamp": "2027-01-01T00:00:00Z"}})
    assert "deletionTimestamp" not in meta_of(api, "p")
    delete(api, "p")
    api.patch(f"{PODS}/p", {"metadata": {"deletionTimestamp": None}})
    assert "deletionTimestamp" in meta_of(api, "p")


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_propagation_policies_become_finalizers(api: Api, policy: str, finalizer: str) -> None:
    api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    answer = api.call("DELETE", "/api/v1/namespaces/default/configmaps/c", {"propagationPolicy": policy})
    assert answer.body["metadata"]["finalizers"] == [finalizer]
    assert "deletionTimestamp" in answer.body["metadata"]


def test_other_kinds_answer_with_a_status(api: Api) -> None:
    api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    answer = api.call("DELETE", "/api/v1/namespaces/default/configmaps/c")
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert answer.body["details"]["kind"] == "configmaps"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ({"preconditions": {"uid": "other"}}, 409, "Precondition failed: UID in precondition: other"),
        ({"preconditions": {"resourceVersion": "1"}}, 409, "Precondition failed: ResourceVersion"),
        ({"propagationPolicy": "Sideways"}, 422, "propagationPolicy"),
        ({"gracePeriodSeconds": "soon"}, 400, "gracePeriodSeconds"),
        ({"kind": "Pod"}, 400, "DeleteOptions"),
    ],
)
def test_refused_deletions(api: Api, options: dict[str, Any], status: int, message: str) -> None:
    api.pod("p")
    answer = delete(api, "p", **options)
    assert answer.status == status, answer.body
    assert message in answer.message
    assert api.get(f"{PODS}/p").status == 200


def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    api.pod("a", labels={"x": "1"})
    api.pod("b", labels={"x": "1"}, node="n1")
    api.pod("c")
    answer = api.call("DELETE", PODS, labelSelector="x=1")
    assert answer.names == ["a", "b"]
    assert api.get(PODS).names == ["b", "c"]
    assert "deletionTimestamp" in meta_of(api, "b")


# eviction


def evict(api: Api, name: str, **body: Any) -> Any:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **body}
    return api.call("POST", f"{PODS}/{name}/eviction", eviction)


def budget(
    api: Api, name: str = "b", *, allowed: int = 0, healthy: int = 2, needed: int = 2, **spec: Any
) -> None:
    selector = {"matchLabels": {"app": "a"}}
    made = api.create(
        BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 2, "selector": selector, **spec}}
    )
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": 2,
        "observedGeneration": made["metadata"]["generation"],
    }
    assert api.patch(f"{BUDGETS}/{name}/status", {"status": status}).status == 200


def running(api: Api, name: str = "p", *, ready: bool = True) -> None:
    api.pod(name, node="n1", labels={"app": "a"})
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    api.set_status(name, {"phase": "Running", "conditions": [condition]})


def test_an_eviction_marks_and_deletes(api: Api) -> None:
    running(api)
    answer = evict(api, "p", deleteOptions={"gracePeriodSeconds": 4})
    assert (answer.status, answer.body["status"]) == (201, "Success")
    pod = api.get(f"{PODS}/p").body
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 4
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (condition["reason"], condition["message"]) == ("EvictionByEvictionAPI", "Eviction API: evicting")


def test_a_budget_without_room_refuses(api: Api) -> None:
    running(api)
    budget(api)
    answer = evict(api, "p")
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = answer.body["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 2 healthy pods and has 2 currently"
    assert "deletionTimestamp" not in meta_of(api, "p")


def test_a_budget_with_room_pays(api: Api) -> None:
    running(api)
    budget(api, allowed=1)
    assert evict(api, "p").status == 201
    status = api.get(f"{BUDGETS}/b").body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]


def test_two_budgets_are_one_too_many(api: Api) -> None:
    running(api)
    budget(api, "b", allowed=1)
    budget(api, "c", allowed=1)
    answer = evict(api, "p")
    assert answer.status == 500
    assert answer.message.startswith("This pod has more than one PodDisruptionBudget")


def test_a_budget_that_is_behind_asks_to_come_back(api: Api) -> None:
    running(api)
    budget(api, allowed=1)
    api.patch(f"{BUDGETS}/b", {"spec": {"minAvailable": 1}})
    answer = evict(api, "p")
    assert (answer.status, answer.headers["retry-after"]) == (429, "10")
    assert answer.body["details"]["retryAfterSeconds"] == 10


def test_pending_and_finished_pods_need_no_leave(api: Api) -> None:
    budget(api)
    api.pod("waits", labels={"app": "a"})
    assert evict(api, "waits").status == 201
    assert api.get(f"{PODS}/waits").status == 404


@pytest.mark.parametrize(
    ("policy", "healthy", "status"),
    [(None, 2, 201), (None, 1, 429), ("IfHealthyBudget", 1, 429), ("AlwaysAllow", 1, 201)],
)
def test_unhealthy_pods_follow_the_budgets_policy(
    api: Api, policy: str | None, healthy: int, status: int
) -> None:
    running(api, ready=False)
    budget(api, healthy=healthy, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    assert evict(api, "p").status == status


def test_eviction_preconditions_and_names(api: Api) -> None:
    running(api)
    budget(api, allowed=1)
    assert evict(api, "p", deleteOptions={"preconditions": {"uid": "other"}}).status == 409
    assert evict(api, "p", deleteOptions={"preconditions": {"resourceVersion": "1"}}).status == 409
    assert api.get(f"{BUDGETS}/b").body["status"]["disruptionsAllowed"] == 1
    assert api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "q"}}).status == 400
    assert evict(api, "nobody").status == 404
    meta = meta_of(api, "p")
    exact = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    assert evict(api, "p", deleteOptions={"preconditions": exact}).status == 201
