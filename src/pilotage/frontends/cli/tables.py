"""Printing what the server answered: its own tables, JSON, YAML or names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import rich_click as click
import yaml

from pilotage.api.kinds import Kind
from pilotage.client.api import Json
from pilotage.frontends.cli.naming import full_name

Line = list[str]
Items = Sequence[tuple[Kind, Json]]
_GAP = "   "
_NO_FOLDING = 1 << 20  # columns: a reason that is searched for stays one line


class TablePrinter:
    """Prints tables of several kinds one below the other, and rows that come later in the same columns."""

    def __init__(self, *, wide: bool, with_namespace: bool, with_kind: bool) -> None:
        self._wide = wide
        self._with_namespace = with_namespace
        self._with_kind = with_kind
        self._columns: list[int] = []  # the cells of a row that are shown
        self._widths: list[int] = []
        self.rows = 0  # printed so far

    def show(self, kind: Kind, tables: Sequence[Json]) -> None:
        """The rows of all `tables` under one header; nothing without rows."""
        definitions: list[Json] = next(
            (t["columnDefinitions"] for t in tables if t.get("columnDefinitions")), []
        )
        self._columns = [
            i for i, column in enumerate(definitions) if self._wide or not column.get("priority")
        ]
        header = [definitions[index]["name"].upper() for index in self._columns]
        if self._has_namespace(kind):
            header.insert(0, "NAMESPACE")
        lines = [line for table in tables for line in self._lines(kind, table)]
        self._widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
        if not lines:
            return
        if self.rows:
            click.echo()
        for line in (header, *lines):
            self._print(line)
        self.rows += len(lines)

    def more(self, kind: Kind, table: Json) -> None:
        """Rows of a watch; the header comes now if nothing was shown before."""
        if not self.rows:
            self.show(kind, [table])
            return
        for line in self._lines(kind, table):
            self._widths = [max(w, len(cell)) for w, cell in zip(self._widths, line, strict=True)]
            self._print(line)

    def _has_namespace(self, kind: Kind) -> bool:
        return self._with_namespace and kind.namespaced

    def _lines(self, kind: Kind, table: Json) -> list[Line]:
        return [self._line(kind, row) for row in table.get("rows") or ()]

    def _line(self, kind: Kind, row: Json) -> Line:
        cells = ["" if row["cells"][i] is None else str(row["cells"][i]) for i in self._columns]
        if self._with_kind and cells:
            cells[0] = f"{full_name(kind)}/{cells[0]}"
        if self._has_namespace(kind):
            cells.insert(0, row["object"]["metadata"].get("namespace", ""))
        return cells

    def _print(self, line: Line) -> None:
        cells = (cell.ljust(width) for cell, width in zip(line, self._widths, strict=True))
        click.echo(_GAP.join(cells).rstrip())


def _document(items: Items, single: bool) -> Any:
    shown = [_without_managed_fields(item) for _, item in items]
    return shown[0] if single else {"apiVersion": "v1", "items": shown, "kind": "List"}


def _without_managed_fields(item: Json) -> Json:
    """Who wrote which field is long and read by nobody here."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return {**item, "metadata": metadata}


def print_json(items: Items, single: bool) -> None:
    text = msgspec.json.encode(_document(items, single), order="sorted")
    click.echo(msgspec.json.format(text, indent=2))


def print_yaml(items: Items, single: bool) -> None:
    click.echo(yaml.safe_dump(_document(items, single), allow_unicode=True, width=_NO_FOLDING), nl=False)


def print_names(items: Items, single: bool) -> None:
    del single
    for kind, item in items:
        click.echo(f"{full_name(kind)}/{item['metadata']['name']}")
