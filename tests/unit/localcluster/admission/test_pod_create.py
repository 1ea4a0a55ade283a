"""What the API server adds to a new Pod."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilotage.api.kinds import KINDS
from pilotage.localcluster.rest.admission import SYSTEM_PRIORITY_CLASSES, prepare_create, prepare_update
from pilotage.localcluster.rest.errors import RestError
from pilotage.localcluster.rest.pod_admission import complete_pod, qos_class

Tree = dict[str, Any]
PODS = {kind.resource: kind for kind in KINDS}["pods"]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def container(name: str = "c", requests: Any = None, limits: Any = None, **more: Any) -> Tree:
    tree: Tree = {"name": name, "image": "app:1", **more}
    resources = {
        key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None
    }
    if resources:
        tree["resources"] = resources
    return tree


def pod(*containers: Tree, labels: Any = None, **spec: Any) -> Tree:
    metadata: Tree = {"name": "p", "namespace": "ns"}
    if labels is not None:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"containers": list(containers or (container(),)), **spec}}


def created(tree: Tree, *classes: Tree) -> Tree:
    prepare_create(PODS, tree, classes)
    return tree


def priority_class(name: str, value: int, **more: Any) -> Tree:
    return {"metadata": {"name": name}, "value": value, **more}


def test_spec_defaults() -> None:
    spec = created(pod())["spec"]
    expected = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {key: spec[key] for key in expected} == expected


def test_given_values_stay() -> None:
    spec = created(
        pod(
            restartPolicy="Never",
            terminationGracePeriodSeconds=0,
            schedulerName="mine",
            serviceAccountName="robot",
            enableServiceLinks=False,
        )
    )["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Never", 0)
    assert (spec["schedulerName"], spec["serviceAccountName"]) == ("mine", "robot")
    assert spec["enableServiceLinks"] is False


def test_a_null_is_an_absent_field() -> None:
    tree = created(pod(restartPolicy=None, nodeName=None, tolerations=None))
    assert tree["spec"]["restartPolicy"] == "Always"
    assert "nodeName" not in tree["spec"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host:5000/app", "Always"),
        ("host:5000/app:1", "IfNotPresent"),
        ("app@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_image_pull_policy(image: str, policy: str) -> None:
    one = created(pod({"name": "c", "image": image}))["spec"]["containers"][0]
    assert one["imagePullPolicy"] == policy


def test_container_defaults() -> None:
    given = container(
        ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        readinessProbe={"httpGet": {"port": 80}},
        livenessProbe={"exec": {"command": ["x"]}, "timeoutSeconds": 7},
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    )
    one = created(pod(given))["spec"]["containers"][0]
    assert one["terminationMessagePath"] == "/dev/termination-log"
    assert one["terminationMessagePolicy"] == "File"
    assert one["resources"] == {}
    assert [port["protocol"] for port in one["ports"]] == ["TCP", "UDP"]
    assert one["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert one["livenessProbe"]["timeoutSeconds"] == 7
    assert one["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_init_containers_get_defaults_too() -> None:
    one = created(pod(initContainers=[container("i", limits={"cpu": "1"})]))["spec"]["initContainers"][0]
    assert one["resources"]["requests"] == {"cpu": "1"}
    assert one["terminationMessagePolicy"] == "File"


def test_volume_defaults() -> None:
    volumes = [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "configMap": {"name": "m", "defaultMode": 0o400}},
        {"name": "d", "hostPath": {"path": "/x"}},
        {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    found = created(pod(volumes=volumes))["spec"]["volumes"]
    assert found[0] == {"name": "a", "emptyDir": {}}
    assert found[1]["secret"]["defaultMode"] == 0o644
    assert found[2]["configMap"]["defaultMode"] == 0o400
    assert found[3]["hostPath"]["type"] == ""
    assert found[4]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_host_network_takes_the_container_port() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    one = created(pod(container(ports=ports), hostNetwork=True))["spec"]["containers"][0]
    assert [port["hostPort"] for port in one["ports"]] == [80, 81]


def test_requests_from_limits_per_resource() -> None:
    one = created(pod(container(requests={"cpu": "100m"}, limits={"cpu": "1", "memory": "1024Mi"})))
    assert one["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}


def test_pod_level_requests_from_containers_else_from_limits() -> None:
    level = {"limits": {"cpu": "4", "memory": "2Gi"}}
    spec = created(
        pod(container(requests={"cpu": "1.5"}), container("d", requests={"cpu": "1"}), resources=level)
    )["spec"]
    assert spec["resources"]["requests"] == {"cpu": "2500m", "memory": "2Gi"}


def test_quantities_become_canonical() -> None:
    one = created(pod(container(requests={"cpu": 0.5, "memory": "1024Mi"}), overhead={"cpu": "1000m"}))
    assert one["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert one["spec"]["overhead"] == {"cpu": "1"}


def test_default_tolerations() -> None:
    assert created(pod())["spec"]["tolerations"] == [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        ({"operator": "Exists"}, []),
        ({"operator": "Exists", "effect": "NoExecute"}, []),
        ({"operator": "Exists", "effect": "NoSchedule"}, ["not-ready", "unreachable"]),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, ["unreachable"]),
        ({"key": "other", "operator": "Exists"}, ["not-ready", "unreachable"]),
    ],
)
def test_own_tolerations_take_the_place_of_defaults(toleration: Tree, added: list[str]) -> None:
    found = created(pod(tolerations=[toleration]))["spec"]["tolerations"]
    assert found[0] == toleration
    assert [one["key"].partition("/")[2] for one in found[1:]] == added


def test_status_is_new() -> None:
    tree = {**pod(), "status": {"phase": "Running", "nominatedNodeName": "n"}}
    assert created(tree)["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_gates_give_the_condition() -> None:
    status = created(pod(schedulingGates=[{"name": "example.com/hold"}]))["status"]
    condition = status["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


# Priority


def test_priority_of_the_class() -> None:
    spec = created(pod(priorityClassName="high"), priority_class("high", 7, preemptionPolicy="Never"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


@pytest.mark.parametrize("name", [one["metadata"]["name"] for one in SYSTEM_PRIORITY_CLASSES])
def test_system_classes_need_not_be_stored(name: str) -> None:
    assert created(pod(priorityClassName=name))["spec"]["priority"] >= 2_000_000_000


def test_global_default_is_the_lowest_of_several() -> None:
    classes = [priority_class("a", 5, globalDefault=True), priority_class("b", 3, globalDefault=True)]
    spec = created(pod(), *classes)["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("b", 3)


def test_unknown_class_is_forbidden() -> None:
    with pytest.raises(RestError) as caught:
        created(pod(priorityClassName="none"))
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert caught.value.message == 'pods "p" is forbidden: no PriorityClass with name none was found'


def test_priority_may_be_given_only_as_computed() -> None:
    assert (
        created(pod(priority=7, priorityClassName="high"), priority_class("high", 7))["spec"]["priority"] == 7
    )
    with pytest.raises(RestError) as caught:
        created(pod(priority=5))
    assert caught.value.code == 403
    assert "the integer value of priority (5) must not be provided in pod spec" in caught.value.message
    with pytest.raises(RestError) as caught:
        created(pod(preemptionPolicy="Never"))
    assert caught.value.code == 403
    assert "PreemptionPolicy (Never)" in caught.value.message


# Label keys


def test_match_label_keys_are_merged_into_affinity_terms() -> None:
    def term(**more: Any) -> Tree:
        return {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "a"}},
            "matchLabelKeys": ["hash", "absent"],
            **more,
        }

    affinity = {
        "podAffinity": {REQUIRED: [term()]},
        "podAntiAffinity": {
            PREFERRED: [{"weight": 1, "podAffinityTerm": term(mismatchLabelKeys=["tenant"])}],
        },
    }
    tree = created(pod(labels={"app": "a", "hash": "1", "tenant": "t"}, affinity=affinity))
    found = tree["spec"]["affinity"]
    expected = {"key": "hash", "operator": "In", "values": ["1"]}
    required = found["podAffinity"][REQUIRED][0]
    assert required["labelSelector"] == {"matchLabels": {"app": "a"}, "matchExpressions": [expected]}
    preferred = found["podAntiAffinity"][PREFERRED][0]["podAffinityTerm"]
    tenant = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
    assert preferred["labelSelector"]["matchExpressions"] == [expected, tenant]


def test_match_label_keys_are_merged_into_spread_constraints_once() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["hash"],
    }
    tree = pod(labels={"hash": "1"}, topologySpreadConstraints=[constraint])
    complete_pod(tree, ())
    once = deepcopy(tree)
    complete_pod(tree, ())
    assert tree == once
    selector = tree["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert selector == {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]}


# QoS

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{}]}, "BestEffort"),
        ({"containers": [container(requests={"cpu": "0"})]}, "BestEffort"),
        ({"containers": [container(requests={"x/y": "1"})]}, "BestEffort"),
        ({"containers": [container(requests={"cpu": "1"})]}, "Burstable"),
        ({"containers": [container(requests=BOTH, limits=BOTH)]}, "Guaranteed"),
        ({"containers": [container(requests=BOTH, limits={**BOTH, "cpu": "2"})]}, "Burstable"),
        ({"containers": [container(requests=BOTH, limits={"cpu": "1"})]}, "Burstable"),
        ({"containers": [container(requests=BOTH, limits=BOTH), container("d")]}, "Burstable"),
        (
            {"containers": [container(requests=BOTH, limits=BOTH)], "initContainers": [container("i")]},
            "Burstable",
        ),
        ({"containers": [container()], "resources": {"requests": BOTH, "limits": BOTH}}, "Guaranteed"),
        (
            {
                "containers": [container(requests=BOTH, limits=BOTH)],
                "resources": {"requests": {"cpu": "1"}},
            },
            "Burstable",
        ),
        ({"containers": [{}], "ephemeralContainers": [container(requests=BOTH)]}, "BestEffort"),
    ],
)
def test_qos_class(spec: Tree, expected: str) -> None:
    assert qos_class(spec) == expected


def test_guaranteed_by_requests_from_limits() -> None:
    assert created(pod(container(limits=BOTH)))["status"]["qosClass"] == "Guaranteed"


def test_defaulting_again_changes_nothing() -> None:
    once = created(
        pod(
            container(limits=BOTH, ports=[{"containerPort": 1}]),
            volumes=[{"name": "v"}],
            hostNetwork=True,
            resources={"limits": BOTH},
        )
    )
    again = deepcopy(once)
    prepare_update(PODS, once, again)
    assert again == once
