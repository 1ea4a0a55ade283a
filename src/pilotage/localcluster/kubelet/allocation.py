"""How a kubelet decides about resizes on its node: who may have what, in which order (pure).

Laws: a resize is taken as a whole or not at all; the other pods count with what is allocated to them, also
while they terminate; one that finds no room does not block those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pilotage.api.nodes import Node
from pilotage.api.pods import Container, Pod, ResourceRequirements
from pilotage.api.quantity import QuantityError, milli_value, value
from pilotage.api.requests import pod_requests
from pilotage.localcluster.rest.pod_admission import qos_class

Amounts: TypeAlias = Mapping[str, int]
PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
CPU_MANAGER: Final = "pilotage.dev/cpu-manager-policy"
_STATIC_CPU: Final = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
_STATIC_POD: Final = "In-place resize of static-pods is not supported"
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason`: "" when the resize is taken, else Deferred or Infeasible with `message`."""

    reason: str = ""
    message: str = ""


def decide(node: Node, pods: Sequence[Pod], allocated: Mapping[str, Amounts]) -> dict[str, Verdict]:
    """UID -> verdict for every pod of `pods` that wants something else than it has.

    `allocated`: by UID, for all pods of the node; what is taken counts for those after it.
    """
    held = dict(allocated)
    found: dict[str, Verdict] = {}
    for pod in sorted(pods, key=lambda pod: _rank(pod, held[pod.metadata.uid])):
        wanted = pod_requests(pod)
        verdict = _verdict(node, pod, wanted, held)
        if not verdict.reason:
            held[pod.metadata.uid] = wanted
        found[pod.metadata.uid] = verdict
    return found


def _rank(pod: Pod, allocated: Amounts) -> tuple[bool, int, bool, str, str]:
    """No increase first, then priority, Guaranteed before the others, the longest waiting."""
    grows = any(amount > allocated.get(name, 0) for name, amount in pod_requests(pod).items())
    pending = pod.condition(PENDING)
    since = (pending.last_transition_time if pending is not None else None) or "~"
    return (grows, -(pod.spec.priority or 0), not is_guaranteed(pod), since, pod.key)


def is_guaranteed(pod: Pod) -> bool:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    trees = [{"name": c.name, "resources": _tree(c.resources)} for c in containers]
    return qos_class({"containers": trees}) == "Guaranteed"


def _tree(resources: ResourceRequirements) -> dict[str, object]:
    return {"requests": resources.requests or {}, "limits": resources.limits or {}}


def _verdict(node: Node, pod: Pod, wanted: Amounts, held: Mapping[str, Amounts]) -> Verdict:
    if _MIRROR in (pod.metadata.annotations or {}):
        return Verdict("Infeasible", _STATIC_POD)
    if (node.metadata.annotations or {}).get(CPU_MANAGER) == "static" and is_guaranteed(pod):
        return Verdict("Infeasible", _STATIC_CPU)
    others = [amounts for uid, amounts in held.items() if uid != pod.metadata.uid]
    for resource in ("cpu", "memory"):
        asked, used = wanted.get(resource, 0), sum(amounts.get(resource, 0) for amounts in others)
        capacity = _offered(node, resource)
        if asked and asked + used > capacity:
            message = f"Node didn't have enough resource: {resource}, requested: {asked}, used: {used}, "
            return Verdict("Deferred", f"{message}capacity: {capacity}")
    return Verdict()


def _offered(node: Node, resource: str) -> int:
    try:
        return (milli_value if resource == "cpu" else value)((node.status.allocatable or {}).get(resource, 0))
    except QuantityError:
        return 0


def resizable(pod: Pod) -> Iterable[Container]:
    """Containers whose resources may change: all but init containers that end."""
    yield from (c for c in pod.spec.init_containers or () if c.restart_policy == "Always")
    yield from pod.spec.containers
