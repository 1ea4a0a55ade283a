"""What may change on a Pod, and what may not."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilotage.api.kinds import KINDS
from pilotage.localcluster.rest.admission import prepare_create, prepare_update
from pilotage.localcluster.rest.errors import RestError

Tree = dict[str, Any]
PODS = {kind.resource: kind for kind in KINDS}["pods"]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> Tree:
    containers = [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}]
    tree = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": containers, **spec}}
    prepare_create(PODS, tree)
    return tree


def updated(old: Tree, **spec: Any) -> Tree:
    new = deepcopy(old)
    for key, value in spec.items():
        if value is None:
            new["spec"].pop(key, None)
        else:
            new["spec"][key] = value
    prepare_update(PODS, old, new)
    return new


def affinity(*requirements: Tree) -> Tree:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}}}


A = {"key": "a", "operator": "Exists"}
B = {"key": "b", "operator": "Exists"}


def test_allowed_pod_updates() -> None:
    old = pod()
    image = deepcopy(old["spec"]["containers"])
    image[0]["image"] = "i:2"
    updated(old, containers=image)
    updated(old, activeDeadlineSeconds=10)
    updated(pod(activeDeadlineSeconds=10), activeDeadlineSeconds=5)
    updated(old, tolerations=[*old["spec"]["tolerations"], {"key": "new", "operator": "Exists"}])
    gated = pod(schedulingGates=[{"name": "a"}, {"name": "b"}])
    updated(gated, schedulingGates=[{"name": "b"}])
    updated(gated, schedulingGates=None)
    updated(gated, nodeSelector={"x": "y"})
    updated(gated, affinity=affinity(A))
    updated(pod(schedulingGates=[{"name": "a"}], affinity=affinity(A)), affinity=affinity(A, B))


@pytest.mark.parametrize(
    ("old", "spec"),
    [
        ({}, {"nodeName": "n1"}),
        ({}, {"priority": 5}),
        ({}, {"nodeSelector": {"x": "y"}}),
        ({}, {"affinity": affinity(A)}),
        ({}, {"schedulingGates": [{"name": "new"}]}),
        ({}, {"tolerations": []}),
        ({}, {"containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "2"}}}]}),
        ({}, {"terminationGracePeriodSeconds": 1}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 10}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": None}),
        ({"schedulingGates": [{"name": "a"}], "nodeSelector": {"x": "y"}}, {"nodeSelector": {"x": "z"}}),
        ({"schedulingGates": [{"name": "a"}], "affinity": affinity(A, B)}, {"affinity": affinity(A)}),
        ({"schedulingGates": [{"name": "a"}]}, {"hostNetwork": True}),
    ],
)
def test_refused_pod_updates(old: Tree, spec: Tree) -> None:
    with pytest.raises(RestError) as caught:
        updated(pod(**old), **spec)
    assert caught.value.code == 422


def test_refusal_says_what_may_change() -> None:
    with pytest.raises(RestError, match="pod updates may not change fields other than") as caught:
        updated(pod(), hostname="h")
    assert "hostname" in caught.value.message


def test_left_out_fields_that_the_server_set_are_no_change() -> None:
    old = pod()
    new = deepcopy(old)
    for key in ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount", "dnsPolicy"):
        del new["spec"][key]
    prepare_update(PODS, old, new)
    assert new == old
