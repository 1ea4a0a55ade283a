"""Bound pods whose resize the kubelet deferred, for tests with `enginekit.World`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.enginekit import World, only

from pilotage.framework.calls import EvictPod
from pilotage.scheduling.messages import Effect, Submit

DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DISABLED = {
    "type": "PodResizePreemptionDisabled",
    "status": "True",
    "reason": "PreemptionDisabledByNodePolicy",
}


def has(cpu: str, *conditions: Mapping[str, Any], actual: str = "") -> dict[str, Any]:
    """The status that a kubelet writes: allocated, actual, and these conditions."""
    resources = {"requests": {"cpu": actual or cpu}}
    container = {"name": "c", "allocatedResources": {"cpu": cpu}, "resources": resources}
    return {"status": {"phase": "Running", "conditions": list(conditions), "containerStatuses": [container]}}


def runs(
    world: World,
    name: str,
    cpu: str,
    *conditions: Mapping[str, Any],
    allocated: str = "",
    priority: int = 0,
    node: str = "n1",
    **spec: Any,
) -> list[Effect]:
    """The informer shows a pod on a node: `cpu` is what its spec wants, `allocated` what it has."""
    bound = {"spec": {"nodeName": node, "priority": priority, **spec}}
    return world.pod(name, cpu, bound, has(allocated or cpu, *conditions))


def terminates(world: World, name: str) -> list[Effect]:
    """The informer shows the pod terminating after its preemption."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    tree = world.trees[f"ns/{name}"]
    conditions = [*tree["status"].get("conditions", ()), target]
    change = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": conditions}}
    return world.pod(name, None, {"spec": tree["spec"]}, change)


def evictions(effects: Sequence[Effect]) -> list[str]:
    """Names of the victims, in order."""
    return [s.call.key.name for s in only(effects, Submit) if isinstance(s.call, EvictPod)]


def evict_submits(effects: Sequence[Effect]) -> list[Submit]:
    return [s for s in only(effects, Submit) if isinstance(s.call, EvictPod)]


def told(world: World, name: str) -> str:
    """What the last attempt for the pod's resize found."""
    lines = [entry.text for entry in world.engine.story(f"uid-{name}")]
    return [line for line in lines if line.startswith("resize attempt")][-1]
