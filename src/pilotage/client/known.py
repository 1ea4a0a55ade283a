"""What a watcher has told about: turns lists and watch events into changes, each told once (pure).

Why: between two lists a delete may have been missed, a name may carry another object, and a resumed
watch may repeat itself. The consumer must see none of it.

Laws: an object with a resourceVersion already told is not told again; what a new list lacks is told as
deleted with its last known state; another UID under a known name is a delete and then an add; a delete
of another UID than the known one, or of something never told, is nothing. A resourceVersion is compared
for equality; only when both are decimal numbers does order count, to drop a replayed older event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple


class ChangeType(Enum):
    UPSERTED = "upserted"
    DELETED = "deleted"
    UNDECODABLE = "undecodable"


class Identity(NamedTuple):
    """Of one object. `version` is the resourceVersion, "" when the object does not tell."""

    namespace: str
    name: str
    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class Change:
    """`object`: the new state, the last known one (DELETED), or the failure (UNDECODABLE).

    `identity` is that of the state in `object`; `is_new`: nothing of it was told before.
    """

    type: ChangeType
    object: Any
    identity: Identity
    is_new: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """One decoded or undecodable object as it arrived; `last` is the good state before a failure."""

    identity: Identity
    object: Any
    is_failure: bool = False
    last: Any = None


class KnownObjects:
    """`placeholder(identity)` makes the last known state of an object that never could be decoded."""

    def __init__(self, placeholder: Callable[[Identity], Any]) -> None:
        self._placeholder = placeholder
        # (namespace, name) -> what was told last, exactly while the consumer believes that it exists.
        self._known: dict[tuple[str, str], Seen] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Any]:
        """Decoded objects."""
        return (seen.object for seen in self._known.values() if not seen.is_failure)

    def replaced(self, items: Iterable[Seen]) -> list[Change]:
        """The changes that a complete list makes, deletes first, so that freed room and names are free."""
        fresh = {(item.identity.namespace, item.identity.name): item for item in items}
        gone = [key for key in self._known if key not in fresh]
        changes = [self._forget(key) for key in gone]
        for item in fresh.values():
            changes += self._tell(item, ordered=False)
        return changes

    def upserted(self, item: Seen) -> list[Change]:
        """The changes that an ADDED or MODIFIED event makes."""
        return self._tell(item, ordered=True)

    def deleted(self, item: Seen) -> list[Change]:
        """The changes that a DELETED event makes."""
        key = (item.identity.namespace, item.identity.name)
        known = self._known.get(key)
        if known is None or _is_other(known.identity, item.identity):
            return []
        if item.is_failure:
            return [self._forget(key)]
        del self._known[key]
        return [Change(ChangeType.DELETED, item.object, item.identity)]

    def _tell(self, item: Seen, *, ordered: bool) -> list[Change]:
        identity = item.identity
        key = (identity.namespace, identity.name)
        known = self._known.get(key)
        changes: list[Change] = []
        if known is not None:
            if _is_other(known.identity, identity):
                changes.append(self._forget(key))
            elif _is_told(known.identity, identity, ordered=ordered):
                return []
        if identity.name:  # a failure without a name can be reported but not remembered
            last = _last_good(known) if known is not None and not changes else None
            self._known[key] = replace(item, last=last) if item.is_failure else item
        kind = ChangeType.UNDECODABLE if item.is_failure else ChangeType.UPSERTED
        changes.append(Change(kind, item.object, identity, is_new=known is None or bool(changes)))
        return changes

    def _forget(self, key: tuple[str, str]) -> Change:
        seen = self._known.pop(key)
        last = _last_good(seen) or self._placeholder(seen.identity)
        return Change(ChangeType.DELETED, last, seen.identity)


def _last_good(seen: Seen) -> Any:
    return seen.last if seen.is_failure else seen.object


def _is_other(known: Identity, new: Identity) -> bool:
    return bool(known.uid and new.uid) and known.uid != new.uid


def _is_told(known: Identity, new: Identity, *, ordered: bool) -> bool:
    if not new.version:
        return False
    if known.version == new.version:
        return True
    both_numbers = known.version.isdecimal() and new.version.isdecimal()
    return ordered and both_numbers and int(new.version) < int(known.version)
