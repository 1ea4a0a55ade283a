"""Server-side apply: an object becomes what its appliers say, each for the fields it named.

Laws: a field that another manager set to another value is a conflict, unless forced; a field that the
applier named before and names no more goes, unless somebody else owns it too; everything else stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from pilotage.api.wire import Response
from pilotage.localcluster.rest import schema
from pilotage.localcluster.rest.bodies import check_type, metadata_of, parse_yaml
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import RestError, bad_request, not_found
from pilotage.localcluster.rest.field_sets import (
    FieldSet,
    Path,
    field_set,
    find_item,
    remove_at,
    step_of,
    value_at,
)
from pilotage.localcluster.rest.field_validation import check_fields
from pilotage.localcluster.rest.managed_fields import APPLY, Entry, new_entry, read_entries, write_entries
from pilotage.localcluster.rest.rendering import shown_tree
from pilotage.localcluster.rest.schema import ListRule
from pilotage.localcluster.rest.writing import answer_object, change, check_name, create_tree, to_stored
from pilotage.localcluster.store import Record, Tree


def apply(call: Call) -> Response:
    """PATCH with an apply configuration. Raises RestError 400, 409 or 422."""
    if not call.field_manager:
        raise call.invalid_option("fieldManager", "", "is required for apply patch")
    config = parse_yaml(call.request.body)
    if not isinstance(config, dict):
        raise bad_request("the apply configuration must be one object")
    check_type(config, call.kind, call.kind.api_version)
    meta = metadata_of(config)
    check_name(call, meta)
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    check_fields(call, config)
    record = call.store.get(call.kind.storage_resource, call.namespace, call.name)
    if record is None and call.subresource:
        raise not_found(call.kind, call.name)
    if record is None:
        return _create(call, config)
    return _update(call, record, config)


def _create(call: Call, config: Tree) -> Response:
    wanted = field_set(schema.type_of(call.kind), config)
    config["metadata"].pop("uid", None)
    write_entries(config, [new_entry(call, APPLY, wanted)])
    return answer_object(call, create_tree(call, to_stored(call, config)), 201)


def _update(call: Call, record: Record, config: Tree) -> Response:
    type_name = schema.type_of(call.kind)
    live, wanted = shown_tree(call.kind, record), field_set(type_name, config)
    others, before = _split(call, read_entries(live))
    conflicts = _conflicts(live, config, wanted, others)
    if conflicts and not call.flag("force"):
        raise _conflict_error(conflicts)
    taken = frozenset(path for _, path in conflicts)
    others = [replace(entry, fields=entry.fields - taken) for entry in others]
    merged = _merged(type_name, deepcopy(live), config)
    owned = frozenset[Path]().union(wanted, *(entry.fields for entry in others))
    for path in sorted(before - owned):  # an item before its fields: without its key it is not found
        if not any(other[: len(path)] == path for other in owned):
            remove_at(merged, path)
    meta, given = merged["metadata"], config["metadata"]
    if not given.get("resourceVersion"):
        meta.pop("resourceVersion", None)
    mine = new_entry(call, APPLY, wanted)
    entries = [*others, _with_old_time(mine, read_entries(live))]
    write_entries(merged, entries)
    return answer_object(call, change(call, record, to_stored(call, merged)))


def _with_old_time(mine: Entry, entries: Sequence[Entry]) -> Entry:
    """An apply that names the same fields as before is no news."""
    same = (e for e in entries if e.is_by(mine.manager, APPLY, mine.subresource) and e.fields == mine.fields)
    return next(same, mine)


def _split(call: Call, entries: Sequence[Entry]) -> tuple[list[Entry], FieldSet]:
    """The entries of others, and what this applier named before."""
    others, before = [], frozenset[Path]()
    for entry in entries:
        if entry.is_by(call.field_manager, APPLY, call.subresource):
            before = entry.fields
        else:
            others.append(entry)
    return others, before


def _conflicts(
    live: Tree, config: Tree, wanted: FieldSet, others: Sequence[Entry]
) -> list[tuple[Entry, Path]]:
    return [
        (entry, path)
        for entry in others
        for path in sorted(wanted & entry.fields)
        if value_at(live, path) != value_at(config, path)
    ]


def _conflict_error(conflicts: Sequence[tuple[Entry, Path]]) -> RestError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager(entry)}",
            "field": _shown(path),
        }
        for entry, path in conflicts
    ]
    lines = [f"conflict with {_manager(entry)}: {_shown(path)}" for entry, path in conflicts]
    many = "conflict" if len(lines) == 1 else "conflicts"
    message = f"Apply failed with {len(lines)} {many}: " + ", ".join(lines)
    return RestError(409, "Conflict", message, details={"causes": causes})


def _manager(entry: Entry) -> str:
    under = f' with subresource "{entry.subresource}"' if entry.subresource else ""
    return f'"{entry.manager}"{under} using {entry.api_version}'


def _shown(path: Path) -> str:
    """`.spec.containers[name="c"].image`"""
    text = ""
    for step in path:
        if step[0] == "f":
            text += f".{step[2:]}"
        else:
            text += "[" + step[2:].strip("{}").replace('":', "=").replace(',"', ",").lstrip('"') + "]"
    return text


def _merged(type_name: str, live: Tree, config: Tree) -> Tree:
    """`live` (consumed) with everything that the configuration names."""
    for key, value in config.items():
        child = schema.child_type(type_name, key)
        rule = schema.list_rule(type_name, key)
        is_atomic = (type_name, key) in schema.ATOMIC or child in schema.ATOMIC_TYPES
        if isinstance(value, dict) and isinstance(live.get(key), dict) and not is_atomic:
            live[key] = _merged(child, live[key], value)
        elif isinstance(value, list) and rule is not None and isinstance(live.get(key), list):
            live[key] = _merged_list(child, rule, live[key], value)
        else:
            live[key] = value
    return live


def _merged_list(type_name: str, rule: ListRule, live: list[Any], items: list[Any]) -> list[Any]:
    for item in items:
        found = find_item(live, step_of(rule, item))
        if found is None:
            live.append(item)
        elif isinstance(item, dict) and rule.map_keys:
            live[found] = _merged(type_name, live[found], item)
    return live
