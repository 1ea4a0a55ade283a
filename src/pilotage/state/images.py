"""Which nodes have which image, and its size.

Law: one size per image name for the whole cluster, the one reported by the node that brought the name
first; forgotten when the last node with the image goes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pilotage.api.nodes import ContainerImage
from pilotage.state.view import ImageInfo


class _Image:
    __slots__ = ("info", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()
        self.info: ImageInfo | None = None  # built when read, dropped when `rows` changes


class ImageIndex:
    """Image names to size and rows; names by row."""

    __slots__ = ("_by_row", "_images")

    def __init__(self) -> None:
        self._images: dict[str, _Image] = {}
        self._by_row: dict[int, frozenset[str]] = {}

    def set_row(self, row: int, images: Iterable[ContainerImage]) -> None:
        sizes: dict[str, int] = {}
        for image in images:
            for name in image.names or ():
                sizes.setdefault(name, image.size_bytes)
        before = self._by_row.get(row, frozenset())
        for name in before - sizes.keys():
            self._drop(row, name)
        for name in sizes.keys() - before:
            self._add(row, name, sizes[name])
        for name in before & sizes.keys():
            self._refresh(row, name, sizes[name])
        self._by_row[row] = frozenset(sizes)

    def clear_row(self, row: int) -> None:
        for name in self._by_row.pop(row, ()):
            self._drop(row, name)

    def _add(self, row: int, name: str, size: int) -> None:
        image = self._images.get(name)
        if image is None:
            image = self._images[name] = _Image(size)
        image.rows.add(row)
        image.info = None

    def _refresh(self, row: int, name: str, size: int) -> None:
        """A node alone with an image may correct its size."""
        image = self._images[name]
        if image.size != size and image.rows == {row}:
            image.size = size
            image.info = None

    def _drop(self, row: int, name: str) -> None:
        image = self._images[name]
        image.rows.discard(row)
        image.info = None
        if not image.rows:
            del self._images[name]

    def get(self, name: str) -> ImageInfo | None:
        image = self._images.get(name)
        if image is None:
            return None
        if image.info is None:
            rows = np.fromiter(sorted(image.rows), np.intp, len(image.rows))
            image.info = ImageInfo(image.size, rows)
        return image.info

    def on_row(self, row: int) -> frozenset[str]:
        return frozenset(name for name, image in self._images.items() if row in image.rows)
