"""What a pod asks for and what it occupies: the one aggregation that filter, score, preemption, quota and
explanations use.

Laws:
- An incoming pod counts by its spec alone (`pod_requests`). A pod on a node counts, per resource, the
  largest of three whole-pod sums (`pod_usage`): wanted (spec), allocated, and actual; data missing for
  a container falls back actual -> allocated -> spec. An infeasible resize leaves the wanted sum out.
- Sidecars (init containers that restart always) run on: they add to the containers' sum and to the peak of
  every init container declared after them. Finished init containers still count.
- Pod-level amounts replace the sum for cpu, memory and hugepages. Overhead is added once, last.
- Sums are exact; only the final amount is rounded up (cpu to milli, everything else to units). A resource
  of which nothing is asked is absent from the result.
- `QuantityError` names the path of the field (`spec.containers[0].resources.requests.cpu`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from pilotage.api.pods import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from pilotage.api.quantity import NANO, QuantityError, nanos, round_up

Nanos: TypeAlias = dict[str, int]
"""Exact amounts by resource, in units of 10**-9."""

_Source: TypeAlias = Callable[[Container, ContainerStatus | None], ResourceList | None]

CPU: Final = "cpu"
MEMORY: Final = "memory"
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024
_DEFAULTS: Final[Nanos] = {CPU: DEFAULT_CPU_MILLI * 10**6, MEMORY: DEFAULT_MEMORY_BYTES * NANO}
_NO_STATUS: Final[Mapping[str, ContainerStatus]] = {}


class PodAmounts(NamedTuple):
    """All sums of one pod. Maps: milli-CPU, bytes, units; pairs: (milli-CPU, bytes)."""

    requests: dict[str, int]
    usage: dict[str, int]
    nonzero: tuple[int, int]
    nonzero_usage: tuple[int, int]


def measure(pod: Pod) -> PodAmounts:
    """All sums at once, cheaper than one by one. Raises QuantityError."""
    exact = exact_requests(pod)
    requests = _rounded(exact)
    if _has_status_amounts(pod) or _level(pod):
        return PodAmounts(requests, pod_usage(pod), nonzero_requests(pod), nonzero_usage(pod))
    nonzero = _pair(exact) if _names_all(pod) else nonzero_requests(pod)
    return PodAmounts(requests, requests, nonzero, nonzero)


def pod_requests(pod: Pod, *, pod_level: bool = True) -> dict[str, int]:
    """What an incoming pod asks for, from its spec. Raises QuantityError.

    `pod_level=False` ignores `spec.resources`: NodeResourcesFit scores containers only.
    """
    return _rounded(exact_requests(pod, pod_level=pod_level))


def exact_requests(pod: Pod, *, pod_level: bool = True) -> Nanos:
    """As `pod_requests`, not rounded: in nanos, a named resource stays even when it is 0."""
    return _checked(pod, lambda: _wanted(pod, {}, pod_level))


def pod_usage(pod: Pod) -> dict[str, int]:
    """What a pod on a node occupies: the largest of wanted, allocated, actual. Raises QuantityError."""
    return _rounded(_checked(pod, lambda: _largest(pod, {})))


def pod_held(pod: Pod) -> dict[str, int]:
    """What a pod on a node has: the larger of allocated and actual, as the kubelet counts the pods beside
    one that is resized. Raises QuantityError."""
    return _rounded(_checked(pod, lambda: _held(pod, {})))


def pod_allocated(pod: Pod) -> dict[str, int]:
    """What a kubelet has promised a pod. Raises QuantityError."""
    return _rounded(_checked(pod, lambda: _allocated(pod, {})))


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """(milli-CPU, bytes) of an incoming pod for scoring; a container without a request counts a default.

    Pod-level requests are ignored here, as kube-scheduler does. Raises QuantityError.
    """
    return _pair(_checked(pod, lambda: _wanted(pod, _DEFAULTS, pod_level=False)))


def nonzero_usage(pod: Pod) -> tuple[int, int]:
    """(milli-CPU, bytes) of a pod on a node for scoring. Raises QuantityError.

    With pod-level resources a default stands in only for a resource that the whole pod does not name.
    """
    if not _level(pod):
        return _pair(_checked(pod, lambda: _largest(pod, _DEFAULTS)))
    plain = _checked(pod, lambda: _largest(pod, {}))
    missing = {name: amount for name, amount in _DEFAULTS.items() if name not in plain}
    return _pair(_checked(pod, lambda: _largest(pod, missing)) if missing else plain)


def is_pod_level(resource: str) -> bool:
    """Whether `spec.resources` may set it for the whole pod."""
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def is_resize_infeasible(pod: Pod) -> bool:
    return _is_resize_pending(pod, "Infeasible")


def is_resize_deferred(pod: Pod) -> bool:
    """Whether the kubelet waits for room on the pod's node."""
    return _is_resize_pending(pod, "Deferred")


def _is_resize_pending(pod: Pod, reason: str) -> bool:
    pending = pod.condition("PodResizePending")
    return pending is not None and pending.status == "True" and pending.reason == reason


# One aggregate per source


def _wanted(pod: Pod, defaults: Nanos, pod_level: bool = True) -> Nanos:
    level = _level(pod) if pod_level else None
    return _aggregate(pod, _NO_STATUS, _from_spec, level, defaults)


def _largest(pod: Pod, defaults: Nanos) -> Nanos:
    """Maximum per resource over the aggregates of spec, allocated and actual."""
    if not _has_status_amounts(pod):
        return _wanted(pod, defaults)
    result = _held(pod, defaults)
    return result if is_resize_infeasible(pod) else _raise_to(result, _wanted(pod, defaults))


def _held(pod: Pod, defaults: Nanos) -> Nanos:
    """Maximum per resource over the aggregates of allocated and actual."""
    actual_level = None
    if wanted_level := _level(pod):
        actual_level = _or(_requests(pod.status.resources), _or(pod.status.allocated_resources, wanted_level))
    actual = _aggregate(pod, _statuses(pod), _from_actual, actual_level, defaults)
    return _raise_to(_allocated(pod, defaults), actual)


def _allocated(pod: Pod, defaults: Nanos) -> Nanos:
    wanted_level = _level(pod)
    level = _or(pod.status.allocated_resources, wanted_level) if wanted_level else None
    return _aggregate(pod, _statuses(pod), _from_allocated, level, defaults)


def _statuses(pod: Pod) -> Mapping[str, ContainerStatus]:
    by_name = {s.name: s for s in pod.status.init_container_statuses or ()}
    by_name.update((s.name, s) for s in pod.status.container_statuses or ())
    return by_name


def _has_status_amounts(pod: Pod) -> bool:
    status = pod.status
    if status.resources is not None or status.allocated_resources is not None:
        return True
    for statuses in (status.container_statuses, status.init_container_statuses):
        for one in statuses or ():
            if one.resources is not None or one.allocated_resources is not None:
                return True
    return False


def _from_spec(container: Container, _: ContainerStatus | None) -> ResourceList | None:
    return container.resources.requests


def _from_allocated(container: Container, status: ContainerStatus | None) -> ResourceList | None:
    allocated = status.allocated_resources if status is not None else None
    return _or(allocated, container.resources.requests)


def _from_actual(container: Container, status: ContainerStatus | None) -> ResourceList | None:
    if status is not None and status.resources is not None:
        return status.resources.requests
    return _from_allocated(container, status)


def _level(pod: Pod) -> ResourceList | None:
    """Pod-level requests. Only their presence in the spec gives pod-level status a meaning."""
    return _requests(pod.spec.resources)


def _names_all(pod: Pod) -> bool:
    """Whether every container names cpu and memory, so that no default can count."""
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers or ():
            requests = container.resources.requests
            if not requests or CPU not in requests or MEMORY not in requests:
                return False
    return True


def _requests(resources: ResourceRequirements | None) -> ResourceList | None:
    return resources.requests if resources is not None else None


def _or(first: ResourceList | None, second: ResourceList | None) -> ResourceList | None:
    return first if first is not None else second


# Aggregation


def _aggregate(
    pod: Pod,
    statuses: Mapping[str, ContainerStatus],
    source: _Source,
    pod_level: ResourceList | None,
    defaults: Nanos,
) -> Nanos:
    spec = pod.spec
    total: Nanos = {}
    for container in spec.containers:
        amounts = _amounts(source(container, statuses.get(container.name)), defaults)
        total = _add(total, amounts) if total else amounts
    if spec.init_containers:
        total = _with_init_containers(total, pod, statuses, source, defaults)
    if pod_level:
        total.update((n, a) for n, a in _amounts(pod_level, {}).items() if is_pod_level(n))
    return _add(total, _amounts(spec.overhead, {})) if spec.overhead else total


def _with_init_containers(
    total: Nanos, pod: Pod, statuses: Mapping[str, ContainerStatus], source: _Source, defaults: Nanos
) -> Nanos:
    running: Nanos = {}  # sidecars declared so far
    peak: Nanos = {}
    for container in pod.spec.init_containers or ():
        amounts = _amounts(source(container, statuses.get(container.name)), defaults)
        if container.restart_policy == "Always":
            total = _add(total, amounts)
            running = _add(running, amounts)
            peak = _raise_to(peak, running)
        else:
            peak = _raise_to(peak, _add(amounts, running))
    return _raise_to(total, peak)


def _amounts(resources: ResourceList | None, defaults: Nanos) -> Nanos:
    amounts = dict(defaults)
    for name, quantity in (resources or {}).items():
        amount = nanos(quantity)
        if amount < 0:
            raise QuantityError(quantity, problem="must be greater than or equal to 0")
        amounts[name] = amount
    return amounts


def _add(left: Nanos, right: Nanos) -> Nanos:
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def _raise_to(left: Nanos, right: Nanos) -> Nanos:
    """Per resource the larger one."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = max(result.get(name, 0), amount)
    return result


def _rounded(amounts: Nanos) -> dict[str, int]:
    return {
        name: round_up(amount, 10**6 if name == CPU else NANO) for name, amount in amounts.items() if amount
    }


def _pair(amounts: Nanos) -> tuple[int, int]:
    return (round_up(amounts.get(CPU, 0), 10**6), round_up(amounts.get(MEMORY, 0), NANO))


# Naming the field of a bad quantity: only once something failed


def _checked(pod: Pod, compute: Callable[[], Nanos]) -> Nanos:
    try:
        return compute()
    except QuantityError as error:
        raise _located(pod, error) from None


def _located(pod: Pod, error: QuantityError) -> QuantityError:
    for path, resources in _resource_lists(pod):
        for name, quantity in (resources or {}).items():
            try:
                _amounts({name: quantity}, {})
            except QuantityError as found:
                return found.at(f"{path}.{name}")
    return error


def _resource_lists(pod: Pod) -> Iterator[tuple[str, ResourceList | None]]:
    spec, status = pod.spec, pod.status
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            yield f"spec.{field}[{index}].resources.requests", container.resources.requests
    yield "spec.resources.requests", _requests(spec.resources)
    yield "spec.overhead", spec.overhead
    yield "status.allocatedResources", status.allocated_resources
    yield "status.resources.requests", _requests(status.resources)
    for field, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for index, one in enumerate(statuses or ()):
            yield f"status.{field}[{index}].allocatedResources", one.allocated_resources
            yield f"status.{field}[{index}].resources.requests", _requests(one.resources)


__all__ = [
    "CPU",
    "DEFAULT_CPU_MILLI",
    "DEFAULT_MEMORY_BYTES",
    "MEMORY",
    "Nanos",
    "PodAmounts",
    "exact_requests",
    "is_pod_level",
    "is_resize_deferred",
    "is_resize_infeasible",
    "measure",
    "nonzero_requests",
    "nonzero_usage",
    "pod_allocated",
    "pod_held",
    "pod_requests",
    "pod_usage",
]
