"""How a new wish meets those that its object already has: relevance, merging, and what falls away.

Functions on one slot. Each answers with the wishes that ended by it, in order, with their outcomes; the
queue tells whoever waits and gives the slot its place. All answers of call types are gathered before
anything changes, so that one that raises leaves the slot as it was.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pilotage.api.meta import KubeObject
from pilotage.calls.guard import CallTypeRaisedError
from pilotage.calls.slots import Slot, Wish
from pilotage.framework.calls import CallResult, Outcome

Ended: TypeAlias = list[tuple[Wish, Outcome]]

OVERWRITTEN = Outcome(CallResult.OVERWRITTEN)
MERGED = Outcome(CallResult.OVERWRITTEN, "merged into a newer call of its type")
OUTDONE = Outcome(CallResult.SKIPPED, "a more relevant call is on its way")
NEEDLESS = Outcome(CallResult.SKIPPED, "the object already is as wished")


def failure(error: CallTypeRaisedError) -> Outcome:
    return Outcome(CallResult.FAILED, str(error))


def admit(slot: Slot, new: Wish) -> Ended:
    """Takes a wish into a slot: skipped, merged, or put in front of what is less relevant."""
    if not _shrink_beside_more_relevant(slot, new):
        return [(new, OUTDONE)]
    rests = _rests_beside(slot, new)
    same = _waiting_of_type(slot, new)
    if same is None:
        _insert(slot, new)
        return _overwrite(slot, rests)
    merged = same.kind.merge(same.call, new.call)
    older = Wish(same.call, same.kind, same.ticket, same.key, same.offered)
    older.tries, older.put_off, older.first_sent = same.tries, same.put_off, same.first_sent
    older.lane = same.lane
    same.take(merged)
    same.ticket, same.offered = new.ticket, new.offered
    same.tries, same.put_off, same.first_sent, same.is_last = 0, 0, None, new.is_last
    return [*_overwrite(slot, rests), (older, MERGED)]


def requeue(slot: Slot, wish: Wish) -> Ended:
    """A running wish goes back to waiting, to be sent again; what was wished meanwhile is newer."""
    slot.running = None
    wish.restart()
    if not _shrink_beside_more_relevant(slot, wish):
        return [(wish, OVERWRITTEN)]
    newer = _waiting_of_type(slot, wish)
    if newer is not None:
        newer.take(wish.kind.merge(wish.call, newer.call))
        newer.not_before = max(newer.not_before, wish.not_before)
        return [(wish, MERGED)]
    rests = _rests_beside(slot, wish)
    _insert(slot, wish)
    return _overwrite(slot, rests)


def prune(slot: Slot) -> Ended:
    """Ends what the newest known object makes needless.

    No-ops are judged only for the wish that is sent next, and only while the outcome of no other is open.
    """
    if slot.base is None:
        return []
    ended: Ended = []
    for wish in tuple(slot.waiting):
        is_next = slot.running is None and wish is slot.waiting[0]
        outcome = _needless(wish, slot.base, is_next=is_next)
        if outcome is not None:
            slot.waiting.remove(wish)
            ended.append((wish, outcome))
    return ended


def _needless(wish: Wish, base: KubeObject, *, is_next: bool) -> Outcome | None:
    try:
        rest = wish.kind.rebase(wish.call, base)
        if isinstance(rest, Outcome):
            return rest
        wish.take(rest)
        return NEEDLESS if is_next and wish.kind.is_no_op(rest, base) else None
    except CallTypeRaisedError as error:
        return failure(error)


def _shrink_beside_more_relevant(slot: Slot, new: Wish) -> bool:
    """Reduces `new` to what survives beside more relevant calls; False when nothing does."""
    for rival in slot.wishes():
        if rival.kind.relevance > new.kind.relevance:
            rest = new.kind.remainder(new.call, rival.call)
            if rest is None:
                return False
            new.take(rest)
    return True


def _rests_beside(slot: Slot, new: Wish) -> list[tuple[Wish, Any]]:
    """What survives of each less relevant waiting wish beside `new`."""
    lesser = [wish for wish in slot.waiting if wish.kind.relevance < new.kind.relevance]
    return [(wish, wish.kind.remainder(wish.call, new.call)) for wish in lesser]


def _overwrite(slot: Slot, rests: list[tuple[Wish, Any]]) -> Ended:
    for wish, rest in rests:
        if rest is None:
            slot.waiting.remove(wish)
        else:
            wish.take(rest)
    return [(wish, OVERWRITTEN) for wish, rest in rests if rest is None]


def _waiting_of_type(slot: Slot, wish: Wish) -> Wish | None:
    return next((one for one in slot.waiting if one.kind.name == wish.kind.name), None)


def _insert(slot: Slot, new: Wish) -> None:
    """Behind equals, before what is less relevant."""
    place = sum(1 for wish in slot.waiting if wish.kind.relevance >= new.kind.relevance)
    slot.waiting.insert(place, new)
