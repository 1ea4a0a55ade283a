"""What pods ask for and occupy, container by container, exactly."""

from __future__ import annotations

from typing import Any

from pilotage.api.quantity import NANO, nanos

Tree = dict[str, Any]
Amounts = dict[str, int]
Exact = dict[str, int]  # in units of 10**-9

SCORING_DEFAULTS: Exact = {"cpu": NANO // 10, "memory": 200 * 1024 * 1024 * NANO}


def whole(amounts: Exact) -> Amounts:
    """milli-CPU, bytes, units, rounded up; zeros left out."""
    return {
        name: -(-amount // (NANO // 1000 if name == "cpu" else NANO))
        for name, amount in amounts.items()
        if amount
    }


def requests(pod: Tree) -> Amounts:
    """What an incoming pod asks for."""
    return whole(_total(pod, _spec_of, _level(pod), {}))


def container_requests(pod: Tree) -> Amounts:
    """As if the pod had no pod-level resources."""
    return whole(_total(pod, _spec_of, {}, {}))


def requests_for_scoring(pod: Tree) -> Amounts:
    """cpu and memory of an incoming pod; containers that ask for nothing count a default."""
    return whole(_total(pod, _spec_of, {}, SCORING_DEFAULTS))


def usage(pod: Tree) -> Amounts:
    """What a pod on a node occupies."""
    return whole(_usage(pod, {}))


def usage_for_scoring(pod: Tree) -> Amounts:
    defaults = SCORING_DEFAULTS
    if _level(pod):
        named = _usage(pod, {})
        defaults = {name: amount for name, amount in defaults.items() if name not in named}
    return whole(_usage(pod, defaults))


def _usage(pod: Tree, defaults: Exact) -> Exact:
    status = pod.get("status") or {}
    level = _level(pod)
    allocated_level, actual_level = level, level
    if level:
        allocated_level = _first(status.get("allocatedResources"), level)
        actual_level = _first((status.get("resources") or {}).get("requests"), allocated_level)
    sums = [
        _total(pod, _allocated_of, allocated_level, defaults),
        _total(pod, _actual_of, actual_level, defaults),
    ]
    if not _is_infeasible(status):
        sums.append(_total(pod, _spec_of, level, defaults))
    return {name: max(s.get(name, 0) for s in sums) for s in sums for name in s}


def _is_infeasible(status: Tree) -> bool:
    return any(
        c["type"] == "PodResizePending" and c["status"] == "True" and c.get("reason") == "Infeasible"
        for c in status.get("conditions") or []
    )


def _level(pod: Tree) -> Tree:
    return (pod["spec"].get("resources") or {}).get("requests") or {}


def _first(first: Tree | None, second: Tree) -> Tree:
    return second if first is None else first


def _spec_of(container: Tree, _: Tree) -> Tree:
    return (container.get("resources") or {}).get("requests") or {}


def _allocated_of(container: Tree, status: Tree) -> Tree:
    return _first(status.get("allocatedResources"), _spec_of(container, status))


def _actual_of(container: Tree, status: Tree) -> Tree:
    if status.get("resources") is not None:
        return status["resources"].get("requests") or {}
    return _allocated_of(container, status)


def _total(pod: Tree, source: Any, level: Tree, defaults: Exact) -> Exact:
    status = pod.get("status") or {}
    statuses = (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or [])
    by_name = {one["name"]: one for one in statuses}

    def ask(container: Tree) -> Exact:
        return {**defaults, **exact(source(container, by_name.get(container["name"], {})))}

    running: Exact = {}
    peaks: list[Exact] = []
    for container in pod["spec"].get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            running = _plus(running, ask(container))
            peaks.append(running)
        else:
            peaks.append(_plus(running, ask(container)))
    total = running
    for container in pod["spec"]["containers"]:
        total = _plus(total, ask(container))
    for peak in peaks:
        total = {name: max(total.get(name, 0), peak.get(name, 0)) for name in total | peak}
    for name, amount in exact(level).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total = {**total, name: amount}
    return _plus(total, exact(pod["spec"].get("overhead") or {}))


def exact(resources: Tree) -> Exact:
    return {name: nanos(quantity) for name, quantity in resources.items()}


def _plus(left: Exact, right: Exact) -> Exact:
    return {name: left.get(name, 0) + right.get(name, 0) for name in left | right}
