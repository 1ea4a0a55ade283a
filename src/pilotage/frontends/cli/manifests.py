"""YAML and JSON manifests from files, folders and standard input.

Laws: what a manifest says reaches the server as it was written: no dates made of texts, no key lost
because it stands twice; every fault names file and field.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich_click as click

from pilotage.frontends.yamltext import YamlTextError, parse_documents, read_text

Json = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")


def read_manifests(paths: tuple[str, ...]) -> list[tuple[str, Json]]:
    """(origin, object) of every document, Lists taken apart. Raises ClickException naming file and fault."""
    found = [
        item
        for origin, text in _texts(paths)
        for document in _parse(origin, text)
        for item in objects_in(origin, document)
    ]
    if not found:
        raise click.ClickException(f"no objects found in {', '.join(paths)}")
    return found


def _texts(paths: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path in paths:
        if path == "-":
            yield "standard input", sys.stdin.read()
            continue
        for file in _files(Path(path)):
            try:
                yield str(file), read_text(file)
            except YamlTextError as problem:
                raise click.ClickException(f"{file}: {problem}") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    if not found:
        raise click.ClickException(f"{path}: no {', '.join(_SUFFIXES)} file in this folder")
    return found


def _parse(origin: str, text: str) -> list[Any]:
    try:
        return parse_documents(text)
    except YamlTextError as problem:
        raise click.ClickException(f"{origin}: {problem}") from None


def objects_in(origin: str, document: Any) -> Iterator[tuple[str, Json]]:
    """(origin, object) of one document, Lists taken apart. Raises ClickException naming the fault."""
    if not isinstance(document, dict):
        raise click.ClickException(f"{origin}: an object was expected, found {document!r:.60}")
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from objects_in(origin, item)
        return
    for field in ("apiVersion", "kind"):
        _check_text(origin, document, field, field, is_required=True)
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise click.ClickException(f"{origin}: metadata: missing in {document['kind']}")
    for field in ("name", "generateName", "namespace"):
        _check_text(origin, metadata, field, f"metadata.{field}", is_required=False)
    if not metadata.get("name") and not metadata.get("generateName"):
        raise click.ClickException(f"{origin}: metadata.name: missing in {document['kind']}")
    yield origin, document


def _check_text(origin: str, tree: Json, field: str, path: str, *, is_required: bool) -> None:
    value = tree.get(field)
    if value is None and is_required:
        raise click.ClickException(f"{origin}: {path}: missing")
    if value is not None and not isinstance(value, str):
        raise click.ClickException(f'{origin}: {path}: must be a text, found {value!r} (write "{value}")')
