"""Bindings: a pod gets its node once, and only as it was meant."""

from __future__ import annotations

from typing import Any

import pytest

from restkit import PODS, Api, container


@pytest.fixture
def api() -> Api:
    api = Api()
    api.pod("p")
    return api


def test_a_binding_sets_node_and_condition_and_clears_the_nomination(api: Api) -> None:
    api.set_status("p", {"nominatedNodeName": "n0"})
    answer = api.bind("p", "n1")
    assert (answer.status, answer.body["status"]) == (201, "Success")
    pod = api.get(f"{PODS}/p").body
    assert pod["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in pod["status"]
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"].startswith("2027-")
    assert pod["metadata"]["generation"] == 1


def test_the_collection_of_bindings_works_too(api: Api) -> None:
    path = "/api/v1/namespaces/default/bindings"
    api.create(path, {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}})
    assert api.get(f"{PODS}/p").body["spec"]["nodeName"] == "n1"
    assert api.call("POST", path, {"target": {"name": "n1"}}).status == 400
    assert api.get(path).status == 405


def test_labels_and_annotations_of_the_binding_are_merged(api: Api) -> None:
    api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}})
    body = {"metadata": {"labels": {"b": "2"}, "annotations": {"c": "3"}}, "target": {"name": "n1"}}
    assert api.call("POST", f"{PODS}/p/binding", body).status == 201
    meta = api.get(f"{PODS}/p").body["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"a": "1", "b": "2"}, {"c": "3"})


def conflict(answer: Any) -> str:
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.message.startswith('Operation cannot be fulfilled on pods/binding "p": ')
    return str(answer.message.split('": ', 1)[1])


def test_a_bound_pod_is_not_bound_again(api: Api) -> None:
    api.bind("p", "n1")
    before = api.store.version
    assert conflict(api.bind("p", "n2")) == 'pod p is already assigned to node "n1"'
    assert conflict(api.bind("p", "n1")) == 'pod p is already assigned to node "n1"'
    assert api.store.version == before


def test_a_pod_that_is_going_is_not_bound(api: Api) -> None:
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": ["x/y"]}})
    api.call("DELETE", f"{PODS}/p")
    assert conflict(api.bind("p", "n1")) == "pod p is being deleted, cannot be assigned to a host"


def test_a_gated_pod_is_not_bound(api: Api) -> None:
    api.call("DELETE", f"{PODS}/p")
    spec = {"containers": [container()], "schedulingGates": [{"name": "x"}]}
    api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert conflict(api.bind("p", "n1")) == "pod p has non-empty .spec.schedulingGates"


def test_uid_and_version_are_preconditions(api: Api) -> None:
    meta = api.get(f"{PODS}/p").body["metadata"]
    assert conflict(api.bind("p", "n1", uid="other")).startswith(
        "Precondition failed: UID in precondition: other"
    )
    assert conflict(api.bind("p", "n1", resourceVersion="1")).startswith(
        "Precondition failed: ResourceVersion"
    )
    assert api.bind("p", "n1", uid=meta["uid"], resourceVersion=meta["resourceVersion"]).status == 201


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"target": {"kind": "Rack", "name": "r"}}, 422, 'target.kind: Unsupported value: "Rack"'),
        ({"target": {"kind": "Node"}}, 422, "target.name: Required value"),
        ({}, 422, "target.name: Required value"),
        ({"metadata": {"name": "q"}, "target": {"name": "n"}}, 400, "name in URL"),
        ({"metadata": {"namespace": "q"}, "target": {"name": "n"}}, 400, "namespace in URL"),
        ({"kind": "Pod", "target": {"name": "n"}}, 400, "expected kind"),
        ({"target": 5}, 400, "cannot be handled as a Binding"),
        (b"{", 400, "cannot be handled as a Binding"),
    ],
)
def test_bad_bindings(api: Api, body: Any, status: int, message: str) -> None:
    answer = api.call("POST", f"{PODS}/p/binding", body)
    assert answer.status == status, answer.body
    assert message in answer.message
    assert "nodeName" not in api.get(f"{PODS}/p").body["spec"]


def test_a_missing_pod_is_not_found(api: Api) -> None:
    answer = api.bind("nobody", "n1")
    assert (answer.status, answer.message) == (404, 'pods "nobody" not found')


def test_a_dry_run_binds_nothing(api: Api) -> None:
    answer = api.call("POST", f"{PODS}/p/binding", {"target": {"name": "n1"}}, dryRun="All")
    assert answer.status == 201
    assert "nodeName" not in api.get(f"{PODS}/p").body["spec"]
