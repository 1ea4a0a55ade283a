"""YAML (and JSON) files as trees: one document, a mapping, no key twice.

As kube-scheduler reads them by way of JSON: 16.0 is the number 16, and what looks like a date is text.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from pilotage.runtime.config_errors import ConfigError, Problem


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping: one of the two would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen and key != "<<":
                mark = key_node.start_mark
                raise yaml.constructor.ConstructorError(None, None, f'"{key}" stands twice', mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_DATES = "tag:yaml.org,2002:timestamp"
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATES]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> dict[str, Any]:
    """The tree in a file. Raises ConfigError that says what is wrong with it and where."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([Problem("", None, f"cannot be read: {reason}")]) from None
    return parse_yaml(text)


def parse_yaml(text: str) -> dict[str, Any]:
    try:
        documents = list(yaml.load_all(text, _StrictLoader))  # a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", None, f"is not valid YAML: {_where(error)}")]) from None
    tree = documents[0] if documents else None
    if any(other is not None for other in documents[1:]):
        raise ConfigError([Problem("", None, f"must be one document, found {len(documents)}")])
    if not isinstance(tree, dict):
        raise ConfigError([Problem("", None, f"must be a mapping, found {type(tree).__name__}")])
    return {name: _plain(value) for name, value in tree.items()}


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _plain(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_plain(item) for item in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark is not None else problem
