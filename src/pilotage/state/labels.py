"""Node labels as dictionary-encoded columns, made for a key when somebody first asks for it.

Laws: codes are given once and never reused, so that code -> value tables built outside stay right when
appended to; -1 means the node lacks the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pilotage.state.columns import Column
from pilotage.state.view import ABSENT_LABEL, UNKNOWN_LABEL, Int32


class LabelColumn:
    """One key: value codes per row, values by code."""

    __slots__ = ("codes", "column", "values")

    def __init__(self, capacity: int) -> None:
        self.codes: dict[str, int] = {}
        self.values: list[str] = []
        self.column: Column[np.int32] = Column(np.int32, ABSENT_LABEL, capacity)

    def set(self, row: int, value: str | None) -> None:
        self.column.data[row] = ABSENT_LABEL if value is None else self._intern(value)

    def _intern(self, value: str) -> int:
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code


class LabelColumns:
    """All keys that were asked for so far."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns: dict[str, LabelColumn] = {}

    def keys(self) -> Iterable[str]:
        return self._columns.keys()

    def get(self, key: str) -> LabelColumn | None:
        return self._columns.get(key)

    def create(self, key: str, n_rows: int, labels: Iterable[tuple[int, Mapping[str, str]]]) -> LabelColumn:
        """The column of a key asked for the first time, filled from the labels of all live rows."""
        column = self._columns[key] = LabelColumn(max(n_rows, 16))
        for row, of_node in labels:
            column.set(row, of_node.get(key))
        return column

    def grow(self, n_rows: int) -> None:
        for column in self._columns.values():
            column.column.grow(n_rows)

    def set_row(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def code(self, key: str, value: str) -> int:
        column = self._columns.get(key)
        return UNKNOWN_LABEL if column is None else column.codes.get(value, UNKNOWN_LABEL)

    def values(self, key: str) -> Sequence[str]:
        column = self._columns.get(key)
        return () if column is None else column.values

    def head(self, key: str, n_rows: int) -> Int32:
        return self._columns[key].column.head(n_rows)
