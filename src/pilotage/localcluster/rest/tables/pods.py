"""Pods as rows: ready count, status text, restarts, age; wide: address, node, gates."""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.tables.layout import AGE, NAME, Layout, text, wide
from pilotage.localcluster.rest.timestamps import age_text, duration_text, parse_time
from pilotage.localcluster.rest.trees import child, children
from pilotage.localcluster.rest.trees import text as text_of
from pilotage.localcluster.store import Tree

_COLUMNS = (
    NAME,
    text("Ready", "Ready containers of all containers."),
    text("Status", "The phase, or what keeps the pod from it."),
    text("Restarts", "How often containers were restarted, and when last."),
    AGE,
    wide("IP", "The pod's address."),
    wide("Node", "The node that the pod was bound to."),
    wide("Nominated Node", "The node where room is being made for the pod."),
    wide("Readiness Gates", "Readiness gates that are met of all."),
)
_NODE_LOST = "NodeLost"


def _cells(tree: Tree, now: float) -> list[Any]:
    spec, status = child(tree, "spec") or {}, child(tree, "status") or {}
    running = _counted_statuses(tree)
    total = len(children(spec, "containers")) + len(_sidecar_names(spec))
    ready = sum(1 for container in running if container.get("ready") is True and _state(container, "running"))
    return [
        tree["metadata"]["name"],
        f"{ready}/{total}",
        status_text(tree),
        _restarts(children(status, "initContainerStatuses") + children(status, "containerStatuses"), now),
        age_text(tree["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, status),
    ]


def _sidecar_names(spec: Tree) -> set[str]:
    init = children(spec, "initContainers")
    return {text_of(container, "name") for container in init if container.get("restartPolicy") == "Always"}


def _counted_statuses(tree: Tree) -> list[Tree]:
    """The statuses of containers that should run: the main ones and sidecars."""
    status, sidecars = child(tree, "status"), _sidecar_names(child(tree, "spec") or {})
    init = children(status, "initContainerStatuses")
    return [c for c in init if text_of(c, "name") in sidecars] + children(status, "containerStatuses")


def _state(container: Tree, name: str) -> Tree | None:
    return child(child(container, "state"), name)


def _restarts(containers: list[Tree], now: float) -> str:
    count = sum(int(container.get("restartCount") or 0) for container in containers)
    ends = [parse_time((_last_end(c) or {}).get("finishedAt")) for c in containers]
    last = max((end for end in ends if end is not None), default=None)
    if not count or last is None:
        return str(count)
    return f"{count} ({duration_text(now - last)} ago)"


def _last_end(container: Tree) -> Tree | None:
    return child(child(container, "lastState"), "terminated")


def _gates(spec: Tree, status: Tree) -> str:
    gates = [text_of(gate, "conditionType") for gate in children(spec, "readinessGates")]
    if not gates:
        return "<none>"
    met = {text_of(c, "type") for c in children(status, "conditions") if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate in met)}/{len(gates)}"


def status_text(tree: Tree) -> str:
    """The Status column."""
    spec, status = child(tree, "spec") or {}, child(tree, "status") or {}
    reason = text_of(status, "reason") or text_of(status, "phase") or "Unknown"
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in _conditions(status)
    ):
        reason = "SchedulingGated"
    init = _init_text(spec, status)
    reason = _main_text(status, reason) if init is None else init
    if "deletionTimestamp" in tree["metadata"]:
        return "Unknown" if text_of(status, "reason") == _NODE_LOST else "Terminating"
    return reason


def _conditions(status: Tree) -> list[Tree]:
    return children(status, "conditions")


def _init_text(spec: Tree, status: Tree) -> str | None:
    """What init containers are up to; None when they are done or there are none."""
    sidecars = _sidecar_names(spec)
    total = len(children(spec, "initContainers"))
    for index, container in enumerate(children(status, "initContainerStatuses")):
        ended = _state(container, "terminated")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if text_of(container, "name") in sidecars and container.get("started") is True:
            continue
        if ended is not None:
            return f"Init:{_end_text(ended)}"
        waiting = text_of(_state(container, "waiting"), "reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{total}"
    return None


def _end_text(ended: Tree) -> str:
    """Why a container ended: its reason, else its signal, else its exit code."""
    if reason := text_of(ended, "reason"):
        return reason
    signal = ended.get("signal") or 0
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _main_text(status: Tree, reason: str) -> str:
    """What the main containers add; the first one that has something to say wins."""
    has_running = False
    for container in reversed(children(status, "containerStatuses")):
        waiting, ended = text_of(_state(container, "waiting"), "reason"), _state(container, "terminated")
        if waiting:
            reason = waiting
        elif ended is not None:
            reason = _end_text(ended)
        elif container.get("ready") is True and _state(container, "running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        is_ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(status))
        return "Running" if is_ready else "NotReady"
    return reason


LAYOUT = Layout(_COLUMNS, _cells)
