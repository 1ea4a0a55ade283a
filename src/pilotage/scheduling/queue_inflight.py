"""Pods popped and not done, and the cluster events since the oldest of them was popped.

Laws: nothing is logged while no pod is in flight; the log is pruned whenever the oldest pod leaves; a
pod in flight for so long that the log would pass its limit gives up its part and counts as hit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pilotage.scheduling.queue_hints import Occurrence
from pilotage.scheduling.queue_record import Record

LOG_LIMIT = 50_000


class InFlight:
    def __init__(self, limit: int = LOG_LIMIT) -> None:
        # In order of pop, so the first one's `in_flight_from` is the smallest.
        self._records: dict[str, Record] = {}
        self._log: list[Occurrence] = []
        self._base = 0  # number of the first logged event
        self._limit = limit

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, uid: object) -> bool:
        return uid in self._records

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def start(self, record: Record) -> None:
        record.in_flight_from = self._base + len(self._log)
        record.missed_events = False
        self._records[record.pod.uid] = record

    def log(self, occurrence: Occurrence) -> None:
        if not self._records:
            return
        self._log.append(occurrence)
        if len(self._log) > self._limit:
            self._give_up_oldest()

    def since_pop(self, record: Record) -> list[Occurrence]:
        """Events that happened since the record was popped."""
        return self._log[record.in_flight_from - self._base :]

    def finish(self, uid: str) -> None:
        if self._records.pop(uid, None) is not None:
            self._prune()

    def event_counts(self) -> Counter[str]:
        """Retained events by label, and the markers of popped pods as `PodPopped`."""
        counts = Counter(str(occurrence.event) for occurrence in self._log)
        if self._records:
            counts["PodPopped"] = len(self._records)
        return counts

    def _prune(self) -> None:
        oldest = next(iter(self._records.values()), None)
        keep_from = oldest.in_flight_from if oldest is not None else self._base + len(self._log)
        del self._log[: keep_from - self._base]
        self._base = keep_from

    def _give_up_oldest(self) -> None:
        uid, record = next(iter(self._records.items()))
        del self._records[uid]
        self.start(record)
        record.missed_events = True
        self._prune()

    def check_invariants(self) -> None:
        starts = [record.in_flight_from for record in self._records.values()]
        assert starts == sorted(starts), starts
        assert not starts or starts[0] == self._base
        assert self._records or not self._log
