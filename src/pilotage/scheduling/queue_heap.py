"""A heap of records with O(1) removal: removed entries stay until they surface or are too many.

Law: `len` counts live records only, a record is in at most once, and equal keys keep arrival order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from pilotage.scheduling.queue_record import Record


class RecordHeap:
    """Smallest `key(record)` first; the key is read once, on entry."""

    def __init__(self, key: Callable[[Record], Any]) -> None:
        self._key = key
        self._entries: list[tuple[Any, int, str]] = []
        # UID -> number of the entry that is live for it, and its record.
        self._live: dict[str, tuple[int, Record]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: object) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self._live.values())

    def push(self, record: Record) -> None:
        """Adds the record, or gives it its present key."""
        self._next += 1
        self._live[record.pod.uid] = (self._next, record)
        heapq.heappush(self._entries, (self._key(record), self._next, record.pod.uid))
        if len(self._entries) > 64 and len(self._entries) > 2 * len(self._live):
            self._compact()

    def remove(self, uid: str) -> None:
        self._live.pop(uid, None)

    def peek(self) -> Record | None:
        """The head, or None."""
        while self._entries:
            _, number, uid = self._entries[0]
            live = self._live.get(uid)
            if live is not None and live[0] == number:
                return live[1]
            heapq.heappop(self._entries)
        return None

    def pop(self) -> Record | None:
        record = self.peek()
        if record is not None:
            heapq.heappop(self._entries)
            del self._live[record.pod.uid]
        return record

    def _compact(self) -> None:
        self._entries = [entry for entry in self._entries if self._is_live(entry[1], entry[2])]
        heapq.heapify(self._entries)

    def _is_live(self, number: int, uid: str) -> bool:
        live = self._live.get(uid)
        return live is not None and live[0] == number
