"""The scale subresource."""

from __future__ import annotations

import pytest

from restkit import JSON_PATCH, MERGE, Api, container

PATH = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
def api() -> Api:
    api = Api()
    template = {"metadata": {"labels": {"app": "a", "v": "1"}}, "spec": {"containers": [container()]}}
    selector = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [{"key": "v", "operator": "In", "values": ["1"]}],
    }
    spec = {"replicas": 2, "selector": selector, "template": template}
    api.create(PATH, {"metadata": {"name": "d"}, "spec": spec})
    return api


def test_scale_is_seen(api: Api) -> None:
    api.patch(f"{PATH}/d/status", {"status": {"replicas": 1}})
    scale = api.get(f"{PATH}/d/scale").body
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert (
        scale["status"] == {"replicas": 1, "selector": "app=a,v in (1)"}
        or scale["status"]["selector"] == "app=a,v=1"
    )


def test_scale_is_set_by_put_and_patch(api: Api) -> None:
    scale = api.get(f"{PATH}/d/scale").body
    scale["spec"]["replicas"] = 5
    assert api.call("PUT", f"{PATH}/d/scale", scale).body["spec"]["replicas"] == 5
    assert api.call("PUT", f"{PATH}/d/scale", scale).status == 409
    assert api.patch(f"{PATH}/d/scale", {"spec": {"replicas": 6}}, MERGE).body["spec"]["replicas"] == 6
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 0}]
    assert api.patch(f"{PATH}/d/scale", patch, JSON_PATCH).body["spec"]["replicas"] == 0
    deployment = api.get(f"{PATH}/d").body
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (0, 4)


def test_scale_refuses_nonsense(api: Api) -> None:
    assert api.patch(f"{PATH}/d/scale", {"spec": {"replicas": -1}}).status == 422
    assert api.patch(f"{PATH}/d/scale", {"spec": {"replicas": "x"}}).status == 400
    assert api.get(f"{PATH}/nobody/scale").status == 404
    assert api.get("/api/v1/namespaces/default/pods/p/scale").status == 404
