"""Defaults of all kinds that people create: `apply_defaults` fills in what they left out.

Laws: one function per kind in one table; a field that is present keeps its value; applying twice changes
nothing more. Pure tree changes: no time, no names, no addresses (the server gives those).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest.pod_defaults import default_pod, default_template
from pilotage.localcluster.rest.trees import child, children, made, set_absent
from pilotage.localcluster.store import Tree

__all__ = ["apply_defaults", "default_pod", "default_template"]


def apply_defaults(kind: Kind, tree: Tree) -> None:
    """Fills in the defaults of an object of this kind, in place."""
    function = _DEFAULTS.get(kind.resource)
    if function is not None:
        function(tree)


def default_node_status(tree: Tree) -> None:
    """Allocatable is the capacity until somebody says otherwise."""
    status = child(tree, "status")
    if status and "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _node(tree: Tree) -> None:
    made(tree, "spec")
    default_node_status(tree)


def _namespace(tree: Tree) -> None:
    metadata = made(tree, "metadata")
    made(metadata, "labels")["kubernetes.io/metadata.name"] = metadata.get("name", "")
    made(tree, "spec").setdefault("finalizers", ["kubernetes"])
    made(tree, "status").setdefault("phase", "Active")


def _deployment(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)))
    _rolling_update(made(spec, "strategy"), (("maxUnavailable", "25%"), ("maxSurge", "25%")))
    default_template(made(spec, "template"))


def _replica_set(tree: Tree) -> None:
    spec = made(tree, "spec")
    spec.setdefault("replicas", 1)
    template = made(spec, "template")
    default_template(template)
    _labels_from_template(tree, template)


def _replication_controller(tree: Tree) -> None:
    spec = made(tree, "spec")
    spec.setdefault("replicas", 1)
    template = made(spec, "template")
    default_template(template)
    _labels_from_template(tree, template)
    labels = child(child(template, "metadata"), "labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _stateful_set(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("podManagementPolicy", "OrderedReady")))
    _rolling_update(made(spec, "updateStrategy"), (("partition", 0),))
    retention = made(spec, "persistentVolumeClaimRetentionPolicy")
    set_absent(retention, (("whenDeleted", "Retain"), ("whenScaled", "Retain")))
    default_template(made(spec, "template"))
    for claim in children(spec, "volumeClaimTemplates"):
        set_absent(claim, (("kind", "PersistentVolumeClaim"), ("apiVersion", "v1")))
        _claim(claim)


def _daemon_set(tree: Tree) -> None:
    spec = made(tree, "spec")
    spec.setdefault("revisionHistoryLimit", 10)
    _rolling_update(made(spec, "updateStrategy"), (("maxUnavailable", 1), ("maxSurge", 0)))
    default_template(made(spec, "template"))


def _rolling_update(strategy: Tree, values: tuple[tuple[str, object], ...]) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        set_absent(made(strategy, "rollingUpdate"), values)


def _labels_from_template(tree: Tree, template: Tree) -> None:
    labels = child(child(template, "metadata"), "labels")
    metadata = made(tree, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _job(tree: Tree) -> None:
    _job_spec(made(tree, "spec"))


def _job_spec(spec: Tree) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    set_absent(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("manualSelector", False),
        ),
    )
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", policy)
    default_template(made(spec, "template"))


def _cron_job(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(
        spec,
        (
            ("concurrencyPolicy", "Allow"),
            ("suspend", False),
            ("successfulJobsHistoryLimit", 3),
            ("failedJobsHistoryLimit", 1),
        ),
    )
    _job_spec(made(made(spec, "jobTemplate"), "spec"))


def _service(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(spec, (("type", "ClusterIP"), ("sessionAffinity", "None")))
    for port in children(spec, "ports"):
        port.setdefault("protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])
    if spec["sessionAffinity"] == "ClientIP":
        made(made(spec, "sessionAffinityConfig"), "clientIP").setdefault("timeoutSeconds", 10800)
    if spec["type"] == "ExternalName":
        return
    set_absent(spec, (("internalTrafficPolicy", "Cluster"), ("ipFamilyPolicy", "SingleStack")))
    spec.setdefault("ipFamilies", ["IPv4"])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if isinstance(address := spec.get("clusterIP"), str) and address:
        spec.setdefault("clusterIPs", [address])


def _endpoints(tree: Tree) -> None:
    for subset in children(tree, "subsets"):
        for port in children(subset, "ports"):
            port.setdefault("protocol", "TCP")


def _secret(tree: Tree) -> None:
    tree.setdefault("type", "Opaque")


def _claim(tree: Tree) -> None:
    made(tree, "spec").setdefault("volumeMode", "Filesystem")
    made(tree, "status").setdefault("phase", "Pending")


def _volume(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(spec, (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")))
    made(tree, "status").setdefault("phase", "Pending")


def _storage_class(tree: Tree) -> None:
    set_absent(tree, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def _csi_driver(tree: Tree) -> None:
    spec = made(tree, "spec")
    set_absent(
        spec,
        (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
        ),
    )
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _priority_class(tree: Tree) -> None:
    set_absent(tree, (("preemptionPolicy", "PreemptLowerPriority"), ("value", 0)))


def _autoscaler(tree: Tree) -> None:
    made(tree, "spec").setdefault("minReplicas", 1)


_DEFAULTS: Final[dict[str, Callable[[Tree], None]]] = {
    "pods": default_pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "endpoints": _endpoints,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "replicationcontrollers": _replication_controller,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "storageclasses.storage.k8s.io": _storage_class,
    "csidrivers.storage.k8s.io": _csi_driver,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
}
