"""Reading whole objects as dict trees without trusting their shape.

What has another type than expected reads as absent: the type check of admission has refused wrong types of
all fields that decisions read; the others are stored as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotage.localcluster.store import Tree

_NESTED = (dict, list)


def child(tree: Tree | None, key: str) -> Tree | None:
    """The object under `key`, None when there is none."""
    value = tree.get(key) if tree else None
    return value if isinstance(value, dict) else None


def made(tree: Tree, key: str) -> Tree:
    """The object under `key`, made when absent; a detached empty one when something else is there."""
    value = tree.setdefault(key, {})
    return value if isinstance(value, dict) else {}


def children(tree: Tree | None, key: str) -> list[Tree]:
    """The objects of the list under `key`."""
    value = tree.get(key) if tree else None
    if not value or not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def numbered(tree: Tree | None, key: str, path: str) -> Iterator[tuple[str, Tree]]:
    """The objects of a list with the path of each: (`path.key[0]`, item), ..."""
    value = tree.get(key) if tree else None
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield f"{path}.{key}[{index}]", item


def texts(tree: Tree | None, key: str) -> list[str]:
    """The strings of the list under `key`."""
    value = tree.get(key) if tree else None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(tree: Tree | None, key: str) -> str:
    """The string under `key`, "" when there is none."""
    value = tree.get(key) if tree else None
    return value if isinstance(value, str) else ""


def set_absent(tree: Tree, defaults: Iterable[tuple[str, object]]) -> None:
    """Sets each immutable value whose key is absent."""
    for key, value in defaults:
        if key not in tree:
            tree[key] = value


def prune_nulls(tree: object) -> None:
    """Removes nulls from all objects in place: in the API a null is an absent field."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if type(node) is dict:
            if None in node.values():
                for key in [key for key, value in node.items() if value is None]:
                    del node[key]
            pending += [value for value in node.values() if type(value) in _NESTED]
        elif type(node) is list:
            pending += [value for value in node if type(value) in _NESTED]
