"""What happened to each pod, as short lines: bounded per pod, dropped when the pod is gone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

ENTRIES_PER_POD = 50


@dataclass(frozen=True, slots=True)
class StoryEntry:
    time: float  # seconds since the epoch
    stimulus: int
    text: str

    def __str__(self) -> str:
        return f"{self.time:.3f} #{self.stimulus} {self.text}"


class Stories:
    def __init__(self, entries_per_pod: int = ENTRIES_PER_POD) -> None:
        self._limit = entries_per_pod
        self._entries: dict[str, deque[StoryEntry]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def tell(self, uid: str, time: float, stimulus: int, text: str) -> None:
        entries = self._entries.get(uid)
        if entries is None:
            entries = self._entries[uid] = deque(maxlen=self._limit)
        entries.append(StoryEntry(time, stimulus, text))

    def of(self, uid: str) -> tuple[StoryEntry, ...]:
        """Oldest first; the oldest are dropped where there are too many."""
        return tuple(self._entries.get(uid, ()))

    @property
    def pods(self) -> frozenset[str]:
        return frozenset(self._entries)

    def forget(self, uid: str) -> None:
        self._entries.pop(uid, None)
