"""Pods that are refused: status, field, value."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilotage.api.kinds import KINDS
from pilotage.localcluster.rest.admission import prepare_create
from pilotage.localcluster.rest.errors import RestError

Tree = dict[str, Any]
KIND = {kind.resource: kind for kind in KINDS}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
C = {"name": "c", "image": "app:1"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
TERM = {"topologyKey": "zone", "labelSelector": {}}


def refusal(spec: Tree, **metadata: Any) -> RestError:
    tree = {"metadata": {"name": "p", "namespace": "ns", **metadata}, "spec": {"containers": [C], **spec}}
    with pytest.raises(RestError) as caught:
        prepare_create(KIND["pods"], deepcopy(tree))
    return caught.value


def resources(requests: Any = None, limits: Any = None) -> Tree:
    return {"containers": [{**C, "resources": {"requests": requests or {}, "limits": limits or {}}}]}


def port(**fields: Any) -> Tree:
    return {"containers": [{**C, "ports": [fields]}]}


def pod_affinity(kind: str, part: str, term: Tree) -> Tree:
    return {"affinity": {kind: {part: [term]}}}


def node_affinity(required: Any = None, preferred: Any = None) -> Tree:
    affinity = {
        key: value for key, value in ((REQUIRED, required), (PREFERRED, preferred)) if value is not None
    }
    return {"affinity": {"nodeAffinity": affinity}}


CPU = "spec.containers[0].resources.requests[cpu]"


@pytest.mark.parametrize(
    ("spec", "field", "part"),
    [
        (resources({"cpu": "1 Gi"}), CPU, '"1 Gi"'),
        (resources({"cpu": "-1"}), CPU, "must be greater than or equal to 0"),
        (resources(limits={"memory": "1GB"}), "spec.containers[0].resources.limits[memory]", '"1GB"'),
        ({"overhead": {"cpu": "x"}}, "spec.overhead[cpu]", '"x"'),
        (
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "big"}}]},
            "spec.volumes[0].emptyDir.sizeLimit",
            '"big"',
        ),
        (
            resources({"cpu": "2"}, {"cpu": "1"}),
            "spec.containers[0].resources.requests",
            "must be less than or equal to cpu limit of 1",
        ),
        (
            resources({"x.io/gpu": "1"}, {"x.io/gpu": "2"}),
            "spec.containers[0].resources.requests",
            "must be equal to x.io/gpu limit of 2",
        ),
        (resources({"gpu": "1"}), "spec.containers[0].resources.requests[gpu]", '"gpu"'),
        (
            resources({"x.io/gpu": "500m"}),
            "spec.containers[0].resources.requests[x.io/gpu]",
            "must be an integer",
        ),
        (
            {"resources": {"requests": {"x.io/gpu": "1"}}},
            "spec.resources.requests[x.io/gpu]",
            "level of the pod",
        ),
        ({"containers": []}, "spec.containers", "Required value"),
        ({"containers": [{"image": "a"}]}, "spec.containers[0].name", "Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image", "Required value"),
        ({"containers": [{**C, "name": "C_1"}]}, "spec.containers[0].name", '"C_1"'),
        ({"containers": [C, C]}, "spec.containers[1].name", 'Duplicate value: "c"'),
        ({"initContainers": [C]}, "spec.initContainers[0].name", 'Duplicate value: "c"'),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy", "Unsupported value"),
        ({"dnsPolicy": "Mine"}, "spec.dnsPolicy", "Unsupported value"),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds",
            "greater than or equal",
        ),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds", "between 1 and"),
        (port(containerPort=0), "spec.containers[0].ports[0].containerPort", "Required value"),
        (port(containerPort=65536), "spec.containers[0].ports[0].containerPort", "65536"),
        (port(containerPort=1, hostPort=70000), "spec.containers[0].ports[0].hostPort", "70000"),
        (port(containerPort=1, protocol="ICMP"), "spec.containers[0].ports[0].protocol", '"ICMP"'),
        (
            {**port(containerPort=1, hostPort=2), "hostNetwork": True},
            "spec.containers[0].ports[0].hostPort",
            "must match",
        ),
        ({"nodeName": "Node_1"}, "spec.nodeName", '"Node_1"'),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector", '"a b"'),
        (
            {"tolerations": [{"key": "k", "operator": "Gt"}]},
            "spec.tolerations[0].operator",
            "Unsupported value",
        ),
        (
            {"tolerations": [{"value": "v"}]},
            "spec.tolerations[0].operator",
            "must be Exists when `key` is empty",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]},
            "spec.tolerations[0].operator",
            "must be empty",
        ),
        ({"tolerations": [{"key": "k", "effect": "Never"}]}, "spec.tolerations[0].effect", '"Never"'),
        (
            {"tolerations": [{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 1}]},
            "spec.tolerations[0].effect",
            "NoExecute",
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]},
            "spec.topologySpreadConstraints[0].maxSkew",
            "must be greater than zero",
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "topologyKey": ""}]},
            "spec.topologySpreadConstraints[0].topologyKey",
            "can not be empty",
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "Maybe"}]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
            '"Maybe"',
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "minDomains": 0}]},
            "spec.topologySpreadConstraints[0].minDomains",
            "must be greater than zero",
        ),
        (
            {
                "topologySpreadConstraints": [
                    {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}
                ]
            },
            "spec.topologySpreadConstraints[0].minDomains",
            "DoNotSchedule",
        ),
        (
            {"topologySpreadConstraints": [{**SPREAD, "nodeTaintsPolicy": "Obey"}]},
            "spec.topologySpreadConstraints[0].nodeTaintsPolicy",
            '"Obey"',
        ),
        (
            {"topologySpreadConstraints": [SPREAD, SPREAD]},
            "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}",
            "Duplicate value",
        ),
        (
            pod_affinity("podAffinity", REQUIRED, {"labelSelector": {}}),
            f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey",
            "Required value",
        ),
        (
            pod_affinity("podAntiAffinity", PREFERRED, {"weight": 101, "podAffinityTerm": TERM}),
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight",
            "1-100",
        ),
        (
            pod_affinity(
                "podAffinity",
                REQUIRED,
                {**TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            ),
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator",
            '"Like"',
        ),
        (
            node_affinity(required={"nodeSelectorTerms": []}),
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
            "Required value",
        ),
        (
            node_affinity(
                required={
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}
                    ]
                }
            ),
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]",
            '"x"',
        ),
        (
            node_affinity(preferred=[{"weight": 0, "preference": {}}]),
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
            "1-100",
        ),
        ({"schedulingGates": [{"name": "a b"}]}, "spec.schedulingGates[0].name", '"a b"'),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1].name", "Duplicate"),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName", "schedulingGates"),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name", "Duplicate"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "spec.volumes[0].persistentVolumeClaim.claimName",
            "Required value",
        ),
        (
            {"containers": [{**C, "volumeMounts": [{"name": "no", "mountPath": "/x"}]}]},
            "spec.containers[0].volumeMounts[0].name",
            'Not found: "no"',
        ),
    ],
)
def test_invalid(spec: Tree, field: str, part: str) -> None:
    error = refusal(spec)
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message.startswith('Pod "p" is invalid: ')
    causes = error.details["causes"]
    assert field in [cause["field"] for cause in causes]
    assert any(part in cause["message"] for cause in causes if cause["field"] == field)


def test_every_fault_is_reported() -> None:
    error = refusal({"containers": [{"name": "c"}, {"name": "D", "image": "i"}]})
    assert [cause["field"] for cause in error.details["causes"]] == [
        "spec.containers[0].image",
        "spec.containers[1].name",
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": "x"}, "spec.containers"),
        ({"containers": [3]}, "spec.containers[0]"),
        (
            {"containers": [{**C, "ports": [{"containerPort": "80"}]}]},
            "spec.containers[0].ports[0].containerPort",
        ),
        (resources({"cpu": True}), "spec.containers[0].resources.requests"),
        ({"tolerations": {}}, "spec.tolerations"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector"),
        ({"affinity": []}, "spec.affinity"),
        ({"containers": [{**C, "resources": {"requests": []}}]}, "spec.containers[0].resources.requests"),
        (
            {"containers": [{**C, "resources": {"requests": {"cpu": []}}}]},
            "spec.containers[0].resources.requests",
        ),
    ],
)
def test_wrong_types_are_a_bad_request(spec: Tree, field: str) -> None:
    error = refusal(spec)
    assert (error.code, error.reason) == (400, "BadRequest")
    assert field in error.message


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a..b"}, "metadata.name"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"a": "c d"}}, "metadata.labels"),
        ({"namespace": "a.b"}, "metadata.namespace"),
    ],
)
def test_metadata(metadata: Tree, field: str) -> None:
    assert refusal({}, **metadata).details["causes"][0]["field"] == field


@pytest.mark.parametrize(
    "spec",
    [
        {"terminationGracePeriodSeconds": 0},
        resources({"x.io/gpu": "2", "hugepages-2Mi": "4Mi"}, {"x.io/gpu": "2", "hugepages-2Mi": "4Mi"}),
        {"nodeSelector": {}},
        {"tolerations": [{"key": "k"}]},
        {
            "containers": [{**C, "volumeMounts": [{"name": "v", "mountPath": "/x"}]}],
            "volumes": [{"name": "v"}],
        },
        {"containers": [{**C, "env": "strange", "lifecycle": 3, "livenessProbe": []}]},
        {"volumes": [{"name": "v", "secret": "strange"}]},
    ],
)
def test_accepted(spec: Tree) -> None:
    tree = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": [C], **spec}}
    prepare_create(KIND["pods"], deepcopy(tree))
