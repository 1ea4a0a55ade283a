"""The shape of the served kinds: field names and types, and which lists are merged by which key.

Names and types come from `schema.json` (written by scripts/build_schema.py); the merge rules are the
tables below. Strategic patches, server-side apply, field validation and OpenAPI all read them here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from pilotage.api.kinds import Kind

_TYPE = re.compile(r"(!?)(?:(List|Dict)\[(?:str,)?(.+)\]|(\w+))")


class Shape(Enum):
    SCALAR = "scalar"
    OBJECT = "object"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Field:
    """`type`: name of the object type, or of the scalar, of the value or of its items."""

    shape: Shape
    type: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class ListRule:
    """How a list is merged. `merge_key` is the strategic patch's, `map_keys` are server-side apply's.

    No keys at all: a set of scalars.
    """

    merge_key: str = ""
    map_keys: tuple[str, ...] = ()
    strategy: str = "merge"


def _by(*keys: str, strategy: str = "merge") -> ListRule:
    return ListRule(keys[0], keys, strategy)


_CONTAINER: Final = {
    "env": _by("name"),
    "ports": _by("containerPort", "protocol"),
    "volumeMounts": _by("mountPath"),
    "volumeDevices": _by("devicePath"),
}
_CONDITIONS: Final = {"conditions": _by("type")}

_LISTS: Final[Mapping[str, Mapping[str, ListRule]]] = {
    "V1ObjectMeta": {"ownerReferences": _by("uid"), "finalizers": ListRule()},
    "V1PodSpec": {
        "containers": _by("name"),
        "initContainers": _by("name"),
        "ephemeralContainers": _by("name"),
        "imagePullSecrets": _by("name"),
        "schedulingGates": _by("name"),
        "resourceClaims": _by("name", strategy="merge,retainKeys"),
        "volumes": _by("name", strategy="merge,retainKeys"),
        "hostAliases": _by("ip"),
        "topologySpreadConstraints": _by("topologyKey", "whenUnsatisfiable"),
    },
    "V1Container": _CONTAINER,
    "V1EphemeralContainer": _CONTAINER,
    "V1PodStatus": {
        **_CONDITIONS,
        "podIPs": _by("ip"),
        "hostIPs": _by("ip"),
        "resourceClaimStatuses": _by("name", strategy="merge,retainKeys"),
    },
    "V1NodeSpec": {"podCIDRs": ListRule()},
    "V1NodeStatus": {**_CONDITIONS, "addresses": _by("type")},
    "V1ServiceSpec": {"ports": _by("port", "protocol")},
    "V1ServiceStatus": _CONDITIONS,
    "V1ServiceAccount": {"secrets": _by("name")},
    "V1NamespaceStatus": _CONDITIONS,
    "V1PersistentVolumeClaimStatus": _CONDITIONS,
    "V1ReplicationControllerStatus": _CONDITIONS,
    "V1DeploymentStatus": _CONDITIONS,
    "V1ReplicaSetStatus": _CONDITIONS,
    "V1StatefulSetStatus": _CONDITIONS,
    "V1DaemonSetStatus": _CONDITIONS,
    "V1JobStatus": _CONDITIONS,
    "V1PodDisruptionBudgetStatus": _CONDITIONS,
    "V1CSINodeSpec": {"drivers": _by("name")},
}
"""By object type and field. Every other list is replaced as a whole."""

RETAIN_KEYS: Final = frozenset((("V1DeploymentSpec", "strategy"),))
"""Objects of which a strategic patch names the keys that stay."""

ATOMIC: Final = frozenset(
    (
        ("V1PodSpec", "nodeSelector"),
        ("V1ServiceSpec", "selector"),
        ("V1ReplicationControllerSpec", "selector"),
    )
)
ATOMIC_TYPES: Final = frozenset(
    (
        "V1LabelSelector",
        "V1NodeSelector",
        "V1NodeSelectorTerm",
        "V1ObjectReference",
        "V1LocalObjectReference",
        "V1TypedLocalObjectReference",
        "V1SecretReference",
        "V1ConfigMapKeySelector",
        "V1SecretKeySelector",
        "V1ObjectFieldSelector",
        "V1ResourceFieldSelector",
        "V1OwnerReference",
    )
)
"""Maps and objects that server-side apply owns as one."""


class _File(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    types: dict[str, dict[str, str]]


@cache
def _file() -> _File:
    raw = files("pilotage.localcluster.rest").joinpath("schema.json").read_bytes()
    return msgspec.json.decode(raw, type=_File)


def type_of(kind: Kind) -> str:
    """The object type of a kind, "" when the schema has none."""
    return _file().kinds.get(kind.resource, "")


def type_names() -> list[str]:
    return list(_file().types)


@cache
def fields_of(type_name: str) -> Mapping[str, Field]:
    """The fields of an object type by JSON name; empty when it is no object type."""
    return {name: _field(text) for name, text in _file().types.get(type_name, {}).items()}


def _field(text: str) -> Field:
    match = _TYPE.fullmatch(text)
    assert match is not None, text
    mark, container, inner, plain = match.groups()
    if container:
        return Field(Shape.LIST if container == "List" else Shape.MAP, inner, bool(mark))
    shape = Shape.OBJECT if plain in _file().types else Shape.SCALAR
    return Field(shape, plain, bool(mark))


def list_rule(type_name: str, field: str) -> ListRule | None:
    """How the list under a field is merged, None when it is replaced."""
    return _LISTS.get(type_name, {}).get(field)


def child_type(type_name: str, field: str) -> str:
    """The object type of a field's value, or of its items; "" when there is none."""
    known = fields_of(type_name).get(field)
    return known.type if known is not None and known.type in _file().types else ""
