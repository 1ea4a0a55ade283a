"""Create, read, replace: what the server adds, keeps and refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from restkit import JSON, PODS, Api, container


@pytest.fixture
def api() -> Api:
    return Api()


def test_the_system_namespaces_and_classes_exist(api: Api) -> None:
    names = api.get("/api/v1/namespaces").names
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    classes = api.get("/apis/scheduling.k8s.io/v1/priorityclasses").names
    assert classes == ["system-cluster-critical", "system-node-critical"]


def test_create_sets_what_the_server_owns(api: Api) -> None:
    meta = {"name": "p", "uid": "mine", "generation": 7, "creationTimestamp": "1999-01-01T00:00:00Z"}
    pod = api.create(
        PODS, {"metadata": meta, "spec": {"containers": [container()]}, "status": {"phase": "Running"}}
    )
    assert pod["kind"] == "Pod"
    assert pod["metadata"]["uid"] != "mine"
    assert pod["metadata"]["generation"] == 1
    assert pod["metadata"]["creationTimestamp"].startswith("2027-")
    assert pod["metadata"]["resourceVersion"].isdigit()
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_names_are_generated_with_five_characters_of_the_alphabet(api: Api) -> None:
    made = api.create(PODS, {"metadata": {"generateName": "x" * 70}, "spec": {"containers": [container()]}})
    name = made["metadata"]["name"]
    assert re.fullmatch(r"x{58}[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    again = api.create(PODS, {"metadata": {"generateName": "x" * 70}, "spec": {"containers": [container()]}})
    assert again["metadata"]["name"] != name


def test_two_servers_with_one_seed_make_the_same_objects() -> None:
    bodies = [
        Api().create(PODS, {"metadata": {"generateName": "a-"}, "spec": {"containers": [container()]}})
    ] * 2
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (
            PODS,
            {"metadata": {}, "spec": {"containers": [container()]}},
            422,
            "name or generateName is required",
        ),
        (PODS, {"metadata": {"name": "p", "resourceVersion": "3"}}, 400, "resourceVersion should not be set"),
        (PODS, {"metadata": {"name": "p", "namespace": "other"}}, 400, "namespace of the provided object"),
        (PODS, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "p"}}, 400, "Node"),
        (PODS, {"kind": "Pod", "apiVersion": "v2", "metadata": {"name": "p"}}, 400, "API version"),
        (PODS, b"{not json", 400, "json"),
        (PODS, b"[]", 400, "one object"),
        (PODS, {"metadata": {"name": 5}}, 400, "cannot unmarshal number"),
        (PODS, {"metadata": {"name": "p", "labels": {"a": 1}}}, 400, "cannot unmarshal number"),
        (
            "/api/v1/namespaces/nowhere/pods",
            {"metadata": {"name": "p"}},
            404,
            'namespaces "nowhere" not found',
        ),
        ("/api/v1/pods", {"metadata": {"name": "p"}}, 400, "empty namespace"),
        ("/api/v1/nodes", {"metadata": {"name": "n", "namespace": "x"}}, 400, "namespace"),
    ],
)
def test_bad_creates(api: Api, path: str, body: Any, status: int, message: str) -> None:
    answer = api.call("POST", path, body)
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (status, "Status", "Failure")
    assert message in answer.message
    api.check()


def test_unknown_media_and_methods(api: Api) -> None:
    assert api.call("POST", PODS, b"x", media="text/plain").status == 415
    assert api.call("PUT", PODS, {}).status == 405
    assert api.call("GET", "/api/v1/unknown").status == 404
    assert api.call("GET", f"{PODS}/p/nonsense").status == 404
    assert api.call("GET", f"{PODS}/p/log").status == 405
    assert api.get(PODS, accept="text/html").status == 406


def test_an_existing_name_is_refused(api: Api) -> None:
    api.pod("p")
    answer = api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container()]}})
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'pods "p" already exists'


def test_yaml_is_read_with_jsons_types(api: Api) -> None:
    text = b"metadata: {name: c}\ndata: {when: 2026-01-01, flag: 'on'}\n"
    answer = api.call("POST", "/api/v1/namespaces/default/configmaps", text, media="application/yaml")
    assert answer.status == 201, answer.body
    assert answer.body["data"] == {"when": "2026-01-01", "flag": "on"}
    bad = api.call("POST", "/api/v1/namespaces/default/configmaps", b"a: [", media="application/yaml")
    assert bad.status == 400


def test_replace_keeps_status_and_what_the_server_owns(api: Api) -> None:
    pod = api.pod("p")
    pod["metadata"] |= {"labels": {"a": "b"}, "creationTimestamp": None, "generation": 9}
    pod["status"] = {"phase": "Failed"}
    answer = api.call("PUT", f"{PODS}/p", pod)
    assert answer.status == 200, answer.body
    assert answer.body["metadata"]["labels"] == {"a": "b"}
    assert answer.body["metadata"]["generation"] == 1
    assert answer.body["status"]["phase"] == "Pending"


def test_replace_with_an_old_version_or_another_uid_conflicts(api: Api) -> None:
    pod = api.pod("p")
    api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}})
    old = api.call("PUT", f"{PODS}/p", pod)
    assert (old.status, old.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in old.message
    del pod["metadata"]["resourceVersion"]
    assert api.call("PUT", f"{PODS}/p", pod).status == 200
    pod["metadata"]["uid"] = "other"
    assert "Precondition failed: UID" in api.call("PUT", f"{PODS}/p", pod).message
    pod["metadata"]["name"] = "q"
    assert api.call("PUT", f"{PODS}/p", pod).status == 400


def test_a_replace_that_changes_nothing_keeps_the_version(api: Api) -> None:
    pod = api.pod("p")
    watch = api.watch(PODS, resourceVersion=pod["metadata"]["resourceVersion"])
    answer = api.call("PUT", f"{PODS}/p", pod)
    assert answer.version == pod["metadata"]["resourceVersion"]
    assert watch.events() == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"holderIdentity": "me"}}),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        ),
    ],
)
def test_some_kinds_want_a_version_in_an_update(api: Api, path: str, body: dict[str, Any]) -> None:
    made = api.create(path, {"metadata": {"name": "x"}, **body})
    del made["metadata"]["resourceVersion"]
    answer = api.call("PUT", f"{path}/x", made)
    assert answer.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.message


def test_generation_counts_changes_of_spec(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    api.create(
        path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    )
    api.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
    assert api.get(f"{path}/d").body["metadata"]["generation"] == 1
    api.patch(f"{path}/d", {"spec": {"replicas": 3}})
    assert api.get(f"{path}/d").body["metadata"]["generation"] == 2
    api.patch(f"{path}/d/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}})
    deployment = api.get(f"{path}/d").body
    assert (deployment["metadata"]["generation"], deployment["spec"]["replicas"]) == (2, 3)
    assert deployment["status"]["replicas"] == 3


def test_status_writes_leave_the_rest_alone(api: Api) -> None:
    api.pod("p")
    body = {
        "metadata": {
            "labels": {"a": "b"},
            "ownerReferences": [{"uid": "u", "kind": "X", "name": "x", "apiVersion": "v1"}],
        },
        "spec": {"schedulerName": "other"},
        "status": {"phase": "Running"},
    }
    pod = api.patch(f"{PODS}/p/status", body, "application/merge-patch+json").body
    assert pod["status"]["phase"] == "Running"
    assert pod["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in pod["metadata"]
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_a_pod_status_keeps_what_its_writer_leaves_out(api: Api) -> None:
    pod = api.pod("p")
    api.set_status(
        "p",
        {
            "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 1}],
        },
    )
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    del pod["metadata"]["resourceVersion"]
    status = api.call("PUT", f"{PODS}/p/status", pod).body["status"]
    assert (status["qosClass"], status["observedGeneration"]) == ("BestEffort", 1)
    assert status["conditions"] == [{"type": "Ready", "status": "True", "observedGeneration": 1}]


def test_nodes_may_be_created_with_a_status(api: Api) -> None:
    node = api.create("/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2.0"}}})
    assert node["status"]["capacity"] == {"cpu": "2"}
    changed = api.patch("/api/v1/nodes/n", {"status": {"capacity": {"cpu": "9"}}}).body
    assert changed["status"]["capacity"] == {"cpu": "2"}


def test_dry_run_answers_and_stores_nothing(api: Api) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container()]}}
    before = api.store.version
    assert api.call("POST", PODS, body, dryRun="All").status == 201
    assert api.get(f"{PODS}/p").status == 404
    api.pod("q")
    assert api.patch(f"{PODS}/q", {"metadata": {"labels": {"a": "b"}}}, dryRun="All").body["metadata"][
        "labels"
    ]
    assert "labels" not in api.get(f"{PODS}/q").body["metadata"]
    assert api.call("DELETE", f"{PODS}/q", dryRun="All").status == 200
    assert api.get(f"{PODS}/q").status == 200
    assert api.store.version == before + 1
    assert api.call("POST", PODS, body, dryRun="Some").status == 422


def test_unknown_fields_are_refused_dropped_or_kept_as_asked(api: Api) -> None:
    def body(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"containers": [container(imgae="x")], "foo": 1}}

    strict = api.call("POST", PODS, body("a"), fieldValidation="Strict")
    assert strict.status == 400
    assert (
        'strict decoding error: unknown field "spec.containers[0].imgae", unknown field "spec.foo"'
        in strict.message
    )
    warned = api.call("POST", PODS, body("b"), fieldValidation="Warn")
    assert warned.status == 201
    assert "foo" not in warned.body["spec"]
    assert 'unknown field \\"spec.foo\\"' in warned.headers["warning"]
    assert api.call("POST", PODS, body("c"), fieldValidation="Ignore").status == 201
    assert api.call("POST", PODS, body("d"), fieldValidation="Whatever").status == 422


def test_events_are_one_store_with_two_faces(api: Api) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    api.create(
        path,
        {
            "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "Scheduled",
            "note": "ok",
            "type": "Normal",
            "action": "Binding",
            "eventTime": "2026-01-01T00:00:00.000001Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "i",
        },
    )
    core = api.get("/api/v1/namespaces/default/events/e").body
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "ok", "p")
    assert core["reportingComponent"] == "default-scheduler"
    patched = api.patch(
        f"{path}/e", {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    )
    assert (patched.body["apiVersion"], patched.body["note"]) == ("events.k8s.io/v1", "ok")
    chosen = api.get(path, fieldSelector="regarding.name=p,reason=Scheduled")
    assert chosen.names == ["e"]
    assert api.get("/api/v1/events", fieldSelector="involvedObject.name=q").names == []


def test_writing_into_a_terminating_namespace_is_forbidden(api: Api) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    gone = api.call("DELETE", "/api/v1/namespaces/team")
    assert gone.body["status"]["phase"] == "Terminating"
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container()]}}
    answer = api.call("POST", "/api/v1/namespaces/team/pods", body)
    assert answer.status == 403
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    namespace = api.get("/api/v1/namespaces/team").body
    namespace["spec"]["finalizers"] = []
    assert api.call("PUT", "/api/v1/namespaces/team/finalize", namespace).status == 200
    assert api.get("/api/v1/namespaces/team").status == 404


def test_services_get_addresses(api: Api) -> None:
    path = "/api/v1/namespaces/default/services"
    made = [
        api.create(path, {"metadata": {"name": n}, "spec": {"ports": [{"port": 80}]}}) for n in ("a", "b")
    ]
    addresses = {service["spec"]["clusterIP"] for service in made}
    assert len(addresses) == 2
    headless = api.create(
        path, {"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}
    )
    assert headless["spec"]["clusterIP"] == "None"
    outside = api.create(
        path, {"metadata": {"name": "o"}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}
    )
    assert 30000 <= outside["spec"]["ports"][0]["nodePort"] <= 32767


def test_reviews_are_answered_and_not_kept(api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = api.create(path, {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    assert review["status"]["allowed"] is True
    assert api.get(path).status == 405


def test_an_endless_nesting_is_one_bad_request(api: Api) -> None:
    body = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    assert api.call("POST", PODS, body, media=JSON).status in (400, 500)
