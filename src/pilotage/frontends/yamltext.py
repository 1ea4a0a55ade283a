"""YAML as people write it for Kubernetes: JSON's types only, nothing lost, faults with their line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

_TIMESTAMP, _INT = "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int"
_LARGE = 1 << 18  # characters
_WHOLE_NUMBER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")  # no base 60


class YamlTextError(ValueError):
    """Not readable, or no YAML. The text is one line and says where."""


class _Rules(yaml.constructor.SafeConstructor):
    """Dates stay texts, as in JSON; a key that stands twice is refused: one of the two would be lost."""

    yaml_implicit_resolvers = {
        first: [(tag, _WHOLE_NUMBER if tag == _INT else rule) for tag, rule in rules if tag != _TIMESTAMP]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                text = f"key {name!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


class _Loader(_Rules, yaml.SafeLoader):
    """Its faults are told in words that people can use."""


if yaml.__with_libyaml__:

    class _FastLoader(_Rules, yaml.CSafeLoader):
        """Reads the dump of a large cluster in seconds instead of minutes."""


def read_text(path: Path) -> str:
    """Raises YamlTextError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise YamlTextError(problem.strerror or str(problem)) from None
    except UnicodeDecodeError:
        raise YamlTextError("is no text in UTF-8") from None


def parse_documents(text: str) -> list[Any]:
    """The documents of a YAML or JSON text, empty ones left out. Raises YamlTextError."""
    if len(text) > _LARGE and yaml.__with_libyaml__:
        with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):  # told below
            return [tree for tree in yaml.load_all(text, _FastLoader) if tree is not None]
    try:
        return [tree for tree in yaml.load_all(text, _Loader) if tree is not None]
    except yaml.YAMLError as problem:
        raise YamlTextError(f"not valid YAML: {_fault(problem)}") from None
    except (ValueError, RecursionError) as problem:  # what its constructors raise for nonsense
        raise YamlTextError(f"not valid YAML: {problem}") from None


def _fault(problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    text = " ".join(str(getattr(problem, "problem", None) or problem).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}" if mark is not None else text
