"""The table of kinds, its paths and look-ups."""

from __future__ import annotations

import pytest

from pilotage.api.kinds import KINDS, by_kind, by_path, by_resource, find
from pilotage.api.rest_kind import Kind

# What kube-scheduler lists and watches, and what kubectl users reach for.
WATCHED = [
    "pods",
    "nodes",
    "namespaces",
    "services",
    "replicationcontrollers",
    "replicasets.apps",
    "statefulsets.apps",
    "poddisruptionbudgets.policy",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "configmaps",
    "priorityclasses.scheduling.k8s.io",
    "deployments.apps",
]


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None, resource
    return found


@pytest.mark.parametrize("resource", WATCHED)
def test_needed_kinds_are_there(resource: str) -> None:
    assert kind(resource).resource == resource
    assert {"get", "list", "watch"} <= set(kind(resource).verbs)


def test_names_are_unique() -> None:
    assert len({k.resource for k in KINDS}) == len(KINDS)
    assert len({(k.api_version, k.kind) for k in KINDS}) == len(KINDS)


@pytest.mark.parametrize("one", KINDS, ids=lambda k: k.resource)
def test_paths_lead_back_to_the_kind(one: Kind) -> None:
    namespace = "team-a" if one.namespaced else ""
    collection = by_path(one.collection_path(namespace))
    assert collection == (one, namespace, "", "")
    assert by_path(one.collection_path()) == (one, "", "", "")
    assert by_path(one.object_path(namespace, "x")) == (one, namespace, "x", "")
    for sub in one.subresources:
        assert by_path(one.object_path(namespace, "x", sub.name)) == (one, namespace, "x", sub.name)
    assert by_kind(one.api_version, one.kind) is one


def test_paths_of_a_namespace_itself() -> None:
    namespaces = kind("namespaces")
    assert by_path("/api/v1/namespaces/a") == (namespaces, "", "a", "")
    assert by_path("/api/v1/namespaces/a/finalize") == (namespaces, "", "a", "finalize")
    assert by_path("/api/v1/namespaces/status/pods") == (kind("pods"), "status", "", "")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/healthz",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/api/v2/pods",
        "/apis/none/v1/pods",
        "/api/v1/nothing",
        "/api/v1/pods/x",
        "/api/v1/namespaces/a/nodes/n",
        "/api/v1/namespaces/a/pods/x/status/y",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/a/pods//status",
    ],
)
def test_what_is_no_path_of_a_kind(path: str) -> None:
    assert by_path(path) is None


def test_names_in_paths_are_escaped() -> None:
    roles = kind("clusterroles.rbac.authorization.k8s.io")
    path = roles.object_path("", "system:a b")
    assert path.endswith("/system:a%20b")
    assert by_path(path) == (roles, "", "system:a b", "")


def test_a_namespaced_object_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match="needs a namespace"):
        kind("pods").object_path("", "x")


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("po", "pods"),
        ("Pod", "pods"),
        ("pods", "pods"),
        ("deploy", "deployments.apps"),
        ("deployment.apps", "deployments.apps"),
        ("deployments.v1.apps", "deployments.apps"),
        ("ev", "events"),
        ("events.events.k8s.io", "events.events.k8s.io"),
        ("pc", "priorityclasses.scheduling.k8s.io"),
        ("pdb", "poddisruptionbudgets.policy"),
        ("no", "nodes"),
    ],
)
def test_people_find_kinds(name: str, resource: str) -> None:
    assert find(name) is kind(resource)


def test_unknown_names() -> None:
    assert find("widgets") is None
    assert by_resource("widgets") is None
    assert by_kind("v1", "Widget") is None


def test_subresources_name_foreign_kinds() -> None:
    pods = kind("pods")
    eviction, binding = pods.subresource("eviction"), pods.subresource("binding")
    assert eviction is not None
    assert (eviction.group, eviction.version, eviction.kind) == (
        "policy",
        "v1",
        "Eviction",
    )
    assert binding is not None
    assert binding.verbs == ("create",)
    scale = kind("deployments.apps").subresource("scale")
    assert scale is not None
    assert (scale.group, scale.kind) == ("autoscaling", "Scale")
    assert pods.subresource("nothing") is None


def test_both_event_kinds_share_one_storage() -> None:
    assert kind("events.events.k8s.io").storage_resource == kind("events").storage_resource == "events"


def test_questions_are_not_stored() -> None:
    assert {k.resource for k in KINDS if not k.is_stored} >= {
        "bindings",
        "tokenreviews.authentication.k8s.io",
    }
    assert all(k.verbs == ("create",) for k in KINDS if not k.is_stored)
