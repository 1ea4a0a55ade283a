"""metadata.managedFields: who set which field.

Writers that give a `fieldManager` are recorded; the cluster's own parts give none and cost nothing. A change
by a recorded writer takes the fields that it changed from all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.field_sets import (
    FieldSet,
    field_set,
    from_fields_v1,
    to_fields_v1,
    value_at,
)
from pilotage.localcluster.rest.schema import type_of
from pilotage.localcluster.rest.timestamps import time_text
from pilotage.localcluster.store import Tree

APPLY = "Apply"
UPDATE = "Update"


@dataclass(frozen=True, slots=True)
class Entry:
    """One writer's fields, by one way of writing."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    def is_by(self, manager: str, operation: str, subresource: str) -> bool:
        return (self.manager, self.operation, self.subresource) == (manager, operation, subresource)

    def tree(self) -> Tree:
        tree: Tree = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(self.fields),
        }
        return tree | {"subresource": self.subresource} if self.subresource else tree


def read_entries(tree: Tree) -> list[Entry]:
    raw = tree["metadata"].get("managedFields")
    items = [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []
    return [
        Entry(
            str(item.get("manager", "")),
            str(item.get("operation", "")),
            str(item.get("subresource", "")),
            str(item.get("apiVersion", "")),
            str(item.get("time", "")),
            from_fields_v1(item.get("fieldsV1")),
        )
        for item in items
        if item
    ]


def write_entries(tree: Tree, entries: list[Entry]) -> None:
    kept = [entry.tree() for entry in entries if entry.fields]
    if kept:
        tree["metadata"]["managedFields"] = kept
    else:
        tree["metadata"].pop("managedFields", None)


def new_entry(call: Call, operation: str, fields: FieldSet) -> Entry:
    return Entry(
        call.field_manager, operation, call.subresource, call.kind.api_version, time_text(call.now), fields
    )


def track_create(call: Call, tree: Tree) -> None:
    """Everything in a new object is its creator's."""
    tree["metadata"].pop("managedFields", None)
    if call.field_manager:
        write_entries(tree, [new_entry(call, UPDATE, field_set(type_of(call.kind), tree))])


def track_change(call: Call, old: Tree, new: Tree) -> None:
    """What changed becomes the writer's. The entries that a body brings along replace the stored ones."""
    meta = new["metadata"]
    if not meta.get("managedFields"):
        if "managedFields" in old["metadata"]:
            meta["managedFields"] = old["metadata"]["managedFields"]
        else:
            meta.pop("managedFields", None)
    if not call.field_manager:
        return
    changed, gone = _difference(type_of(call.kind), old, new)
    if not changed and not gone:
        return
    manager, subresource = call.field_manager, call.subresource
    entries, mine = [], changed
    for entry in read_entries(new):
        if entry.is_by(manager, UPDATE, subresource):
            mine |= entry.fields - gone
        else:
            entries.append(replace(entry, fields=entry.fields - changed - gone))
    write_entries(new, [*entries, new_entry(call, UPDATE, mine)])


def _difference(type_name: str, old: Tree, new: Tree) -> tuple[FieldSet, FieldSet]:
    """(fields that are new or have another value, fields that are gone); equal parts are not walked."""
    names = [name for name in {*old, *new} if old.get(name) != new.get(name)]
    old, new = ({name: tree[name] for name in names if name in tree} for tree in (old, new))
    before, after = field_set(type_name, old), field_set(type_name, new)
    changed = frozenset(p for p in after if p not in before or value_at(old, p) != value_at(new, p))
    return changed, before - after
