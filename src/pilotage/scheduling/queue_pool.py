"""The unschedulable pool: rejected pods waiting for an event, and gated ones.

Laws: a record is indexed under every plugin that it waits on, a gated one under its gating plugin
alone, so that an event touches only pods whose plugins registered it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pilotage.scheduling.queue_hints import RejectorKey
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.transitions import Position


class UnschedulablePool:
    def __init__(self) -> None:
        # A UID is in exactly one of the two, by its record's position.
        self.unschedulable: dict[str, Record] = {}
        self.gated: dict[str, Record] = {}
        # (profile, plugin) -> records that wait on it, in order of entry.
        self._waiting: dict[RejectorKey, dict[str, Record]] = {}
        self._keys: dict[str, tuple[RejectorKey, ...]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, uid: object) -> bool:
        return uid in self._keys

    def __iter__(self) -> Iterator[Record]:
        yield from self.unschedulable.values()
        yield from self.gated.values()

    def add(self, record: Record) -> None:
        """Indexes the record by its position and by what it waits on."""
        uid = record.pod.uid
        self.remove(uid)
        home = self.gated if record.position is Position.GATED else self.unschedulable
        home[uid] = record
        keys = tuple((record.profile, plugin) for plugin in sorted(record.waits_on))
        self._keys[uid] = keys
        for key in keys:
            self._waiting.setdefault(key, {})[uid] = record

    def remove(self, uid: str) -> None:
        for key in self._keys.pop(uid, ()):
            waiting = self._waiting[key]
            del waiting[uid]
            if not waiting:
                del self._waiting[key]
        self.unschedulable.pop(uid, None)
        self.gated.pop(uid, None)

    def waiting_on(self, keys: Iterable[RejectorKey]) -> list[Record]:
        """Records that wait on any of the plugins, each once."""
        found: dict[str, Record] = {}
        for key in keys:
            found.update(self._waiting.get(key, {}))
        return list(found.values())

    def rejections(self) -> Mapping[RejectorKey, int]:
        return {key: len(waiting) for key, waiting in self._waiting.items()}

    def check_invariants(self) -> None:
        assert not self.gated.keys() & self.unschedulable.keys()
        assert self._keys.keys() == self.gated.keys() | self.unschedulable.keys()
        for uid, record in self.gated.items():
            assert record.position is Position.GATED, (uid, record.position)
            assert record.gating_plugin, uid
        for uid, record in self.unschedulable.items():
            assert record.position is Position.UNSCHEDULABLE, (uid, record.position)
            assert not record.gating_plugin, uid
        for record in self:
            keys = {(record.profile, plugin) for plugin in record.waits_on}
            assert set(self._keys[record.pod.uid]) == keys
            assert all(record.pod.uid in self._waiting[key] for key in keys)
        assert all(uid in self for waiting in self._waiting.values() for uid in waiting)
