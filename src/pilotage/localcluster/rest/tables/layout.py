"""What a table is made of: columns, and a function that fills them from one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pilotage.localcluster.store import Tree

Cells: TypeAlias = Callable[[Tree, float], list[Any]]
"""(object in its stored form, now in epoch seconds) -> one cell per column."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    description: str
    is_wide: bool = False
    type: str = "string"
    format: str = ""

    def definition(self) -> Tree:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": 1 if self.is_wide else 0,
        }


NAME = Column("Name", "The object's name, unique in its namespace and kind.", format="name")
AGE = Column("Age", "How long ago the object was created.")


@dataclass(frozen=True, slots=True)
class Layout:
    columns: Sequence[Column]
    cells: Cells


def text(name: str, description: str) -> Column:
    return Column(name, description)


def wide(name: str, description: str) -> Column:
    return Column(name, description, is_wide=True)


def number(name: str, description: str) -> Column:
    return Column(name, description, type="integer")


def join(values: Sequence[str], none: str = "<none>") -> str:
    return ",".join(values) or none
