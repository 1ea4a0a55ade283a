"""YAML and JSON manifests from files, folders and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich_click as click
import yaml

Json = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")


def read_manifests(paths: tuple[str, ...]) -> list[tuple[str, Json]]:
    """(origin, object) of every document, Lists taken apart. Raises ClickException naming file and fault."""
    found = [
        item
        for origin, text in _texts(paths)
        for document in _documents(origin, text)
        for item in _objects(origin, document)
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
                yield str(file), file.read_text()
            except (OSError, UnicodeDecodeError) as problem:
                raise click.ClickException(f"cannot read {file}: {problem}") from None


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    return [path]


def _documents(origin: str, text: str) -> list[Any]:
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as problem:
        raise click.ClickException(f"{origin}: not YAML: {' '.join(str(problem).split())}") from None


def _objects(origin: str, document: Any) -> Iterator[tuple[str, Json]]:
    if not isinstance(document, dict):
        raise click.ClickException(f"{origin}: an object was expected, not {document!r:.60}")
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(origin, item)
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str):
            raise click.ClickException(f"{origin}: {field}: missing")
    if not isinstance(document.get("metadata"), dict):
        raise click.ClickException(f"{origin}: metadata: missing in {document['kind']}")
    yield origin, document
