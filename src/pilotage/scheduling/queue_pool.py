"""The unschedulable pool: rejected pods waiting for an event, and gated ones.

Laws: a record is indexed under every plugin that it waits on, a gated one under its gating plugin
alone, so that an event touches only pods whose plugins registered it; bound pods (resizes) are indexed by
their node too, so that an event touches only those of its node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from pilotage.scheduling.queue_hints import RejectorKey
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.transitions import Position

_Key: TypeAlias = tuple[RejectorKey, str]  # who is waited for, and the node of a bound pod or ""


class UnschedulablePool:
    def __init__(self) -> None:
        # A UID is in exactly one of the two, by its record's position.
        self.unschedulable: dict[str, Record] = {}
        self.gated: dict[str, Record] = {}
        # Key -> records that wait on it, in order of entry.
        self._waiting: dict[_Key, dict[str, Record]] = {}
        self._keys: dict[str, tuple[_Key, ...]] = {}

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
        keys = _keys(record)
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

    def waiting_on(self, rejectors: Iterable[RejectorKey], nodes: Collection[str] = ()) -> list[Record]:
        """Records that wait on any of the plugins, each once; of bound pods those on `nodes`."""
        found: dict[str, Record] = {}
        for rejector in rejectors:
            for node in ("", *nodes):
                found.update(self._waiting.get((rejector, node), {}))
        return list(found.values())

    def rejections(self) -> Mapping[RejectorKey, int]:
        counts: dict[RejectorKey, int] = {}
        for (rejector, _), waiting in self._waiting.items():
            counts[rejector] = counts.get(rejector, 0) + len(waiting)
        return counts

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
            assert set(self._keys[record.pod.uid]) == set(_keys(record))
            assert all(record.pod.uid in self._waiting[key] for key in _keys(record))
        assert all(uid in self for waiting in self._waiting.values() for uid in waiting)


def _keys(record: Record) -> tuple[_Key, ...]:
    return tuple(((record.profile, plugin), record.pod.node_name) for plugin in sorted(record.waits_on))
