"""What admission adds to a new Pod: priority, default tolerations, label keys, gate condition, QoS class.

Laws: an explicit value that contradicts the PriorityClass is refused (403), never overwritten. The terms'
`matchLabelKeys` and the constraints' are merged into their label selectors with the pod's own values, so that
readers need to know nothing of them; keys that the pod lacks and terms without a selector stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pilotage.api.kinds import Kind, by_resource
from pilotage.api.quantity import nanos
from pilotage.localcluster.rest.errors import RestError, forbidden
from pilotage.localcluster.rest.pod_defaults import default_pod
from pilotage.localcluster.rest.trees import child, children, made, text, texts
from pilotage.localcluster.store import Tree

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"
_PREEMPT: Final = "PreemptLowerPriority"
_TOLERATED_SECONDS: Final = 300
_TOLERATED_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_QOS_RESOURCES: Final = ("cpu", "memory")


def _system_class(name: str, value: int, description: str) -> Tree:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
        "preemptionPolicy": _PREEMPT,
    }


SYSTEM_PRIORITY_CLASSES: Final = (
    _system_class("system-node-critical", 2_000_001_000, "Pods that must not be moved from their node."),
    _system_class("system-cluster-critical", 2_000_000_000, "Pods that must run in the cluster."),
)


def complete_pod(tree: Tree, priority_classes: Sequence[Tree]) -> None:
    """Everything but status that the API server adds to a new Pod. Raises RestError (403)."""
    default_pod(tree)
    spec = made(tree, "spec")
    if not text(spec, "serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    admit_priority(tree, priority_classes)
    _add_tolerations(spec)
    _merge_label_keys(tree)


def new_status(tree: Tree) -> Tree:
    """The status of a Pod that was just created."""
    status: Tree = {"phase": "Pending", "qosClass": qos_class(made(tree, "spec"))}
    if children(made(tree, "spec"), "schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": None,
            "reason": "SchedulingGated",
            "message": GATED_MESSAGE,
        }
        status["conditions"] = [condition]
    return status


# Priority


def admit_priority(tree: Tree, priority_classes: Sequence[Tree]) -> None:
    """Sets priority and preemption policy from the class. Raises RestError 403."""
    spec = made(tree, "spec")
    found = _priority_class(tree, text(spec, "priorityClassName"), priority_classes)
    priority, policy = 0, _PREEMPT
    if found is not None:
        spec["priorityClassName"] = text(child(found, "metadata"), "name")
        priority, policy = found.get("value", 0), text(found, "preemptionPolicy") or _PREEMPT
    if spec.setdefault("priority", priority) != priority:
        raise _refused(
            tree,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    if spec.setdefault("preemptionPolicy", policy) != policy:
        raise _refused(
            tree,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod "
            f"spec; priority admission controller computed {policy} from the given PriorityClass name",
        )


def _priority_class(tree: Tree, name: str, classes: Sequence[Tree]) -> Tree | None:
    """The class of that name; without a name the global default, the lowest when there are several."""
    if name:
        for one in (*classes, *SYSTEM_PRIORITY_CLASSES):
            if text(child(one, "metadata"), "name") == name:
                return one
        raise _refused(tree, f"no PriorityClass with name {name} was found")
    defaults = [one for one in classes if one.get("globalDefault") is True]
    return min(defaults, key=lambda one: int(one.get("value", 0))) if defaults else None


def _refused(tree: Tree, why: str) -> RestError:
    return forbidden(_pods(), text(child(tree, "metadata"), "name"), why)


def _pods() -> Kind:
    kind = by_resource("pods")
    assert kind is not None
    return kind


# Tolerations


def _add_tolerations(spec: Tree) -> None:
    """Stay 5 minutes on a node that is not ready or unreachable, unless the pod says otherwise."""
    present = children(spec, "tolerations")
    missing = [key for key in _TOLERATED_KEYS if not any(_is_for_eviction(t, key) for t in present)]
    if missing:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
            for key in missing
        ]
        spec["tolerations"] = [*present, *added]


def _is_for_eviction(toleration: Tree, key: str) -> bool:
    return text(toleration, "key") in ("", key) and text(toleration, "effect") in ("", "NoExecute")


# Label keys


def _merge_label_keys(tree: Tree) -> None:
    spec = made(tree, "spec")
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    labels = child(child(tree, "metadata"), "labels") or {}
    for term in _affinity_terms(spec):
        _merge(term, "matchLabelKeys", "In", labels)
        _merge(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in children(spec, "topologySpreadConstraints"):
        _merge(constraint, "matchLabelKeys", "In", labels)


def _merge(term: Tree, field: str, operator: str, labels: Tree) -> None:
    selector = child(term, "labelSelector")
    keys = [key for key in texts(term, field) if key in labels]
    if selector is None or not keys:
        return
    merged = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys]
    present = children(selector, "matchExpressions")
    selector["matchExpressions"] = [*present, *(one for one in merged if one not in present)]


def _affinity_terms(spec: Tree) -> Iterator[Tree]:
    """All pod affinity and anti-affinity terms."""
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = child(child(spec, "affinity"), name)
        yield from children(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        for weighted in children(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
            if (term := child(weighted, "podAffinityTerm")) is not None:
                yield term


# QoS


def qos_class(spec: Tree) -> str:
    """Guaranteed, Burstable or BestEffort, from canonical quantities; pod-level resources take precedence."""
    level = child(spec, "resources")
    if level is not None and (level.get("requests") or level.get("limits")):
        parts = [level]
    else:
        containers = (*children(spec, "containers"), *children(spec, "initContainers"))
        parts = [child(container, "resources") or {} for container in containers]
    requests, limits = _totals(parts, "requests"), _totals(parts, "limits")
    if not requests and not limits:
        return "BestEffort"
    is_limited = all(len(_totals([part], "limits")) == len(_QOS_RESOURCES) for part in parts)
    return "Guaranteed" if is_limited and requests == limits else "Burstable"


def _totals(parts: Sequence[Tree], field: str) -> dict[str, int]:
    """Sums of cpu and memory; what is zero is left out."""
    totals: dict[str, int] = {}
    for part in parts:
        amounts = child(part, field) or {}
        for name in _QOS_RESOURCES:
            if name in amounts and (amount := nanos(amounts[name])) > 0:
                totals[name] = totals.get(name, 0) + amount
    return totals
