"""Objects by resource and key, one version counter over all of them, and the log of every write.

Laws: versions are unique and grow over all resources; a write that changes nothing takes no version and
leaves no trace; each write is one atomic call (no callback, no await); a snapshot at any version that the
log still covers can be had, so a paged list stays consistent while others write.
The store knows nothing of kinds: it sets `metadata.resourceVersion`, reads `metadata.labels`, calls
the field reader of the resource, and keeps everything else as it came.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pilotage.localcluster.store.changes import ChangeLog, Cursor
from pilotage.localcluster.store.records import Change, ChangeType, Record, Tree, encode_tree, object_key

FieldReader: TypeAlias = Callable[[Tree], dict[str, str]]


class StoreError(Exception):
    """A write or read that the caller must answer for; the store is unchanged."""


class NotFoundError(StoreError):
    pass


class AlreadyExistsError(StoreError):
    pass


class ConflictError(StoreError):
    """The object moved on: `current` is its newest record."""

    def __init__(self, current: Record) -> None:
        super().__init__(f"{current.key} is at version {current.version}")
        self.current = current


class FutureVersionError(StoreError):
    """A version that was not given out yet."""

    def __init__(self, version: int, current: int) -> None:
        super().__init__(f"Too large resource version: {version}, current: {current}")
        self.version = version
        self.current = current


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a resource at one version, in key order."""

    version: int
    records: Sequence[Record]


@dataclass(slots=True)
class _Resource:
    log: ChangeLog
    read_fields: FieldReader
    objects: dict[str, Record] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)  # the keys of `objects`, sorted
    waiting: list[Cursor] = field(default_factory=list)  # cursors with `is_waiting`


def _no_fields(_tree: Tree) -> dict[str, str]:
    return {}


class Store:
    """`field_readers`: per resource, the values that field selectors may name. `history`: changes kept."""

    def __init__(
        self, field_readers: Mapping[str, FieldReader] | None = None, *, history: int = 20_000
    ) -> None:
        self._field_readers = dict(field_readers or {})
        self._history = history
        self._resources: dict[str, _Resource] = {}
        self._woken: list[Cursor] = []  # cursors that were waiting when a change came
        self.version = 1  # the newest version given out

    # reading

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        return self._of(resource).objects.get(object_key(namespace, name))

    def list(self, resource: str, namespace: str = "", *, version: int | None = None) -> Snapshot:
        """All objects, or those of one namespace; at `version`, or now.

        Raises ExpiredError, FutureVersionError.
        """
        entry = self._of(resource)
        if version is None or version == self.version:
            return Snapshot(self.version, list(_records(entry.objects, entry.keys, namespace)))
        self.check_version(version)
        objects = dict(entry.objects)
        for change in reversed(entry.log.after(version)):
            if change.old is None:
                objects.pop(change.new.key, None)
            else:
                objects[change.old.key] = change.old
        return Snapshot(version, list(_records(objects, sorted(objects), namespace)))

    def count(self, resource: str, namespace: str = "") -> int:
        entry = self._of(resource)
        if not namespace:
            return len(entry.keys)
        start, end = _range(entry.keys, namespace)
        return end - start

    def resources(self) -> Sequence[str]:
        """Resources that hold at least one object."""
        return [name for name, entry in self._resources.items() if entry.objects]

    def check_version(self, version: int) -> None:
        if version > self.version:
            raise FutureVersionError(version, self.version)

    # writing

    def create(self, resource: str, tree: Tree, *, is_dry_run: bool = False) -> Record:
        """Stores a new object, named by its metadata's name and namespace. Raises AlreadyExistsError.

        A dry run answers what would be stored and stores nothing, here as in the other writes.
        """
        entry = self._of(resource)
        meta = tree["metadata"]
        key = object_key(meta.get("namespace", ""), meta["name"])
        if key in entry.objects:
            raise AlreadyExistsError(key)
        record = self._record(entry, tree)
        if is_dry_run:
            return record
        insort(entry.keys, key)
        self._commit(entry, ChangeType.ADDED, None, record)
        return record

    def update(
        self, resource: str, tree: Tree, *, expected: int | None = None, is_dry_run: bool = False
    ) -> Record:
        """Replaces an object; the old record comes back when nothing changed.

        Raises NotFoundError, or ConflictError when `expected` is not its version.
        """
        entry = self._of(resource)
        old = self._current(entry, tree["metadata"].get("namespace", ""), tree["metadata"]["name"], expected)
        record = self._record(entry, tree)
        if _is_same(old, record):
            return old
        if is_dry_run:
            return record
        self._commit(entry, ChangeType.MODIFIED, old, record)
        return record

    def delete(self, resource: str, namespace: str, name: str, *, expected: int | None = None) -> Record:
        """Removes an object and returns its last state under the deletion's version."""
        entry = self._of(resource)
        old = self._current(entry, namespace, name, expected)
        record = self._record(entry, old.tree())
        del entry.keys[bisect_left(entry.keys, old.key)]
        self._commit(entry, ChangeType.DELETED, old, record)
        return record

    # watching

    def watch(self, resource: str, version: int) -> Cursor:
        """A cursor on what follows `version`. Raises ExpiredError, FutureVersionError."""
        self.check_version(version)
        return Cursor(resource, self._of(resource).log, version)

    def wait(self, cursor: Cursor) -> None:
        """Ask to hear of the next change: once, by `take_woken`."""
        if not cursor.is_waiting:
            cursor.is_waiting = True
            self._of(cursor.resource).waiting.append(cursor)

    def forget(self, cursor: Cursor) -> None:
        if cursor.is_waiting:
            cursor.is_waiting = False
            self._of(cursor.resource).waiting.remove(cursor)

    def take_woken(self) -> Sequence[Cursor]:
        """The waiting cursors that got news since the last call."""
        if not self._woken:
            return ()
        woken, self._woken = self._woken, []
        return woken

    def compact(self, version: int | None = None) -> None:
        """Forget history up to `version` (default: all): older watches and continues are ExpiredError."""
        for entry in self._resources.values():
            entry.log.compact(self.version if version is None else version)

    # inside

    def _of(self, resource: str) -> _Resource:
        entry = self._resources.get(resource)
        if entry is None:
            entry = _Resource(ChangeLog(self._history), self._field_readers.get(resource, _no_fields))
            self._resources[resource] = entry
        return entry

    def _current(self, entry: _Resource, namespace: str, name: str, expected: int | None) -> Record:
        key = object_key(namespace, name)
        old = entry.objects.get(key)
        if old is None:
            raise NotFoundError(key)
        if expected is not None and expected != old.version:
            raise ConflictError(old)
        return old

    def _record(self, entry: _Resource, tree: Tree) -> Record:
        version = self.version + 1
        meta = tree["metadata"]
        meta["resourceVersion"] = str(version)
        return Record(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            version=version,
            labels=meta.get("labels"),
            fields=entry.read_fields(tree),
            body=encode_tree(tree),
        )

    def _commit(self, entry: _Resource, kind: ChangeType, old: Record | None, new: Record) -> None:
        if kind is ChangeType.DELETED:
            del entry.objects[new.key]
        else:
            entry.objects[new.key] = new
        self.version = new.version
        entry.log.append(Change(kind, new.version, old, new, {}))
        if entry.waiting:
            for cursor in entry.waiting:
                cursor.is_waiting = False
            self._woken += entry.waiting
            entry.waiting = []

    def check_invariants(self) -> None:
        for entry in self._resources.values():
            assert entry.keys == sorted(entry.objects), "keys are the sorted object keys"
            assert all(key == record.key for key, record in entry.objects.items())
            assert all(record.version <= self.version for record in entry.objects.values())
            assert all(cursor.is_waiting for cursor in entry.waiting)
            entry.log.check_invariants()


def _range(keys: Sequence[str], namespace: str) -> tuple[int, int]:
    return bisect_left(keys, f"{namespace}/"), bisect_left(keys, f"{namespace}0")  # "0" follows "/"


def _records(objects: Mapping[str, Record], keys: Sequence[str], namespace: str) -> Iterator[Record]:
    start, end = _range(keys, namespace) if namespace else (0, len(keys))
    return map(objects.__getitem__, keys[start:end])


def _is_same(old: Record, new: Record) -> bool:
    """Equal but for the version. Sizes differ for most changes, which spares the comparison of trees."""
    if len(old.body) - len(str(old.version)) != len(new.body) - len(str(new.version)):
        return False
    before, after = old.tree(), new.tree()
    before["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"]
    return before == after
