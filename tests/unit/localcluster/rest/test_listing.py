"""Lists: versions, pages, selectors, forms."""

from __future__ import annotations

import pytest

from restkit import PODS, TABLE, Api


@pytest.fixture
def api() -> Api:
    api = Api()
    for name in "abcde":
        api.pod(name, labels={"n": name, "half": "first" if name < "c" else "second"})
    return api


def test_pages_show_one_moment(api: Api) -> None:
    first = api.get(PODS, limit="2")
    assert first.names == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    api.call("DELETE", f"{PODS}/c")
    api.pod("cc")
    api.patch(f"{PODS}/d", {"metadata": {"labels": {"new": "1"}}})
    second = api.get(PODS, limit="2", **{"continue": first.body["metadata"]["continue"]})
    assert second.names == ["c", "d"]
    assert second.version == first.version
    assert "new" not in second.body["items"][1]["metadata"]["labels"]
    last = api.get(PODS, limit="2", **{"continue": second.body["metadata"]["continue"]})
    assert last.names == ["e"]
    assert "continue" not in last.body["metadata"]
    assert api.get(PODS).names == ["a", "b", "cc", "d", "e"]


def test_pages_with_a_selector(api: Api) -> None:
    first = api.get(PODS, limit="2", labelSelector="half=second")
    assert first.names == ["c", "d"]
    assert "remainingItemCount" not in first.body["metadata"]
    token = first.body["metadata"]["continue"]
    assert api.get(PODS, limit="2", labelSelector="half=second", **{"continue": token}).names == ["e"]
    assert "continue" not in api.get(PODS, limit="3", labelSelector="half=second").body["metadata"]


def test_an_expired_token_answers_410_with_a_way_on(api: Api) -> None:
    token = api.get(PODS, limit="2").body["metadata"]["continue"]
    api.call("DELETE", f"{PODS}/c")
    api.store.compact()
    answer = api.get(PODS, limit="2", **{"continue": token})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    onward = answer.body["metadata"]["continue"]
    assert api.get(PODS, limit="2", **{"continue": onward}).names == ["d", "e"]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"continue": "nonsense"}, 400, "continue key is not valid"),
        ({"limit": "-1"}, 400, "limit"),
        ({"resourceVersion": "abc"}, 400, "invalid syntax"),
        ({"resourceVersion": "99999"}, 504, "Too large resource version: 99999"),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422, 'forbidden for resourceVersion "0"'),
        ({"resourceVersionMatch": "About", "resourceVersion": "3"}, 422, "supported values"),
        ({"resourceVersionMatch": "Exact", "continue": "x"}, 422, "forbidden when continue is provided"),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
        ({"watch": "maybe"}, 400, "invalid syntax"),
    ],
)
def test_refused_lists(api: Api, query: dict[str, str], status: int, message: str) -> None:
    answer = api.get(PODS, **query)
    assert answer.status == status, answer.body
    assert message in answer.message


def test_a_version_too_large_says_so_by_cause(api: Api) -> None:
    answer = api.get(PODS, resourceVersion="99999")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["retry-after"] == "1"


def test_exact_and_not_older(api: Api) -> None:
    version = api.get(PODS).version
    api.pod("f")
    exact = api.get(PODS, resourceVersion=version, resourceVersionMatch="Exact")
    assert (exact.names, exact.version) == (list("abcde"), version)
    assert len(api.get(PODS, resourceVersion=version, resourceVersionMatch="NotOlderThan").names) == 6
    assert len(api.get(PODS, resourceVersion="0").names) == 6
    api.store.compact()
    assert api.get(PODS, resourceVersion=version, resourceVersionMatch="Exact").status == 410


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("n=a", "a"),
        ("n==a", "a"),
        ("n!=a", "bcde"),
        ("n in (a,b),half", "ab"),
        ("n notin (a,b)", "cde"),
        ("!n", ""),
        ("missing!=x", "abcde"),
    ],
)
def test_label_selectors(api: Api, selector: str, names: str) -> None:
    assert api.get(PODS, labelSelector=selector).names == list(names)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=b", "b"),
        ("metadata.name!=b,metadata.namespace=default", "acde"),
        ("spec.nodeName=n1", "a"),
        ("spec.nodeName=", "bcde"),
        ("status.phase=Running", "a"),
        ("spec.schedulerName=default-scheduler,spec.restartPolicy=Always", "abcde"),
        ("spec.hostNetwork=true", ""),
    ],
)
def test_field_selectors(api: Api, selector: str, names: str) -> None:
    api.bind("a", "n1")
    api.set_status("a", {"phase": "Running"})
    assert api.get(PODS, fieldSelector=selector).names == list(names)


def test_other_kinds_have_their_own_fields(api: Api) -> None:
    api.create("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    assert api.get("/api/v1/nodes", fieldSelector="spec.unschedulable=true").names == ["n"]
    assert len(api.get("/api/v1/namespaces", fieldSelector="status.phase=Active").names) == 4
    answer = api.get("/api/v1/configmaps", fieldSelector="data=x")
    assert (answer.status, answer.message) == (400, "field label not supported: data")


def test_list_forms(api: Api) -> None:
    table = api.get(PODS, accept=TABLE).body
    assert (table["kind"], len(table["rows"])) == ("Table", 5)
    whole = api.get(PODS, accept=TABLE, includeObject="Object").body
    assert whole["rows"][0]["object"]["spec"]["containers"]
    assert "object" not in api.get(PODS, accept=TABLE, includeObject="None").body["rows"][0]
    partial = api.get(PODS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").body
    assert partial["kind"] == "PartialObjectMetadataList"
    assert partial["items"][0]["metadata"]["name"] == "a"
    plain = api.get(PODS, accept="application/vnd.kubernetes.protobuf,application/json")
    assert (plain.body["kind"], plain.body["apiVersion"]) == ("PodList", "v1")


def test_kinds_that_nobody_created_list_empty(api: Api) -> None:
    for path in (
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/storage.k8s.io/v1/csidrivers",
        "/apis/storage.k8s.io/v1/volumeattachments",
        "/api/v1/replicationcontrollers",
    ):
        answer = api.get(path)
        assert (answer.status, answer.body["items"]) == (200, [])
        assert int(answer.version) >= 1
