"""Defaults and refusals of the other kinds, and what may not change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilotage.api.kinds import KINDS
from pilotage.localcluster.rest.admission import (
    SYSTEM_PRIORITY_CLASSES,
    prepare_create,
    prepare_status,
    prepare_update,
)
from pilotage.localcluster.rest.errors import RestError

Tree = dict[str, Any]
KIND = {kind.resource: kind for kind in KINDS}
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "1024Mi"}}}]},
}
WORKLOAD = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}


def made(resource: str, tree: Tree, *classes: Tree) -> Tree:
    tree = {"metadata": {"name": "x"}, **deepcopy(tree)}
    prepare_create(KIND[resource], tree, classes)
    return tree


def refusal(resource: str, tree: Tree, *classes: Tree) -> RestError:
    with pytest.raises(RestError) as caught:
        made(resource, tree, *classes)
    return caught.value


def change(resource: str, old: Tree, new: Tree) -> Tree:
    prepare_update(KIND[resource], old, new)
    return new


def fields(error: RestError) -> list[str]:
    return [cause["field"] for cause in error.details["causes"]]


# Workloads


def test_deployment_defaults() -> None:
    spec = made("deployments.apps", {"spec": WORKLOAD})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    template = spec["template"]["spec"]
    assert template["restartPolicy"] == "Always"
    assert template["containers"][0]["resources"]["requests"]["memory"] == "1Gi"
    assert "enableServiceLinks" not in template


def test_recreate_has_no_rolling_update() -> None:
    spec = made("deployments.apps", {"spec": {**WORKLOAD, "strategy": {"type": "Recreate"}}})["spec"]
    assert spec["strategy"] == {"type": "Recreate"}


def test_replica_set_takes_labels_of_its_template() -> None:
    tree = made("replicasets.apps", {"spec": {**WORKLOAD, "replicas": 0}})
    assert tree["spec"]["replicas"] == 0
    assert tree["metadata"]["labels"] == {"app": "a"}


def test_stateful_set_defaults() -> None:
    claim = {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    spec = made("statefulsets.apps", {"spec": {**WORKLOAD, "volumeClaimTemplates": [claim]}})["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    claim = spec["volumeClaimTemplates"][0]
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"template": TEMPLATE}, "spec.selector"),
        ({**WORKLOAD, "selector": {}}, "spec.selector"),
        ({**WORKLOAD, "selector": {"matchLabels": {"app": "b"}}}, "spec.template.metadata.labels"),
        ({**WORKLOAD, "replicas": -1}, "spec.replicas"),
        ({**WORKLOAD, "replicas": "3"}, "spec.replicas"),
        ({**WORKLOAD, "template": {**TEMPLATE, "spec": {}}}, "spec.template.spec.containers"),
        (
            {**WORKLOAD, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
            "spec.template.spec.restartPolicy",
        ),
        (
            {**WORKLOAD, "selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}},
            "spec.selector.matchExpressions[0].operator",
        ),
    ],
)
def test_refused_workloads(spec: Tree, field: str) -> None:
    assert field in fields(refusal("deployments.apps", {"spec": spec}))


def test_nonsense_in_a_template_is_named_with_its_path() -> None:
    spec = deepcopy(WORKLOAD)
    spec["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1 Gi"  # type: ignore[index]
    error = refusal("deployments.apps", {"spec": spec})
    assert fields(error) == ["spec.template.spec.containers[0].resources.requests[memory]"]
    assert '"1 Gi"' in error.message
    spec["template"]["spec"]["containers"] = "x"  # type: ignore[index]
    error = refusal("deployments.apps", {"spec": spec})
    assert error.code == 400
    assert "spec.template.spec.containers" in error.message


def test_selectors_are_immutable() -> None:
    old = made("deployments.apps", {"spec": WORKLOAD})
    new = deepcopy(old)
    new["spec"]["replicas"] = 5
    assert change("deployments.apps", old, new)["spec"]["replicas"] == 5
    new["spec"]["selector"] = {"matchLabels": {"b": "c"}}
    with pytest.raises(RestError) as caught:
        change("deployments.apps", old, new)
    assert fields(caught.value) == ["spec.selector"]


def test_stateful_set_keeps_most_of_its_spec() -> None:
    old = made("statefulsets.apps", {"spec": WORKLOAD})
    new = deepcopy(old)
    new["spec"]["replicas"] = 2
    change("statefulsets.apps", old, deepcopy(new))
    new["spec"]["serviceName"] = "other"
    with pytest.raises(RestError, match="updates to statefulset spec"):
        change("statefulsets.apps", old, new)


def test_job_and_cron_job() -> None:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]
    job = made("jobs.batch", {"spec": {"template": template}})["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (1, 1, 6)
    cron = {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}
    assert made("cronjobs.batch", cron)["spec"]["concurrencyPolicy"] == "Allow"
    assert fields(refusal("jobs.batch", {"spec": {"template": TEMPLATE}})) == [
        "spec.template.spec.restartPolicy"
    ]
    assert fields(refusal("cronjobs.batch", {"spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}})) == [
        "spec.schedule",
        "spec.jobTemplate.spec.template.spec.restartPolicy",
    ]


# Services


def test_service_defaults() -> None:
    spec = made("services", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}})["spec"]
    assert spec["type"] == "ClusterIP"
    assert spec["sessionAffinity"] == "None"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_headless_service_needs_no_ports() -> None:
    spec = made("services", {"spec": {"clusterIP": "None"}})["spec"]
    assert spec["clusterIPs"] == ["None"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.ports"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name"),
        ({"type": "Other", "ports": [{"port": 1}]}, "spec.type"),
        ({"type": "ExternalName"}, "spec.externalName"),
    ],
)
def test_refused_services(spec: Tree, field: str) -> None:
    assert field in fields(refusal("services", {"spec": spec}))


def test_service_names_start_with_a_letter() -> None:
    tree = {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 1}]}}
    assert fields(refusal("services", tree)) == ["metadata.name"]


def test_cluster_ip_stays_when_left_out() -> None:
    old = made("services", {"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}})
    new: Tree = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 81}]}}
    assert change("services", old, new)["spec"]["clusterIP"] == "10.0.0.1"


# Cluster


def test_namespace_label_and_finalizer() -> None:
    tree = made("namespaces", {})
    assert tree["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert tree["spec"]["finalizers"] == ["kubernetes"]
    assert tree["status"] == {"phase": "Active"}


def test_node_quantities_and_allocatable() -> None:
    tree = made("nodes", {"status": {"capacity": {"cpu": "4000m", "memory": "8192Mi"}}})
    assert tree["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}
    assert tree["status"]["capacity"] == tree["status"]["allocatable"]
    tree["status"] = {"capacity": {"cpu": 4}, "allocatable": {"cpu": "3.5"}}
    prepare_status(KIND["nodes"], tree)
    assert tree["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3500m"}}


def test_node_with_nonsense() -> None:
    assert fields(refusal("nodes", {"status": {"capacity": {"cpu": "many"}}})) == ["status.capacity[cpu]"]
    taints = {"spec": {"taints": [{"key": "", "effect": "NoWay"}]}}
    assert fields(refusal("nodes", taints)) == ["spec.taints[0].key", "spec.taints[0].effect"]


def test_text_that_looks_like_quantities_is_left_alone() -> None:
    data = {"requests": "1 Gi", "limits": "x"}
    assert made("configmaps", {"data": data})["data"] == data


def test_storage_defaults() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    claim = made("persistentvolumeclaims", {"spec": spec})
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"
    assert claim["status"] == {"phase": "Pending"}
    volume = made(
        "persistentvolumes", {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}
    )
    assert volume["status"]["phase"] == "Pending"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made("storageclasses.storage.k8s.io", {"provisioner": "p"})["volumeBindingMode"] == "Immediate"
    assert fields(refusal("storageclasses.storage.k8s.io", {})) == ["provisioner"]


# Priority classes

CLASSES = "priorityclasses.scheduling.k8s.io"


def test_priority_class_defaults_and_limits() -> None:
    assert made(CLASSES, {"value": 10})["preemptionPolicy"] == "PreemptLowerPriority"
    assert made(CLASSES, {"value": -(2**31)})["value"] == -(2**31)
    assert fields(refusal(CLASSES, {"value": 1_000_000_001})) == ["value"]
    assert fields(refusal(CLASSES, {"metadata": {"name": "system-x"}, "value": 1})) == ["metadata.name"]
    assert fields(refusal(CLASSES, {"value": 1, "preemptionPolicy": "Maybe"})) == ["preemptionPolicy"]
    for system in SYSTEM_PRIORITY_CLASSES:
        made(CLASSES, system)


def test_only_one_global_default() -> None:
    other = {"metadata": {"name": "d"}, "value": 1, "globalDefault": True}
    error = refusal(CLASSES, {"value": 2, "globalDefault": True}, other)
    assert error.code == 403
    assert "PriorityClass d is already marked as default" in error.message


def test_value_of_a_priority_class_stays() -> None:
    old = made(CLASSES, {"value": 1})
    with pytest.raises(RestError) as caught:
        change(CLASSES, old, {**deepcopy(old), "value": 2})
    assert fields(caught.value) == ["value"]


# Small defaults


@pytest.mark.parametrize(
    ("resource", "tree", "path", "value"),
    [
        ("secrets", {}, ("type",), "Opaque"),
        ("endpoints", {"subsets": [{"ports": [{"port": 1}]}]}, ("subsets", 0, "ports", 0, "protocol"), "TCP"),
        (
            "daemonsets.apps",
            {"spec": WORKLOAD},
            ("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),
            1,
        ),
        ("replicationcontrollers", {"spec": {"template": TEMPLATE}}, ("spec", "selector"), {"app": "a"}),
        ("horizontalpodautoscalers.autoscaling", {}, ("spec", "minReplicas"), 1),
        ("csidrivers.storage.k8s.io", {}, ("spec", "attachRequired"), True),
        (
            "services",
            {"spec": {"ports": [{"port": 1}], "type": "LoadBalancer"}},
            ("spec", "allocateLoadBalancerNodePorts"),
            True,
        ),
        (
            "services",
            {"spec": {"ports": [{"port": 1}], "sessionAffinity": "ClientIP"}},
            ("spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"),
            10800,
        ),
    ],
)
def test_small_defaults(resource: str, tree: Tree, path: tuple[str | int, ...], value: Any) -> None:
    found: Any = made(resource, tree)
    for step in path:
        found = found[step]
    assert found == value


@pytest.mark.parametrize(
    ("resource", "tree", "field"),
    [
        ("persistentvolumeclaims", {"spec": {}}, "spec.resources[storage]"),
        ("persistentvolumes", {"spec": {}}, "spec.capacity"),
        ("poddisruptionbudgets.policy", {"spec": {"minAvailable": 1, "maxUnavailable": 1}}, "spec"),
        ("daemonsets.apps", {"spec": {**WORKLOAD, "selector": None}}, "spec.selector"),
        ("replicationcontrollers", {"spec": {"template": TEMPLATE, "replicas": -1}}, "spec.replicas"),
        ("limitranges", {"spec": {"limits": [{"max": {"cpu": "x"}}]}}, "spec.limits[0].max[cpu]"),
        ("csistoragecapacities.storage.k8s.io", {"capacity": "x"}, "capacity"),
        ("clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": "a/b"}}, "metadata.name"),
    ],
)
def test_small_refusals(resource: str, tree: Tree, field: str) -> None:
    assert field in fields(refusal(resource, tree))


def test_storage_class_stays() -> None:
    old = made("storageclasses.storage.k8s.io", {"provisioner": "p"})
    with pytest.raises(RestError) as caught:
        change("storageclasses.storage.k8s.io", old, {**deepcopy(old), "provisioner": "q"})
    assert fields(caught.value) == ["provisioner"]
