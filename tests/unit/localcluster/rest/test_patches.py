"""Patches in all four forms, and the rules of strategic merging."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.localcluster.rest import strategic
from pilotage.localcluster.rest.patching import merge
from restkit import APPLY, JSON_PATCH, MERGE, PODS, STRATEGIC, Api, container

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
def api() -> Api:
    api = Api()
    api.pod("p", labels={"a": "b"})
    return api


def spec(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic.apply("V1PodSpec", target, patch)


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a"], {"a": 1}, {"a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ],
)
def test_merge_patch_follows_its_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


def test_keyed_lists_merge_by_key() -> None:
    target = {
        "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]
    }
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]}
    result = spec(target, patch)["containers"]
    assert names(result) == ["a", "b", "c"]
    assert result[0]["image"] == "1"
    assert names(result[0]["env"]) == ["X", "Y"]


def test_other_lists_are_replaced() -> None:
    assert spec({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]})["tolerations"] == [
        {"key": "b"}
    ]
    target = {"containers": [{"name": "a", "command": ["x", "y"]}]}
    result = spec(target, {"containers": [{"name": "a", "command": ["z"]}]})
    assert result["containers"][0]["command"] == ["z"]


@pytest.mark.parametrize(
    ("field", "key"),
    [("hostAliases", "ip"), ("topologySpreadConstraints", "topologyKey"), ("schedulingGates", "name")],
)
def test_merge_keys_of_pod_lists(field: str, key: str) -> None:
    result = spec({field: [{key: "a", "x": 1}]}, {field: [{key: "a", "y": 2}, {key: "b"}]})
    assert result[field] == [{key: "a", "x": 1, "y": 2}, {key: "b"}]


def test_ports_of_containers_and_services_have_their_own_keys() -> None:
    ports = strategic.apply(
        "V1Container",
        {"ports": [{"containerPort": 1, "name": "a"}]},
        {"ports": [{"containerPort": 1, "name": "b"}]},
    )
    assert ports["ports"] == [{"containerPort": 1, "name": "b"}]
    ports = strategic.apply(
        "V1ServiceSpec", {"ports": [{"port": 1, "name": "a"}]}, {"ports": [{"port": 1, "name": "b"}]}
    )
    assert ports["ports"] == [{"port": 1, "name": "b"}]


def test_the_delete_directive_removes_an_item() -> None:
    target = {"containers": [{"name": "a"}, {"name": "b"}]}
    assert names(spec(target, {"containers": [{"name": "a", "$patch": "delete"}]})["containers"]) == ["b"]


def test_the_replace_directive_replaces_list_and_object() -> None:
    target = {"containers": [{"name": "a"}, {"name": "b"}], "securityContext": {"runAsUser": 1}}
    patch = {
        "containers": [{"$patch": "replace"}, {"name": "z"}],
        "securityContext": {"$patch": "replace", "runAsGroup": 2},
    }
    assert spec(target, patch) == {"containers": [{"name": "z"}], "securityContext": {"runAsGroup": 2}}


def test_the_delete_directive_empties_an_object() -> None:
    assert spec({"securityContext": {"runAsUser": 1}}, {"securityContext": {"$patch": "delete"}}) == {
        "securityContext": {}
    }


def test_retain_keys_drops_the_other_keys() -> None:
    target = {"volumes": [{"name": "v", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}
    assert spec(target, patch)["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_set_element_order_orders_named_items_and_leaves_others_in_place() -> None:
    target = {"containers": [{"name": name} for name in ("a", "b", "c", "server")]}
    patch = {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}],
        "containers": [{"name": "d"}],
    }
    result = names(spec(target, patch)["containers"])
    assert [name for name in result if name in "acd"] == ["c", "d", "a"]
    assert set(result) == {"a", "b", "c", "d", "server"}


def test_finalizers_are_a_set_and_lose_items_by_directive() -> None:
    meta = strategic.apply("V1ObjectMeta", {"finalizers": ["x/a", "x/b"]}, {"finalizers": ["x/b", "x/c"]})
    assert meta["finalizers"] == ["x/a", "x/b", "x/c"]
    meta = strategic.apply("V1ObjectMeta", meta, {"$deleteFromPrimitiveList/finalizers": ["x/a"]})
    assert meta == {"finalizers": ["x/b", "x/c"]}


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"image": "x"}]},
        {"containers": ["x"]},
        {"securityContext": {"$patch": "explode"}},
        {"$retainKeys": "x"},
        {"$deleteFromPrimitiveList/args": "x"},
    ],
)
def test_broken_strategic_patches_name_the_fault(patch: dict[str, Any]) -> None:
    with pytest.raises(strategic.PatchError):
        spec({"containers": [{"name": "a"}]}, patch)


def test_conditions_merge_by_type_over_http(api: Api) -> None:
    api.set_status("p", {"conditions": [{"type": "Ready", "status": "False"}]})
    pod = api.set_status(
        "p", {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    )
    assert [c["type"] for c in pod.body["status"]["conditions"]] == ["Ready", "PodScheduled"]


def test_json_patch(api: Api) -> None:
    patch = [
        {"op": "test", "path": "/metadata/labels/a", "value": "b"},
        {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    assert api.patch(f"{PODS}/p", patch, JSON_PATCH).body["metadata"]["labels"] == {"x/y": "z"}


@pytest.mark.parametrize(
    ("patch", "media", "status"),
    [
        ([{"op": "test", "path": "/metadata/name", "value": "q"}], JSON_PATCH, 422),
        ([{"op": "remove", "path": "/metadata/nothing"}], JSON_PATCH, 422),
        ([{"op": "explode", "path": "/x"}], JSON_PATCH, 400),
        ({"a": 1}, JSON_PATCH, 400),
        ([1], MERGE, 400),
        (b"{", MERGE, 400),
        ({"metadata": {"name": "q"}}, MERGE, 400),
        ({"metadata": {"resourceVersion": "1"}}, MERGE, 409),
        ({"metadata": {"uid": "other"}}, MERGE, 409),
        ({"spec": {"containers": [{"image": "x"}]}}, STRATEGIC, 422),
        ({}, "application/json", 415),
    ],
)
def test_bad_patches(api: Api, patch: Any, media: str, status: int) -> None:
    before = api.store.version
    answer = api.patch(f"{PODS}/p", patch, media)
    assert answer.status == status, answer.body
    assert api.store.version == before


def test_an_empty_patch_is_no_change(api: Api) -> None:
    before = api.store.version
    for media in (MERGE, STRATEGIC):
        assert api.patch(f"{PODS}/p", {}, media).status == 200
    assert api.store.version == before


def test_a_patch_with_the_right_version_passes(api: Api) -> None:
    version = api.get(f"{PODS}/p").version
    patch = {"metadata": {"resourceVersion": version, "labels": {"c": "d"}}}
    assert api.patch(f"{PODS}/p", patch).body["metadata"]["labels"] == {"a": "b", "c": "d"}


# server-side apply


def config(replicas: int | None = 3, image: str = "app:1") -> dict[str, Any]:
    labels = {"app": "a"}
    made: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(image=image)]}},
        },
    }
    if replicas is not None:
        made["spec"]["replicas"] = replicas
    return made


def apply(api: Api, body: Any, manager: str = "me", **query: str) -> Any:
    return api.patch(f"{DEPLOYMENTS}/d", body, APPLY, fieldManager=manager, **query)


def test_apply_creates_and_is_idempotent(api: Api) -> None:
    created = apply(api, config())
    assert created.status == 201, created.body
    assert created.body["metadata"]["managedFields"][0]["operation"] == "Apply"
    again = apply(api, config())
    assert (again.status, again.version) == (200, created.version)


def test_apply_needs_a_manager_and_the_right_kind(api: Api) -> None:
    assert api.patch(f"{DEPLOYMENTS}/d", config(), APPLY).status == 422
    assert apply(api, {**config(), "kind": "Pod"}).status == 400
    assert apply(api, b"- 1").status == 400


def test_a_field_of_another_manager_is_a_conflict_unless_forced(api: Api) -> None:
    apply(api, config(replicas=3))
    answer = apply(api, config(replicas=5), "other")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.message.startswith("Apply failed with 1 conflict: ")
    cause = answer.body["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.replicas")
    assert apply(api, config(replicas=3), "other").status == 200
    assert apply(api, config(replicas=5), "other", force="true").body["spec"]["replicas"] == 5
    assert apply(api, config(replicas=3)).status == 409


def test_a_field_that_is_no_longer_applied_goes(api: Api) -> None:
    first = config()
    first["metadata"]["labels"] = {"keep": "1", "drop": "1"}
    apply(api, first)
    api.patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"mine": "1"}}}, fieldManager="hand")
    first["metadata"]["labels"] = {"keep": "1"}
    assert apply(api, first).body["metadata"]["labels"] == {"keep": "1", "mine": "1"}


def test_an_item_that_is_no_longer_applied_goes_from_its_list(api: Api) -> None:
    body = config()
    body["spec"]["template"]["spec"]["containers"].append(container("side"))
    apply(api, body)
    containers = apply(api, config()).body["spec"]["template"]["spec"]["containers"]
    assert names(containers) == ["c"]


def test_an_update_takes_what_it_changes(api: Api) -> None:
    apply(api, config(replicas=3))
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 7}}, fieldManager="scaler")
    answer = apply(api, config(replicas=3))
    assert 'conflict with "scaler"' in answer.message
    assert apply(api, config(replicas=None)).body["spec"]["replicas"] == 7


def test_conflicts_name_list_items_by_key(api: Api) -> None:
    apply(api, config(image="app:1"))
    answer = apply(api, config(image="app:2"), "other")
    assert answer.body["details"]["causes"][0]["field"] == '.spec.template.spec.containers[name="c"].image'


def test_writers_without_a_manager_are_not_tracked(api: Api) -> None:
    assert "managedFields" not in api.get(f"{PODS}/p").body["metadata"]
    tracked = api.patch(f"{PODS}/p", {"metadata": {"labels": {"x": "y"}}}, fieldManager="hand").body
    assert tracked["metadata"]["managedFields"][0]["fieldsV1"] == {"f:metadata": {"f:labels": {"f:x": {}}}}
