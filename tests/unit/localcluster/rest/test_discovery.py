"""Discovery, version, health and OpenAPI: what clients ask before anything else."""

from __future__ import annotations

import pytest

from pilotage.api.kinds import KINDS
from restkit import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList,application/json"


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_lists_every_kind(api: Api, version: str) -> None:
    found = set()
    for path in ("/api", "/apis"):
        answer = api.get(path, accept=AGGREGATED.format(version))
        assert f"v={version}" in answer.content_type
        assert "as=APIGroupDiscoveryList" in answer.content_type
        assert answer.headers["etag"]
        for group in answer.body["items"]:
            for item in group["versions"]:
                found |= {
                    (group["metadata"]["name"], item["version"], r["resource"]) for r in item["resources"]
                }
    assert found == {(kind.group, kind.version, kind.plural) for kind in KINDS}


def test_plain_discovery(api: Api) -> None:
    assert api.get("/api").body["versions"] == ["v1"]
    groups = {group["name"]: group for group in api.get("/apis").body["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert api.get("/apis/apps").body["kind"] == "APIGroup"
    assert api.get("/apis/nothing").status == 404


def test_resource_lists_name_subresources_and_foreign_kinds(api: Api) -> None:
    resources = {r["name"]: r for r in api.get("/api/v1").body["resources"]}
    assert resources["pods"]["shortNames"] == ["po"]
    assert resources["pods"]["singularName"] == "pod"
    assert (resources["pods/eviction"]["kind"], resources["pods/eviction"]["group"]) == ("Eviction", "policy")
    assert resources["pods/binding"]["kind"] == "Binding"
    assert resources["nodes"]["namespaced"] is False
    apps = {r["name"]: r for r in api.get("/apis/apps/v1").body["resources"]}
    assert (apps["deployments/scale"]["kind"], apps["deployments/scale"]["group"]) == ("Scale", "autoscaling")


def test_version_and_health(api: Api) -> None:
    assert api.get("/version").body["gitVersion"].startswith("v1.")
    for path in ("/healthz", "/livez", "/readyz"):
        answer = api.get(path)
        assert (answer.body, answer.content_type.split(";")[0]) == (b"ok", "text/plain")
    assert "/apis/apps/v1" in api.get("/").body["paths"]
    assert api.call("POST", "/version", {}).status == 405


def test_openapi_v3_says_that_fields_are_validated(api: Api) -> None:
    index = api.get("/openapi/v3").body["paths"]
    assert index["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    document = api.get("/openapi/v3/apis/apps/v1").body
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["parameters"][0]["name"] == "fieldValidation"
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Deployment"


def test_openapi_definitions_carry_merge_keys_and_resolve(api: Api) -> None:
    schemas = api.get("/openapi/v3/api/v1").body["components"]["schemas"]
    containers = schemas["io.k8s.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert schemas["io.k8s.v1.PodSpec"]["properties"]["tolerations"]["x-kubernetes-list-type"] == "atomic"
    text = str(schemas)
    for name in schemas:
        assert name.startswith("io.k8s.")
    assert "#/components/schemas/io.k8s.v1.Container'" in text
    v2 = api.get("/openapi/v2").body
    assert v2["swagger"] == "2.0"
    assert (
        api.get("/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf").status
        == 406
    )
    assert api.get("/openapi/v3/apis/none/v1").status == 404
