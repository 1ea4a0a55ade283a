"""The history of one resource: a bounded log that watches read with cursors of their own.

Laws: versions in a log only grow; a change older than `floor` may be gone, so a reader that starts before
it, or that falls behind it, is expired and must list again. A slow watcher therefore costs nothing but
its own position: there is no queue per watcher that could grow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pilotage.localcluster.store.records import Change


class ExpiredError(Exception):
    """The history asked for is gone: `version` is before `floor`."""

    def __init__(self, version: int, floor: int) -> None:
        super().__init__(f"too old resource version: {version} ({floor})")
        self.version = version
        self.floor = floor


def _version_of(change: Change) -> int:
    return change.version


class ChangeLog:
    """Keeps at least the newest `capacity` changes and at most twice as many."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._changes: list[Change] = []  # ascending versions
        self._base = 0  # sequence number of _changes[0]: how many were dropped so far
        self.floor = 0  # every change with a greater version is present

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def end(self) -> int:
        """Sequence number that the next change will get."""
        return self._base + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._capacity:
            self._drop(len(self._changes) - self._capacity)

    def compact(self, version: int) -> None:
        """Forget all changes up to and including `version`."""
        self._drop(bisect_right(self._changes, version, key=_version_of))
        self.floor = max(self.floor, version)

    def position_after(self, version: int) -> int:
        """Sequence number of the first change after `version`. Raises ExpiredError."""
        if version < self.floor:
            raise ExpiredError(version, self.floor)
        return self._base + bisect_right(self._changes, version, key=_version_of)

    def read(self, position: int, limit: int) -> Sequence[Change]:
        """Up to `limit` changes from a sequence number on. Raises ExpiredError when it was dropped."""
        start = position - self._base
        if start < 0:
            raise ExpiredError(self.floor, self.floor)
        return self._changes[start : start + limit]

    def after(self, version: int) -> Sequence[Change]:
        """All changes after `version`. Raises ExpiredError."""
        return self._changes[self.position_after(version) - self._base :]

    def _drop(self, count: int) -> None:
        if count:
            self.floor = max(self.floor, self._changes[count - 1].version)
            del self._changes[:count]
            self._base += count

    def check_invariants(self) -> None:
        versions = [change.version for change in self._changes]
        assert versions == sorted(set(versions)), "versions of a log must grow"
        assert not versions or versions[0] > self.floor, "a kept change must be above the floor"


class Cursor:
    """A reader's place in a log. `is_waiting`: it has read everything and was not told of news yet."""

    __slots__ = ("_log", "_position", "is_waiting", "last_version", "resource")

    def __init__(self, resource: str, log: ChangeLog, version: int) -> None:
        """Reads what follows `version`. Raises ExpiredError."""
        self.resource = resource
        self._log = log
        self._position = log.position_after(version)
        self.last_version = version
        self.is_waiting = False

    def read(self, limit: int) -> Sequence[Change]:
        """The next changes, at most `limit`; none means nothing new. A slow reader gets ExpiredError."""
        try:
            changes = self._log.read(self._position, limit)
        except ExpiredError:
            raise ExpiredError(self.last_version, self._log.floor) from None
        self._position += len(changes)
        if changes:
            self.last_version = changes[-1].version
        return changes

    @property
    def has_more(self) -> bool:
        return self._position < self._log.end
