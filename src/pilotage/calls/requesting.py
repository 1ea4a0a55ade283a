"""The next request of a call: the write, one of its steps, or the read that must come first."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api.wire import Request
from pilotage.calls.slots import Slot, Wish
from pilotage.calls.types import Phase


def next_request(slot: Slot, wish: Wish, now: float) -> Request:
    """Raises IndexError where the type has no request for the step that the call is at."""
    is_blind = slot.base is None and wish.phase is Phase.SEND and wish.step == 0
    if is_blind and wish.kind.reads_first(wish.call):
        wish.phase = Phase.READ
    if wish.phase is not Phase.SEND:
        return wish.kind.read(wish.call)
    requests: Sequence[Request] = wish.kind.requests(wish.call, slot.base, now)
    if wish.step >= len(requests):
        raise IndexError(f"call type {wish.kind.name!r} has no request number {wish.step + 1}")
    return requests[wish.step]
