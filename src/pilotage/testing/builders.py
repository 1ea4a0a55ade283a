"""Short ways to write Kubernetes objects in tests and examples: plain dicts, ready to create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Tree = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str | int = 4,
    memory: str | int = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    annotations: Mapping[str, str] | None = None,
    resources: Mapping[str, str | int] | None = None,
    kubelet: bool = True,
) -> Tree:
    """A node with that much allocatable. `kubelet=False`: nothing runs on it, whatever is bound there."""
    amounts = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods)}
    amounts |= {key: str(value) for key, value in (resources or {}).items()}
    own = {"kubernetes.io/hostname": name, **({"topology.kubernetes.io/zone": zone} if zone else {})}
    notes = {**(annotations or {}), **({} if kubelet else {"pilotage.dev/kubelet": "none"})}
    spec: Tree = {"taints": [dict(taint) for taint in taints]} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    metadata = {"name": name, "labels": {**own, **(labels or {})}, "annotations": notes}
    status = {"capacity": amounts, "allocatable": dict(amounts)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    grace: int | None = None,
    resources: Mapping[str, str | int] | None = None,
    **spec: Any,
) -> Tree:
    """A pod with one container; further keywords are fields of its spec (`tolerations=[...]`).

    A `priority` needs a PriorityClass of that value (`priority_class`), named `priority-<value>`.
    """
    requests = {key: str(value) for key, value in (resources or {}).items()}
    requests |= {key: str(value) for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container = {"name": "main", "image": "registry.example/main:1"}
    body: Tree = {
        "containers": [{**container, "resources": {"requests": requests}} if requests else container]
    }
    if priority:
        body["priorityClassName"] = priority_class_name(priority)
    if node_selector:
        body["nodeSelector"] = dict(node_selector)
    if grace is not None:
        body["terminationGracePeriodSeconds"] = grace
    metadata: Tree = {"name": name, "namespace": namespace}
    metadata |= {"labels": dict(labels)} if labels else {}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**body, **spec}}


def priority_class_name(value: int) -> str:
    return f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"


def priority_class(value: int, **fields: Any) -> Tree:
    metadata = {"name": priority_class_name(value)}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


def storage_class(
    name: str, *, provisioner: str = "example.com/disks", waits: bool = True, **fields: Any
) -> Tree:
    """`waits`: its claims are bound when a pod uses them, not at once."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **fields,
    }


def claim(
    name: str,
    storage_class: str | None = None,
    *,
    size: str = "1Gi",
    mode: str = "ReadWriteOnce",
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Tree:
    """A PersistentVolumeClaim."""
    body = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}
    if storage_class is not None:
        body["storageClassName"] = storage_class
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}


def local_volume(
    name: str,
    storage_class: str,
    node: str = "",
    *,
    size: str = "10Gi",
    mode: str = "ReadWriteOnce",
    **spec: Any,
) -> Tree:
    """A PersistentVolume that only `node` reaches; every node without one."""
    body: Tree = {
        "capacity": {"storage": size},
        "accessModes": [mode],
        "storageClassName": storage_class,
        "local": {"path": f"/disks/{name}"},
        **spec,
    }
    if node:
        there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


def uses(*claims: str) -> list[Tree]:
    """Volumes of a pod, one per claim: `pod("a", volumes=uses("data"))`."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]


def _template(template: Mapping[str, Any], labels: Mapping[str, str]) -> Tree:
    """A pod, turned into a template with these labels."""
    meta = template.get("metadata") or {}
    kept = {key: meta[key] for key in ("annotations",) if key in meta}
    return {
        "metadata": {**kept, "labels": {**(meta.get("labels") or {}), **labels}},
        "spec": template["spec"],
    }


def workload(
    kind: str,
    name: str,
    replicas: int,
    template: Mapping[str, Any] | None = None,
    *,
    namespace: str = "default",
    **spec: Any,
) -> Tree:
    """A Deployment, ReplicaSet or StatefulSet over pods like `template`, labelled `app: <name>`."""
    labels = {"app": name}
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": _template(template or pod(name, cpu="100m"), labels),
        **spec,
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}


def deployment(name: str, replicas: int, template: Mapping[str, Any] | None = None, **more: Any) -> Tree:
    return workload("Deployment", name, replicas, template, **more)


def stateful_set(name: str, replicas: int, template: Mapping[str, Any] | None = None, **more: Any) -> Tree:
    return workload("StatefulSet", name, replicas, template, **{"serviceName": name, **more})


def disruption_budget(
    name: str, selector: Mapping[str, str], *, namespace: str = "default", **spec: Any
) -> Tree:
    """`minAvailable=` or `maxUnavailable=` as keywords."""
    metadata = {"name": name, "namespace": namespace}
    body = {"selector": {"matchLabels": dict(selector)}, **spec}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": body,
    }
