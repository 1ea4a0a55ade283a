"""What is refused about a pod spec, in pods and in templates: one `Cause` per fault, with its field.

Laws: specs come here with defaults filled in and quantities canonical; nothing is changed. Rules are those
whose breach would mislead a scheduler, a kubelet or a person; the rest of the API's rules is not checked.
Placement rules (affinity, spread, tolerations, gates) are in `placement_validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pilotage.api.quantity import NANO, nanos
from pilotage.localcluster.rest.errors import Cause, invalid_value, required_value, unsupported_value
from pilotage.localcluster.rest.names import label_problem, qualified_problem
from pilotage.localcluster.rest.placement_validation import placement_causes
from pilotage.localcluster.rest.trees import child, children, numbered, text
from pilotage.localcluster.store import Tree

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = re.compile(r"hugepages-[0-9]+(Ki|Mi|Gi|Ti)?")
_POD_LEVEL: Final = ("cpu", "memory")


def pod_spec_causes(spec: Tree, path: str) -> list[Cause]:
    """All faults of a pod spec at `path`."""
    causes = [
        *_choice(spec, path, "restartPolicy", _RESTART_POLICIES),
        *_choice(spec, path, "dnsPolicy", _DNS_POLICIES),
        *_numbers(spec, path),
        *_container_list(spec, path),
        *_volumes(spec, path),
    ]
    if resources := child(spec, "resources"):
        causes += _resources(resources, f"{path}.resources", _pod_level_problem)
    for name in child(spec, "overhead") or ():
        if problem := _resource_problem(name):
            causes.append(invalid_value(f"{path}.overhead[{name}]", name, problem))
    causes += placement_causes(spec, path)
    return causes


def mount_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Mounts must name volumes of the pod. Not for templates of a StatefulSet: its claims come later."""
    volumes = {text(volume, "name") for volume in children(spec, "volumes")}
    for field in ("containers", "initContainers"):
        for where, container in numbered(spec, field, path):
            for at, mount in numbered(container, "volumeMounts", where):
                name = text(mount, "name")
                if name not in volumes:
                    yield Cause(f"{at}.name", "FieldValueNotFound", f'Not found: "{name}"')


def _choice(tree: Tree, path: str, field: str, allowed: Sequence[str]) -> Iterator[Cause]:
    if field in tree and tree[field] not in allowed:
        yield unsupported_value(f"{path}.{field}", tree[field], allowed)


def _numbers(spec: Tree, path: str) -> Iterator[Cause]:
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        where = f"{path}.terminationGracePeriodSeconds"
        yield invalid_value(where, grace, "must be greater than or equal to 0")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline < 2**31:
        yield invalid_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647")


# Containers


def _container_list(spec: Tree, path: str) -> Iterator[Cause]:
    if not children(spec, "containers"):
        yield required_value(f"{path}.containers")
    names: set[str] = set()
    ports: set[tuple[object, ...]] = set()
    for field in ("containers", "initContainers"):
        for where, container in numbered(spec, field, path):
            yield from _container(container, where, names)
            yield from _ports(container, where, ports, spec.get("hostNetwork") is True)
            if field == "initContainers":
                yield from _choice(container, where, "restartPolicy", _RESTART_POLICIES)


def _container(container: Tree, path: str, names: set[str]) -> Iterator[Cause]:
    name = text(container, "name")
    if not name:
        yield required_value(f"{path}.name")
    elif problem := label_problem(name):
        yield invalid_value(f"{path}.name", name, problem)
    elif name in names:
        yield Cause(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
    names.add(name)
    image = text(container, "image")
    if not image:
        yield required_value(f"{path}.image")
    elif image != image.strip():
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _choice(container, path, "imagePullPolicy", _PULL_POLICIES)
    if resources := child(container, "resources"):
        yield from _resources(resources, f"{path}.resources", _resource_problem)


def _ports(
    container: Tree, path: str, taken: set[tuple[object, ...]], is_host_network: bool
) -> Iterator[Cause]:
    for where, port in numbered(container, "ports", path):
        number, host_port = port.get("containerPort", 0), port.get("hostPort", 0)
        if number == 0:
            yield required_value(f"{where}.containerPort")
        elif not _is_port(number):
            yield invalid_value(f"{where}.containerPort", number, "must be between 1 and 65535, inclusive")
        yield from _choice(port, where, "protocol", _PROTOCOLS)
        if not host_port:
            continue
        if not _is_port(host_port):
            yield invalid_value(f"{where}.hostPort", host_port, "must be between 1 and 65535, inclusive")
        elif is_host_network and host_port != number:
            yield invalid_value(
                f"{where}.hostPort", host_port, "must match `containerPort` on the host network"
            )
        key = (port.get("protocol", "TCP"), port.get("hostIP", ""), host_port)
        if key in taken:
            yield Cause(f"{where}.hostPort", "FieldValueDuplicate", f"Duplicate value: {host_port}")
        taken.add(key)


def _is_port(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 65535


# Resources


def _resources(resources: Tree, path: str, name_problem: Callable[[str], str]) -> Iterator[Cause]:
    requests, limits = child(resources, "requests") or {}, child(resources, "limits") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            where = f"{path}.{field}[{name}]"
            if problem := name_problem(name):
                yield invalid_value(where, name, problem)
            elif _is_counted(name) and nanos(quantity) % NANO:
                yield invalid_value(where, quantity, "must be an integer")
    for name, quantity in requests.items():
        if name in limits and (problem := _limit_problem(name, quantity, limits[name])):
            yield invalid_value(f"{path}.requests", quantity, problem)


def _limit_problem(name: str, request: str, limit: str) -> str:
    asked, allowed = nanos(request), nanos(limit)
    if asked > allowed:
        return f"must be less than or equal to {name} limit of {limit}"
    if asked != allowed and not _is_overcommitable(name):
        return f"must be equal to {name} limit of {limit}"
    return ""


def _is_overcommitable(name: str) -> bool:
    return name in _STANDARD


def _is_counted(name: str) -> bool:
    """Extended resources are pieces."""
    return name not in _STANDARD and not name.startswith("hugepages-")


def _resource_problem(name: str) -> str:
    if name in _STANDARD or _HUGE_PAGES.fullmatch(name):
        return ""
    if "/" not in name:
        return "must be cpu, memory, ephemeral-storage, hugepages-<size> or a name with a domain"
    return qualified_problem(name)


def _pod_level_problem(name: str) -> str:
    if name in _POD_LEVEL or _HUGE_PAGES.fullmatch(name):
        return ""
    return "must be cpu, memory or hugepages-<size> at the level of the pod"


# Volumes


def _volumes(spec: Tree, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for where, volume in numbered(spec, "volumes", path):
        name = text(volume, "name")
        if not name:
            yield required_value(f"{where}.name")
        elif problem := label_problem(name):
            yield invalid_value(f"{where}.name", name, problem)
        elif name in names:
            yield Cause(f"{where}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
        names.add(name)
        claim = child(volume, "persistentVolumeClaim")
        if claim is not None and not text(claim, "claimName"):
            yield required_value(f"{where}.persistentVolumeClaim.claimName")
        if len(volume) > 2:
            yield Cause(where, "FieldValueForbidden", "Forbidden: may not specify more than 1 volume type")
