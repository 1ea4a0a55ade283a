"""Things that are due at a time: earliest first, removed at no cost, looked at on every stimulus."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Keys with one deadline each (seconds since the epoch)."""

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        # (deadline, number of entry, key); entries whose number is not that of `_due` are stale.
        self._heap: list[tuple[float, int, K]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: object) -> bool:
        return key in self._due

    def set(self, key: K, deadline: float) -> None:
        self._added += 1
        self._due[key] = (deadline, self._added)
        heapq.heappush(self._heap, (deadline, self._added, key))

    def remove(self, key: K) -> None:
        self._due.pop(key, None)

    def next(self) -> float | None:
        """The earliest deadline."""
        while self._heap:
            deadline, number, key = self._heap[0]
            if self._due.get(key) == (deadline, number):
                return deadline
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: float) -> list[K]:
        """Keys whose deadline is over, earliest first; they are removed."""
        due: list[K] = []
        while (deadline := self.next()) is not None and deadline <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            due.append(key)
        return due
