"""Tables as kubectl prints them: columns and cells per kind; kinds without an entry have name and creation time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest.tables.layout import NAME, Layout, text
from pilotage.localcluster.store import Tree

_DEFAULT = Layout(
    (NAME, text("Created At", "When the object was created.")),
    lambda tree, _now: [tree["metadata"]["name"], tree["metadata"].get("creationTimestamp")],
)
_LAYOUTS: Mapping[str, Layout] = {}


@cache
def columns_of(kind: Kind) -> list[Tree]:
    """`columnDefinitions`: not to be changed."""
    return [column.definition() for column in _layout(kind).columns]


def row_cells(kind: Kind, tree: Tree, now: float) -> list[Any]:
    """The cells of one object in its stored form."""
    return _layout(kind).cells(tree, now)


def _layout(kind: Kind) -> Layout:
    return _LAYOUTS.get(kind.storage_resource, _DEFAULT)
