"""The selector of default spread constraints: Services and controllers of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.state.default_spread import DefaultSelectors
from pilotage.state.objects import ObjectStore
from pilotage.state.podinfo import PodInfo

RS, SS, RC = "replicasets.apps", "statefulsets.apps", "replicationcontrollers"
KINDS = {RS: ("apps/v1", "ReplicaSet"), SS: ("apps/v1", "StatefulSet"), RC: ("v1", "ReplicationController")}
LABELS = {"app": "web", "tier": "front"}


def view(resource: str, tree: Any) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, tree)


def store(*objects: tuple[str, str, Any]) -> ObjectStore:
    objects_known = ObjectStore()
    for resource, name, selector in objects:
        meta = {"name": name, "namespace": "default"}
        objects_known.upsert(resource, view(resource, {"metadata": meta, "spec": {"selector": selector}}))
    return objects_known


def owned(resource: str = "", name: str = "own", labels: Any = LABELS, controller: bool = True) -> PodInfo:
    meta: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "p", "labels": labels}
    if resource:
        api, kind = KINDS.get(resource, ("batch/v1", "Job"))
        owner = {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": controller}
        meta["ownerReferences"] = [owner]
    return PodInfo(view("pods", {"metadata": meta, "spec": {"containers": [{"name": "c"}]}}))


def pairs(objects: ObjectStore, info: PodInfo) -> dict[str, tuple[str, ...]] | None:
    selector = DefaultSelectors(objects).selector(info)
    return None if selector is None else {r.key: r.values for r in selector.requirements}


LABEL_SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize("resource", [RS, SS])
def test_sets_give_their_selector(resource: str) -> None:
    assert pairs(store((resource, "own", LABEL_SELECTOR)), owned(resource)) == {"app": ("web",)}


def test_a_replication_controller_gives_its_pairs() -> None:
    assert pairs(store((RC, "own", {"app": "web"})), owned(RC)) == {"app": ("web",)}


def test_services_that_select_the_pod_and_its_set_count_together() -> None:
    objects = store(
        ("services", "a", {"tier": "front"}),
        ("services", "b", {"app": "other"}),
        ("services", "all", {}),
        ("services", "headless", None),
        (RS, "own", LABEL_SELECTOR),
    )
    assert pairs(objects, owned(RS)) == {"app": ("web",), "tier": ("front",)}


def test_a_replication_controller_that_contradicts_a_service_decides() -> None:
    objects = store(("services", "a", {"app": "web"}), (RC, "own", {"app": "old"}))
    assert pairs(objects, owned(RC)) == {"app": ("old",)}


def test_a_set_that_says_nothing_leaves_what_services_say() -> None:
    objects = store(("services", "a", {"app": "web"}), (RS, "own", None))
    assert pairs(objects, owned(RS)) == {"app": ("web",)}


@pytest.mark.parametrize(
    "info",
    [owned(), owned("jobs"), owned(RS, "another"), owned(SS), owned(RS, controller=False)],
    ids=["no owner", "other kind", "other name", "same name, other kind", "not the controller"],
)
def test_without_service_and_controller_there_is_none(info: PodInfo) -> None:
    assert pairs(store((RS, "own", LABEL_SELECTOR)), info) is None


def test_answers_follow_the_objects() -> None:
    objects = store((RS, "own", LABEL_SELECTOR))
    selectors = DefaultSelectors(objects)
    assert selectors.selector(owned(RS)) is not None
    found = objects.get(RS, "own", "default")
    assert found is not None
    objects.delete(RS, found)
    assert selectors.selector(owned(RS)) is None
