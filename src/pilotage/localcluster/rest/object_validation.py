"""What is refused about objects of all kinds: names and labels, workloads, services, priority classes.

Laws: one `Cause` per fault, nothing is changed; objects come here with defaults filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from pilotage.api.kinds import Kind
from pilotage.api.meta import LabelSelector
from pilotage.api.selectors import SelectorError, compile_label_selector
from pilotage.localcluster.rest.errors import (
    Cause,
    forbidden_field,
    invalid_value,
    quoted,
    required_value,
    unsupported_value,
)
from pilotage.localcluster.rest.names import (
    label_problem,
    path_segment_problem,
    qualified_problem,
    service_problem,
    subdomain_problem,
)
from pilotage.localcluster.rest.placement_validation import label_map_causes, label_selector_causes
from pilotage.localcluster.rest.pod_admission import HIGHEST_USER_PRIORITY, SYSTEM_PRIORITY_CLASSES
from pilotage.localcluster.rest.pod_validation import mount_causes, pod_spec_causes
from pilotage.localcluster.rest.trees import child, children, made, numbered, text
from pilotage.localcluster.store import Tree

_NAME_RULES: Final[dict[str, Callable[[str], str]]] = {
    "namespaces": label_problem,
    "services": service_problem,
    "roles.rbac.authorization.k8s.io": path_segment_problem,
    "rolebindings.rbac.authorization.k8s.io": path_segment_problem,
    "clusterroles.rbac.authorization.k8s.io": path_segment_problem,
    "clusterrolebindings.rbac.authorization.k8s.io": path_segment_problem,
}
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_ALWAYS: Final = ("Always",)
_MOST_OWNERS: Final = 20  # of a node's podPreemptionPolicy
_JOB_POLICIES: Final = ("OnFailure", "Never")


def validate(kind: Kind, tree: Tree) -> list[Cause]:
    """All faults of an object."""
    causes = list(_metadata(kind, tree))
    function = _RULES.get(kind.resource)
    if function is not None:
        causes += function(tree)
    return causes


def _metadata(kind: Kind, tree: Tree) -> Iterator[Cause]:
    metadata = child(tree, "metadata") or {}
    name = text(metadata, "name")
    if not name:
        yield required_value("metadata.name", "name or generateName is required")
    elif problem := _NAME_RULES.get(kind.resource, subdomain_problem)(name):
        yield invalid_value("metadata.name", name, problem)
    namespace = text(metadata, "namespace")
    if kind.namespaced and namespace and (problem := label_problem(namespace)):
        yield invalid_value("metadata.namespace", namespace, problem)
    if "labels" in metadata:
        yield from label_map_causes(child(metadata, "labels"), "metadata.labels")


def _pod(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    yield from pod_spec_causes(spec, "spec")
    yield from mount_causes(spec, "spec")


def _node(tree: Tree) -> Iterator[Cause]:
    for where, taint in numbered(child(tree, "spec"), "taints", "spec"):
        if not text(taint, "key"):
            yield required_value(f"{where}.key")
        if text(taint, "effect") not in (effects := ("NoSchedule", "PreferNoSchedule", "NoExecute")):
            yield unsupported_value(f"{where}.effect", text(taint, "effect"), effects)
    yield from _preemption_policy(child(child(tree, "spec"), "podPreemptionPolicy"))


def _preemption_policy(policy: Tree | None) -> Iterator[Cause]:
    """KEP-5836: who keeps the scheduler from preempting for resizes; a set of label keys."""
    owners = (policy or {}).get("disableResizePreemption") or []
    where = "spec.podPreemptionPolicy.disableResizePreemption"
    if len(owners) > _MOST_OWNERS:
        yield invalid_value(where, len(owners), f"must have at most {_MOST_OWNERS} items")
    for index, owner in enumerate(owners):
        if owner in owners[:index]:
            yield Cause(f"{where}[{index}]", "FieldValueDuplicate", f"Duplicate value: {quoted(owner)}")
        elif problem := qualified_problem(owner):
            yield invalid_value(f"{where}[{index}]", owner, problem)


# Workloads


def _replicated(tree: Tree) -> Iterator[Cause]:
    yield from _replicas(tree)
    yield from _selector(tree)
    yield from _template(tree, _ALWAYS)


def _daemon_set(tree: Tree) -> Iterator[Cause]:
    yield from _selector(tree)
    yield from _template(tree, _ALWAYS)


def _replication_controller(tree: Tree) -> Iterator[Cause]:
    yield from _replicas(tree)
    yield from _template(tree, _ALWAYS)


def _job(tree: Tree) -> Iterator[Cause]:
    yield from _template(tree, _JOB_POLICIES)


def _cron_job(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    if not text(spec, "schedule"):
        yield required_value("spec.schedule")
    for cause in _template(made(spec, "jobTemplate"), _JOB_POLICIES):
        yield Cause(f"spec.jobTemplate.{cause.field}", cause.reason, cause.message)


def _replicas(tree: Tree) -> Iterator[Cause]:
    replicas = made(tree, "spec").get("replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        yield invalid_value("spec.replicas", replicas, "must be an integer")
    elif replicas < 0:
        yield invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")


def _selector(tree: Tree) -> Iterator[Cause]:
    """apps/v1: a selector is required and must select the template's own labels."""
    spec = made(tree, "spec")
    selector = child(spec, "selector")
    if selector is None:
        yield required_value("spec.selector")
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid_value("spec.selector", selector, "empty selector is invalid")
        return
    labels = child(child(child(spec, "template"), "metadata"), "labels") or {}
    try:
        matcher = compile_label_selector(msgspec.convert(selector, LabelSelector), "spec.selector")
    except (SelectorError, msgspec.ValidationError):
        yield from label_selector_causes(selector, "spec.selector")
        return
    if not matcher.matches(labels):
        message = f"Invalid value: {quoted(labels)}: `selector` does not match template `labels`"
        yield Cause("spec.template.metadata.labels", "FieldValueInvalid", message)


def _template(tree: Tree, policies: tuple[str, ...]) -> Iterator[Cause]:
    template = child(child(tree, "spec"), "template") or {}
    labels = child(child(template, "metadata"), "labels")
    yield from label_map_causes(labels, "spec.template.metadata.labels")
    spec = child(template, "spec") or {}
    yield from pod_spec_causes(spec, "spec.template.spec")
    policy = text(spec, "restartPolicy")
    if policy not in policies:
        yield unsupported_value("spec.template.spec.restartPolicy", policy, policies)


# Others


def _service(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    kind = text(spec, "type")
    if kind not in _SERVICE_TYPES:
        yield unsupported_value("spec.type", kind, _SERVICE_TYPES)
    yield from label_map_causes(child(spec, "selector"), "spec.selector")
    ports = children(spec, "ports")
    if kind == "ExternalName":
        if not text(spec, "externalName"):
            yield required_value("spec.externalName")
    elif not ports and text(spec, "clusterIP") != "None":
        yield required_value("spec.ports")
    for where, port in numbered(spec, "ports", "spec"):
        number = port.get("port", 0)
        if not isinstance(number, int) or not 1 <= number <= 65535:
            yield invalid_value(f"{where}.port", number, "must be between 1 and 65535, inclusive")
        if len(ports) > 1 and not text(port, "name"):
            yield required_value(f"{where}.name")


def _priority_class(tree: Tree) -> Iterator[Cause]:
    name = text(child(tree, "metadata"), "name")
    value = tree.get("value")
    system = {text(one["metadata"], "name"): one["value"] for one in SYSTEM_PRIORITY_CLASSES}
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
        yield invalid_value("value", value, "must be a 32-bit integer")
    elif name.startswith("system-"):
        if system.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden_field("metadata.name", why)
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield forbidden_field("value", why)
    if tree.get("preemptionPolicy") not in _PREEMPTION_POLICIES:
        yield unsupported_value("preemptionPolicy", tree.get("preemptionPolicy"), _PREEMPTION_POLICIES)


def _disruption_budget(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid_value("spec", "minAvailable, maxUnavailable", "cannot be both set")
    yield from label_selector_causes(child(spec, "selector"), "spec.selector")


def _storage_class(tree: Tree) -> Iterator[Cause]:
    if not text(tree, "provisioner"):
        yield required_value("provisioner")


def _claim(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    if not spec.get("accessModes"):
        yield required_value("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in (child(child(spec, "resources"), "requests") or {}):
        yield required_value("spec.resources[storage]")


def _volume(tree: Tree) -> Iterator[Cause]:
    spec = made(tree, "spec")
    if not spec.get("accessModes"):
        yield required_value("spec.accessModes")
    if "storage" not in (child(spec, "capacity") or {}):
        yield required_value("spec.capacity")


_RULES: Final[dict[str, Callable[[Tree], Iterator[Cause]]]] = {
    "pods": _pod,
    "nodes": _node,
    "services": _service,
    "replicationcontrollers": _replication_controller,
    "deployments.apps": _replicated,
    "replicasets.apps": _replicated,
    "statefulsets.apps": _replicated,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "poddisruptionbudgets.policy": _disruption_budget,
    "storageclasses.storage.k8s.io": _storage_class,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
}
