"""What is wrong with a configuration: every problem at once, each with field, value and reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """`field`: path from the root of the file, e.g. `profiles[0].plugins.score.enabled[1].name`."""

    field: str
    value: Any
    reason: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f" {_short(self.value)}:"
        return f"{self.field}:{shown} {self.reason}" if self.field else f"{shown} {self.reason}".strip()


class ConfigError(ValueError):
    """A configuration that cannot be used. `problems` lists all that was found."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        head = f"{source or 'scheduler configuration'}: {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


def _short(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."
