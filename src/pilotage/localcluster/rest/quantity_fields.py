"""Where objects hold quantities: made canonical on write, refused by field when they are none.

Laws: only the listed fields are touched (a ConfigMap's `limits` is text). Every amount must be a quantity of
at least 0. Quantities that are read later (defaults, validation, scheduler) are strings from here on.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pilotage.api.kinds import Kind
from pilotage.api.quantity import QuantityError, canonical, nanos
from pilotage.localcluster.rest.errors import Cause, invalid_value
from pilotage.localcluster.store import Tree

_LIST: Final = "[]"
_MAP: Final = "{}"  # the last step: every value of the object is a quantity

_Path: TypeAlias = tuple[str, ...]
_Trie: TypeAlias = dict[str, "_Trie"]


def _paths(*lines: str) -> tuple[_Path, ...]:
    return tuple(tuple(line.split()) for line in lines)


def _under(prefix: str, paths: tuple[_Path, ...]) -> tuple[_Path, ...]:
    return tuple((*prefix.split(), *path) for path in paths)


_RESOURCES: Final = _paths("requests {}", "limits {}")
_CLAIM_SPEC: Final = _under("resources", _RESOURCES)
_POD_SPEC: Final = (
    *_under("containers [] resources", _RESOURCES),
    *_under("initContainers [] resources", _RESOURCES),
    *_under("ephemeralContainers [] resources", _RESOURCES),
    *_under("resources", _RESOURCES),
    *_paths("overhead {}", "volumes [] emptyDir sizeLimit"),
    *_under("volumes [] ephemeral volumeClaimTemplate spec", _CLAIM_SPEC),
)
_CONTAINER_STATUS: Final = (*_under("resources", _RESOURCES), *_paths("allocatedResources {}"))
_POD_STATUS: Final = (
    *_under("containerStatuses []", _CONTAINER_STATUS),
    *_under("initContainerStatuses []", _CONTAINER_STATUS),
    *_under("ephemeralContainerStatuses []", _CONTAINER_STATUS),
    *_CONTAINER_STATUS,
)
_TEMPLATE: Final = _under("spec template spec", _POD_SPEC)
_CLAIM: Final = (
    *_under("spec", _CLAIM_SPEC),
    *_paths("status capacity {}", "status allocatedResources {}"),
)

_FIELDS: Final[dict[str, tuple[_Path, ...]]] = {
    "pods": (*_under("spec", _POD_SPEC), *_under("status", _POD_STATUS)),
    "nodes": _paths("status capacity {}", "status allocatable {}"),
    "podtemplates": _under("template spec", _POD_SPEC),
    "replicationcontrollers": _TEMPLATE,
    "deployments.apps": _TEMPLATE,
    "replicasets.apps": _TEMPLATE,
    "daemonsets.apps": _TEMPLATE,
    "statefulsets.apps": (*_TEMPLATE, *_under("spec volumeClaimTemplates []", _CLAIM)),
    "jobs.batch": _TEMPLATE,
    "cronjobs.batch": _under("spec jobTemplate", _TEMPLATE),
    "persistentvolumeclaims": _CLAIM,
    "persistentvolumes": _paths("spec capacity {}"),
    "limitranges": _under(
        "spec limits []",
        _paths("max {}", "min {}", "default {}", "defaultRequest {}", "maxLimitRequestRatio {}"),
    ),
    "resourcequotas": _paths("spec hard {}", "status hard {}", "status used {}"),
    "csistoragecapacities.storage.k8s.io": _paths("capacity", "maximumVolumeSize"),
    "runtimeclasses.node.k8s.io": _paths("overhead podFixed {}"),
}


def _trie(paths: tuple[_Path, ...]) -> _Trie:
    """The paths as nested maps, so that an object is walked once."""
    root: _Trie = {}
    for path in paths:
        node = root
        for step in path:
            node = node.setdefault(step, {})
    return root


_TRIES: Final = {resource: _trie(paths) for resource, paths in _FIELDS.items()}


def canonicalize(kind: Kind, tree: Tree) -> list[Cause]:
    """Writes every quantity of the object in its canonical form, in place; one cause per bad one."""
    causes: list[Cause] = []
    branches = _TRIES.get(kind.resource)
    if branches is not None:
        _visit(tree, branches, "", causes)
    return causes


def _visit(node: object, branches: _Trie, where: str, causes: list[Cause]) -> None:
    if isinstance(node, list):
        if (below := branches.get(_LIST)) is not None:
            for index, item in enumerate(node):
                _visit(item, below, f"{where}[{index}]", causes)
    elif isinstance(node, dict):
        for step, below in branches.items():
            if step == _MAP:
                for name in node:
                    _rewrite(node, name, f"{where}[{name}]", causes)
            elif step in node:
                here = f"{where}.{step}" if where else step
                if below:
                    _visit(node[step], below, here, causes)
                else:
                    _rewrite(node, step, here, causes)


def _rewrite(node: Tree, name: str, where: str, causes: list[Cause]) -> None:
    quantity = node[name]
    try:
        written = canonical(quantity)
    except QuantityError as error:
        causes.append(invalid_value(where, quantity, error.problem))
        return
    if nanos(written) < 0:
        causes.append(invalid_value(where, written, "must be greater than or equal to 0"))
    node[name] = written
