"""Arrays with one element per table row that grow by doubling.

Law: a view handed out shows the rows that existed then; it stays valid memory but goes stale when the
array grows, so nobody keeps one.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

# Amounts beyond these are cut, so that sums and the factor 100 of scoring stay inside int64. The limit of
# a request is the larger one: a cut request never fits a cut node.
MAX_ALLOCATABLE = 2**56
MAX_REQUEST = 2**57


class Column(Generic[T]):
    """A one-dimensional array with room to grow; `fill` is the value of rows never written."""

    __slots__ = ("_data", "_fill")

    def __init__(self, dtype: type[T], fill: Any = 0, capacity: int = 16) -> None:
        self._fill = fill
        self._data: NDArray[T] = np.full(capacity, fill, dtype)

    def grow(self, n_rows: int) -> None:
        size = self._data.shape[0]
        if n_rows > size:
            more = np.full(max(n_rows, 2 * size) - size, self._fill, self._data.dtype)
            self._data = np.concatenate([self._data, more])

    def head(self, n_rows: int) -> NDArray[T]:
        return self._data[:n_rows]

    @property
    def data(self) -> NDArray[T]:
        """The whole backing array, for writing single rows."""
        return self._data


class Amounts:
    """int64 [resources, rows] in memory, shown as [rows, resources]: a resource's column is contiguous."""

    __slots__ = ("_data",)

    def __init__(self, n_columns: int, capacity: int = 16) -> None:
        self._data: NDArray[np.int64] = np.zeros((n_columns, capacity), np.int64)

    def grow(self, n_columns: int, n_rows: int) -> None:
        columns, rows = self._data.shape
        if n_columns > columns or n_rows > rows:
            rows_after = rows if n_rows <= rows else max(n_rows, 2 * rows)
            bigger = np.zeros((max(n_columns, columns), rows_after), np.int64)
            bigger[:columns, :rows] = self._data
            self._data = bigger

    def head(self, n_rows: int) -> NDArray[np.int64]:
        return self._data[:, :n_rows].T

    @property
    def data(self) -> NDArray[np.int64]:
        """[resources, rows], for writing."""
        return self._data
