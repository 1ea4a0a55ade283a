"""The resize subresource as a change of trees."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilotage.api.kinds import KINDS
from pilotage.localcluster.rest.admission import prepare_create
from pilotage.localcluster.rest.errors import RestError
from pilotage.localcluster.rest.pod_resize import prepare_resize

Tree = dict[str, Any]
PODS = {kind.resource: kind for kind in KINDS}["pods"]


def container(name: str = "c", **resources: Any) -> Tree:
    return {"name": name, "image": "i:1", "resources": resources}


def pod(*containers: Tree, **spec: Any) -> Tree:
    tree = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": list(containers), **spec}}
    prepare_create(PODS, tree)
    tree["status"]["phase"] = "Running"
    return tree


def body(*containers: Tree, **spec: Any) -> Tree:
    return {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": list(containers), **spec}}


def refusal(old: Tree, wanted: Tree) -> list[Tree]:
    with pytest.raises(RestError) as caught:
        prepare_resize(PODS, old, wanted)
    assert caught.value.code == 422
    causes: list[Tree] = caught.value.details["causes"]
    return causes


def test_only_resources_are_taken() -> None:
    old = pod(container(requests={"cpu": "1"}))
    before = deepcopy(old)
    wanted = body({**container(requests={"cpu": "2000m"}), "image": "other"}, nodeName="n9")
    new = prepare_resize(PODS, old, wanted)
    assert old == before
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert new["spec"]["containers"][0]["image"] == "i:1"
    assert "nodeName" not in new["spec"]
    assert new["status"] == before["status"]


@pytest.mark.parametrize(
    ("was", "wanted", "message"),
    [
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"cpu": "1"}},
            "resource requests cannot be removed",
        ),
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            "resource limits cannot be removed",
        ),
        (
            {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}},
            {"requests": {"cpu": "1", "ephemeral-storage": "2Gi"}},
            "only cpu and memory resources are mutable",
        ),
        ({}, {"requests": {"cpu": "1"}}, "Pod QOS Class may not change as a result of resizing"),
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}},
            "must be less than or equal to cpu limit of 2",
        ),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1 Gi"}}, '"1 Gi"'),
    ],
)
def test_refused(was: Tree, wanted: Tree, message: str) -> None:
    causes = refusal(pod(container(**was)), body(container(**wanted)))
    assert any(message in cause["message"] for cause in causes)


def test_init_containers_are_immutable_but_sidecars_are_not() -> None:
    one, two = container("i", requests={"cpu": "1"}), container("i", requests={"cpu": "2"})
    main = container(requests={"cpu": "1"})
    causes = refusal(pod(main, initContainers=[one]), body(main, initContainers=[two]))
    assert causes[0]["field"] == "spec.initContainers[0].resources"
    always = {"restartPolicy": "Always"}
    old = pod(main, initContainers=[{**one, **always}])
    new = prepare_resize(PODS, old, body(main, initContainers=[{**two, **always}]))
    assert new["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "2"}


def test_pod_level_resources() -> None:
    old = pod(container(), resources={"requests": {"cpu": "1"}})
    new = prepare_resize(PODS, old, body(container(), resources={"requests": {"cpu": "2"}}))
    assert new["spec"]["resources"] == {"requests": {"cpu": "2"}}
    causes = refusal(old, body(container(), resources={}))
    assert "pod-level resources cannot be removed" in causes[0]["message"]


def test_a_kubelet_that_reports_no_resources_cannot_resize() -> None:
    old = pod(container(requests={"cpu": "1"}))
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    causes = refusal(old, body(container(requests={"cpu": "2"})))
    assert "Pod running on node without support for resize" in causes[0]["message"]
    old["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1"}}
    prepare_resize(PODS, old, body(container(requests={"cpu": "2"})))
