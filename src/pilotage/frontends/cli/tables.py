"""Printing what the server answered: its own tables, JSON, YAML or names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import rich_click as click
import yaml

from pilotage.api.kinds import Kind
from pilotage.api.wire import Request
from pilotage.client.api import ApiClient, Json
from pilotage.client.errors import error_of_response

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_OK = 200


async def request_table(
    client: ApiClient, kind: Kind, namespace: str, names: Sequence[str], selector: str, fields: str
) -> list[Json]:
    """One Table per name, or one of the whole list."""
    paths = [kind.object_path(namespace, name) for name in names] or [kind.collection_path(namespace)]
    query = {key: value for key, value in (("labelSelector", selector), ("fieldSelector", fields)) if value}
    tables = []
    for path in paths:
        response = await client.transport.request(Request("GET", path, query, accept=_TABLE))
        if response.status != _OK:
            raise error_of_response(response)
        tables.append(msgspec.json.decode(response.body))
    return tables


def print_table(tables: Sequence[Json], *, wide: bool, with_namespace: bool) -> None:
    rows = [row for table in tables for row in table.get("rows") or ()]
    if not rows:
        click.echo("No resources found", err=True)
        return
    columns = [
        (index, column["name"].upper())
        for index, column in enumerate(tables[0]["columnDefinitions"])
        if wide or not column.get("priority")
    ]
    lines = [[name for _, name in columns]]
    lines += [[_cell(row["cells"][index]) for index, _ in columns] for row in rows]
    if with_namespace:
        spaces = ["NAMESPACE", *(row["object"]["metadata"].get("namespace", "") for row in rows)]
        lines = [[space, *line] for space, line in zip(spaces, lines, strict=True)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("   ".join(cells).rstrip())


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _document(items: Sequence[Json], single: bool) -> Any:
    return items[0] if single else {"apiVersion": "v1", "kind": "List", "items": list(items)}


def print_json(kind: Kind, items: Sequence[Json], single: bool) -> None:
    del kind
    click.echo(msgspec.json.format(msgspec.json.encode(_document(items, single)), indent=2))


def print_yaml(kind: Kind, items: Sequence[Json], single: bool) -> None:
    del kind
    click.echo(yaml.safe_dump(_document(items, single), sort_keys=False), nl=False)


def print_names(kind: Kind, items: Sequence[Json], single: bool) -> None:
    del single
    for item in items:
        click.echo(f"{kind.singular}/{item['metadata']['name']}")
