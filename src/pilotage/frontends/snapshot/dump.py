"""Dump files: what `kubectl get nodes,pods,... -A -o json` (or yaml) printed, or any manifests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import rich_click as click

from pilotage.frontends.cli.manifests import objects_in
from pilotage.frontends.snapshot.objects import Snapshot, SnapshotError, snapshot_of_trees
from pilotage.frontends.yamltext import YamlTextError, parse_documents, read_text

_JSON_BEGINS: Final = ("{", "[")


def read_dump(path: str) -> Snapshot:
    """The objects of a file, `-` for standard input. Raises SnapshotError naming file, object and field."""
    origin = "standard input" if path == "-" else path
    documents = _documents(origin, _text(path, origin))
    try:
        trees = [tree for document in documents for _, tree in objects_in(origin, document)]
    except click.ClickException as problem:
        raise SnapshotError(problem.format_message()) from None
    if not trees:
        raise SnapshotError(f"{origin}: no objects in it")
    return snapshot_of_trees(trees, origin)


def _text(path: str, origin: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        return read_text(Path(path))
    except YamlTextError as problem:
        raise SnapshotError(f"{origin}: {problem}") from None


def _documents(origin: str, text: str) -> list[Any]:
    """JSON is read as JSON: a cluster of thousands of nodes takes minutes as YAML."""
    if text.lstrip().startswith(_JSON_BEGINS):
        try:
            return [msgspec.json.decode(text)]
        except msgspec.DecodeError:
            pass  # YAML in flow style, or several documents
    try:
        return parse_documents(text)
    except YamlTextError as problem:
        raise SnapshotError(f"{origin}: {problem}") from None
