"""Which fields an object has, as a set of paths: the arithmetic under server-side apply.

A path is a tuple of steps in FieldsV1's own words: `f:name` for a field, `k:{"name":"c"}` for an item of a
keyed list, `v:"x"` for an item of a set. What is owned as one (scalars, atomic lists and maps, empty objects)
ends a path; an item of a keyed list is a path of its own besides its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from pilotage.localcluster.rest import schema
from pilotage.localcluster.rest.schema import ListRule
from pilotage.localcluster.store import Tree, encode_tree

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_SYSTEM_METADATA: Final = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "generateName",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    )
)
_MISSING: Final = object()


def field_set(type_name: str, tree: Tree) -> FieldSet:
    """The fields of an object, without those that the server owns."""
    shown = {key: value for key, value in tree.items() if key not in ("apiVersion", "kind")}
    meta = shown.get("metadata")
    if isinstance(meta, dict):
        shown["metadata"] = {key: value for key, value in meta.items() if key not in _SYSTEM_METADATA}
        if not shown["metadata"]:
            del shown["metadata"]
    return frozenset(_object_paths(type_name, shown, ()))


def _object_paths(type_name: str, tree: Tree, at: Path) -> Iterator[Path]:
    if not tree and at:
        yield at
    for key, value in tree.items():
        here = (*at, f"f:{key}")
        if isinstance(value, dict) and not _is_atomic(type_name, key):
            yield from _object_paths(schema.child_type(type_name, key), value, here)
        elif isinstance(value, list) and (rule := schema.list_rule(type_name, key)) is not None:
            yield from _list_paths(schema.child_type(type_name, key), rule, value, here)
        else:
            yield here


def _is_atomic(type_name: str, key: str) -> bool:
    return (type_name, key) in schema.ATOMIC or schema.child_type(type_name, key) in schema.ATOMIC_TYPES


def _list_paths(type_name: str, rule: ListRule, items: list[Any], at: Path) -> Iterator[Path]:
    for item in items:
        here = (*at, step_of(rule, item))
        yield here
        if rule.map_keys and isinstance(item, dict):
            yield from _object_paths(type_name, item, here)


_KEY_DEFAULTS: Final = {"protocol": "TCP"}


def step_of(rule: ListRule, item: Any) -> str:
    """How a list's item is called in a path."""
    if not rule.map_keys or not isinstance(item, dict):
        return f"v:{encode_tree(item).decode()}"
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(rule.map_keys)}
    return f"k:{encode_tree({k: v for k, v in keys.items() if v is not None}).decode()}"


# FieldsV1


def to_fields_v1(paths: Iterable[Path]) -> Tree:
    tree: Tree = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        if path[-1][0] == "k":
            node["."] = {}
    return tree


def from_fields_v1(tree: object) -> FieldSet:
    return frozenset(_read(tree, ())) if isinstance(tree, dict) else frozenset()


def _read(tree: Mapping[str, Any], at: Path) -> Iterator[Path]:
    if (not tree or "." in tree) and at:
        yield at
    for step, child in tree.items():
        if step != "." and isinstance(child, dict):
            yield from _read(child, (*at, step))


# values under paths


def value_at(tree: Any, path: Path) -> Any:
    """The value under a path; MISSING when there is none. For an item of a keyed list: True."""
    node, last = tree, len(path) - 1
    for index, step in enumerate(path):
        if step[0] == "f":
            node = node.get(step[2:], _MISSING) if isinstance(node, dict) else _MISSING
        else:
            found = find_item(node, step)
            if found is None:
                return _MISSING
            node = True if index == last else node[found]
        if node is _MISSING:
            return _MISSING
    return node


MISSING: Final = _MISSING


def find_item(items: Any, step: str) -> int | None:
    """Where the item called `step` stands in a list."""
    if not isinstance(items, list):
        return None
    wanted = msgspec.json.decode(step[2:])
    for index, item in enumerate(items):
        if step[0] == "v" and item == wanted:
            return index
        if step[0] == "k" and isinstance(item, dict) and _has_keys(item, wanted):
            return index
    return None


def _has_keys(item: Tree, wanted: Mapping[str, Any]) -> bool:
    return all(item.get(key, _KEY_DEFAULTS.get(key)) == value for key, value in wanted.items())


def remove_at(tree: Any, path: Path) -> None:
    """Take the value under a path away, if it is there."""
    node = tree
    for step in path[:-1]:
        if step[0] == "f":
            node = node.get(step[2:]) if isinstance(node, dict) else None
        else:
            found = find_item(node, step)
            node = None if found is None else node[found]
        if node is None:
            return
    step = path[-1]
    if step[0] == "f":
        if isinstance(node, dict):
            node.pop(step[2:], None)
    elif (found := find_item(node, step)) is not None:
        del node[found]
