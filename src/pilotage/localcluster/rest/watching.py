"""Watches: what a client is told of changes, line by line.

Laws: lines come in version order and each change is told once; a selector turns a change into ADDED,
MODIFIED or DELETED for this watch; a bookmark promises that everything up to its version was told. Changes
that all watches of one form see alike are encoded once. A watch that fell out of history ends with one
ERROR line (410). Nothing here waits: the edge polls after the store said that there is news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from pilotage.api.kinds import Kind
from pilotage.api.wire import INITIAL_EVENTS_END, JSON, bookmark_frame, watch_frame
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import expired, version_too_large
from pilotage.localcluster.rest.listing import check_known, parse_version
from pilotage.localcluster.rest.negotiation import Form, Shape
from pilotage.localcluster.rest.rendering import object_bytes, table
from pilotage.localcluster.rest.selection import Selection, selection_of
from pilotage.localcluster.store import (
    Change,
    ChangeType,
    Cursor,
    ExpiredError,
    FutureVersionError,
    Record,
    Store,
    encode_tree,
)

BATCH = 500
_BOOKMARK_EVERY = 60.0
_LAST_BOOKMARK = 2.0  # seconds before the end
_SHORTEST, _SPREAD = 1800, 1800  # default length of a watch: 30 to 60 minutes


class WatchResponse:
    """An open watch. Poll it after its cursor was woken and when `next_deadline` has come."""

    status = 200

    def __init__(self, call: Call, selection: Selection, cursor: Cursor, ends_at: float) -> None:
        self.kind: Kind = call.kind
        self.content_type = JSON
        self.headers: Mapping[str, str] = {}
        self.is_closed = False
        self._store: Store = call.store
        self._form: Form = call.form
        self._selection = selection
        self._cursor = cursor
        self._initial: Sequence[Record] = ()  # what is still to be told as ADDED
        self._initial_end_due = False  # whether the bookmark that ends the initial ADDEDs is still owed
        self._has_bookmarks = call.flag("allowWatchBookmarks")
        self._needs_columns = self._form.shape is Shape.TABLE
        self._next_bookmark = min(call.now + _BOOKMARK_EVERY, ends_at - _LAST_BOOKMARK)
        self._ends_at = ends_at

    @property
    def cursor(self) -> Cursor:
        return self._cursor

    def start_with(self, records: Sequence[Record], *, is_announced: bool) -> None:
        """Tell these as ADDED first; `is_announced`: then a bookmark says that they were all."""
        self._initial = records
        self._initial_end_due = is_announced

    def next_deadline(self) -> float:
        """Epoch seconds at which there is something to say or to end without news."""
        return min(self._ends_at, self._next_bookmark) if self._has_bookmarks else self._ends_at

    def close(self) -> None:
        self.is_closed = True
        self._store.forget(self._cursor)

    def poll(self, now: float) -> list[bytes]:
        """The next lines, newline included. Empty: nothing now; the store will say when there is news."""
        if self.is_closed:
            return []
        frames = self._initial_frames(now) or self._change_frames(now)
        if not frames and self._has_bookmarks and now >= self._next_bookmark:
            self._next_bookmark = self._bookmark_after(now)
            frames = [self._bookmark(None)]
        if now >= self._ends_at and not frames:
            self.close()
        if not frames and not self.is_closed:
            self._store.wait(self._cursor)
        return frames

    def _initial_frames(self, now: float) -> list[bytes]:
        if self._initial:
            batch, self._initial = self._initial[:BATCH], self._initial[BATCH:]
            return [self._line(ChangeType.ADDED, record, now) for record in batch]
        if self._initial_end_due:
            self._initial_end_due = False
            return [self._bookmark({INITIAL_EVENTS_END: "true"})]
        return []

    def _change_frames(self, now: float) -> list[bytes]:
        frames: list[bytes] = []
        while not frames:
            try:
                changes = self._cursor.read(BATCH)
            except ExpiredError as error:
                self.close()
                return [watch_frame("ERROR", encode_tree(expired(str(error)).status()))]
            if not changes:
                break
            for change in changes:
                self._tell(change, frames, now)
        return frames

    def _tell(self, change: Change, frames: list[bytes], now: float) -> None:
        """Append what this watch is told of a change, if anything."""
        was_seen = change.old is not None and self._selection.matches(change.old)
        if change.type is not ChangeType.DELETED and self._selection.matches(change.new):
            kind = ChangeType.MODIFIED if was_seen else ChangeType.ADDED
            frames.append(self._shared_line(change, kind, change.new, now))
        elif was_seen and change.old is not None:
            is_gone = change.type is ChangeType.DELETED
            record = change.new if is_gone else _under_version(change.old, change.version)
            frames.append(self._shared_line(change, ChangeType.DELETED, record, now))

    def _shared_line(self, change: Change, kind: ChangeType, record: Record, now: float) -> bytes:
        key = (self.kind, self._form, kind, self._needs_columns)
        line = change.frames.get(key)
        if line is None:
            line = change.frames[key] = self._line(kind, record, now)
        self._needs_columns = False
        return line

    def _line(self, kind: ChangeType, record: Record, now: float) -> bytes:
        if self._form.shape is not Shape.TABLE:
            return watch_frame(kind.value, object_bytes(self.kind, record, self._form, now))
        has_columns, self._needs_columns = self._needs_columns, False
        rows = table(
            self.kind, [record], self._form, now, version=str(record.version), has_columns=has_columns
        )
        return watch_frame(kind.value, encode_tree(rows))

    def _bookmark(self, annotations: Mapping[str, str] | None) -> bytes:
        version = str(self._store.version)
        if self._form.shape is Shape.TABLE:
            return watch_frame(
                "BOOKMARK",
                encode_tree(table(self.kind, [], self._form, 0.0, version=version, has_columns=False)),
            )
        if self._form.shape is Shape.METADATA:
            return bookmark_frame(
                "PartialObjectMetadata", f"meta.k8s.io/{self._form.version}", version, annotations
            )
        return bookmark_frame(self.kind.kind, self.kind.api_version, version, annotations)

    def _bookmark_after(self, now: float) -> float:
        last = self._ends_at - _LAST_BOOKMARK
        if now < last:
            return min(now + _BOOKMARK_EVERY, last)
        return self._ends_at if now < self._ends_at else inf  # the one at the end is the last


def _under_version(record: Record, version: int) -> Record:
    """An object's former state under the version of the change that took it out of sight."""
    tree = record.tree()
    tree["metadata"]["resourceVersion"] = str(version)
    return Record(
        record.namespace, record.name, record.uid, version, record.labels, record.fields, encode_tree(tree)
    )


def watch_objects(call: Call) -> WatchResponse:
    """Raises RestError 400, 410, 422 or 504."""
    selection = selection_of(call)
    sends_initial = _sends_initial(call)
    version = parse_version(call.query.get("resourceVersion", ""))
    is_fresh = sends_initial if sends_initial is not None else version == 0
    check_known(call, version)
    try:
        start = call.store.version if is_fresh or version == 0 else version
        cursor = call.store.watch(call.kind.storage_resource, start)
    except ExpiredError as error:
        raise expired(str(error)) from None
    except FutureVersionError as error:
        raise version_too_large(error.version, error.current) from None
    watch = WatchResponse(call, selection, cursor, call.now + _length(call))
    if is_fresh:
        records = call.store.list(call.kind.storage_resource, call.namespace).records
        watch.start_with([r for r in records if selection.matches(r)], is_announced=bool(sends_initial))
    return watch


def _sends_initial(call: Call) -> bool | None:
    """`sendInitialEvents`, None when absent. Raises RestError 422 when its companions are missing."""
    match = call.query.get("resourceVersionMatch", "")
    if "sendInitialEvents" not in call.query:
        if match:
            raise call.invalid_list_option(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return None
    wanted = call.flag("sendInitialEvents")
    if match != "NotOlderThan":
        raise call.invalid_list_option(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if wanted and not call.flag("allowWatchBookmarks"):
        raise call.invalid_list_option("sendInitialEvents", "sendInitialEvents requires allowWatchBookmarks")
    return wanted


def _length(call: Call) -> int:
    """Seconds until the server ends the watch; spread by version so that watches do not end together."""
    return call.number("timeoutSeconds") or _SHORTEST + call.store.version * 7919 % _SPREAD
