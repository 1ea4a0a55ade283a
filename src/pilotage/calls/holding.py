"""Calls that go only after another object's: an eviction after its preemptor's nomination (A18).

Law: what is held waits for an urgent wish that was there before it and was never sent, and for nothing else;
it goes on when that one was taken, ended or was withdrawn. What is waited for never waits itself, so that
nothing is held for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from pilotage.calls.guard import CallTypeRaisedError
from pilotage.calls.slots import Slot
from pilotage.calls.types import Lane


class Held:
    def __init__(self) -> None:
        # Object that is waited for -> slots that wait for it, in their order.
        self._by_other: dict[Hashable, dict[Hashable, None]] = {}

    def takes(self, slot: Slot, slots: Mapping[Hashable, Slot]) -> bool:
        """Whether the slot's next request must wait; it is kept then."""
        other = _waited_for(slot)
        if other is None or not owes(slots.get(other)):
            return False
        self._by_other.setdefault(other, {})[slot.key] = None
        return True

    def released_by(self, slot: Slot) -> Iterable[Hashable]:
        """Slots that waited for this one and need not any more."""
        if not self._by_other or owes(slot):
            return ()
        return self._by_other.pop(slot.key, ())

    def keys(self) -> set[Hashable]:
        return {key for keys in self._by_other.values() for key in keys}


def owes(slot: Slot | None) -> bool:
    """Whether an urgent wish of the slot was not sent yet."""
    if slot is None:
        return False
    return any(wish.lane is Lane.BIND and wish.first_sent is None for wish in slot.waiting)


def _waited_for(slot: Slot) -> Hashable:
    wish = slot.current
    if slot.running is not None:
        return None
    try:
        return wish.kind.waits_for(wish.call)
    except CallTypeRaisedError:
        return None
