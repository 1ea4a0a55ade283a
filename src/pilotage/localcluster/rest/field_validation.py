"""Unknown fields of a written object: refused, warned of and dropped, or let through, as the client asked.

Only clients that ask pay for the look: without `fieldValidation` nothing is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import bad_request
from pilotage.localcluster.rest.schema import Shape, fields_of, type_of
from pilotage.localcluster.store import Tree


class Mode(Enum):
    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


def check_fields(call: Call, tree: Tree) -> None:
    """Raises RestError 400 (Strict), or drops unknown fields and adds warnings to the call (Warn)."""
    mode = _mode(call)
    name = type_of(call.kind)
    if mode is Mode.IGNORE or not name:
        return
    found = list(_unknown(name, tree, ""))
    if found and mode is Mode.STRICT:
        kind = call.kind
        texts = ", ".join(f'unknown field "{path}"' for path, _, _ in found)
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {texts}"
        )
    for path, owner, key in found:
        del owner[key]
        call.warnings.append(f'unknown field "{path}"')


def _mode(call: Call) -> Mode:
    text = call.query.get("fieldValidation", "")
    if not text:
        return Mode.IGNORE
    try:
        return Mode(text)
    except ValueError:
        why = 'supported values: "Ignore", "Warn", "Strict"'
        raise call.invalid_option("fieldValidation", text, why) from None


def _unknown(type_name: str, tree: Tree, path: str) -> Iterator[tuple[str, Tree, str]]:
    """(path, object that holds it, its name) of each field that the type does not have."""
    fields = fields_of(type_name)
    for key, value in tree.items():
        at = f"{path}.{key}" if path else key
        field = fields.get(key)
        if field is None:
            yield at, tree, key
        elif fields_of(field.type):
            for where, child in _children(field.shape, value, at):
                yield from _unknown(field.type, child, where)


def _children(shape: Shape, value: Any, path: str) -> Iterator[tuple[str, Tree]]:
    """The objects under a field."""
    if shape is Shape.OBJECT:
        items = [(path, value)]
    elif shape is Shape.LIST and isinstance(value, list):
        items = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif shape is Shape.MAP and isinstance(value, dict):
        items = [(f"{path}.{key}", item) for key, item in value.items()]
    else:
        items = []
    for where, item in items:
        if isinstance(item, dict):
            yield where, item
