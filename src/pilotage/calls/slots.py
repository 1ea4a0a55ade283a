"""What the queue keeps per written object: the wishes that wait and the one that is being carried out.

Laws:
- A slot holds at most one waiting wish per call type, the most relevant first; normally one in all. A
  second one is only what survived a more relevant call (`CallType.remainder`).
- `running` is the wish whose outcome is open at the server. It keeps the object to itself, also between
  its requests (a read, a verification, the second of two requests).
- `base` is the newest version of the object that anybody showed us, None when none is known.

The positions of a slot and the moves between them are the table `MOVES`; nothing else moves one.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pilotage.api.meta import KubeObject
from pilotage.calls.guard import CallTypeRaisedError
from pilotage.calls.types import CallType, Lane, Phase
from pilotage.framework.calls import ObjectKey


class Position(Enum):
    NEW = "new"  # just made, or emptied: nothing may be sent
    QUEUED = "queued"  # its next request waits for its turn (or its time) in a lane
    IN_FLIGHT = "in flight"  # one request is out
    GONE = "gone"


class Move(Enum):
    ENQUEUE = "enqueue"
    TAKE = "take"
    ANSWER = "answer"
    FORGET = "forget"


MOVES: dict[tuple[Position, Move], Position] = {
    (Position.NEW, Move.ENQUEUE): Position.QUEUED,
    (Position.NEW, Move.FORGET): Position.GONE,
    (Position.QUEUED, Move.ENQUEUE): Position.QUEUED,
    (Position.QUEUED, Move.TAKE): Position.IN_FLIGHT,
    (Position.QUEUED, Move.FORGET): Position.GONE,
    (Position.IN_FLIGHT, Move.ANSWER): Position.NEW,
    (Position.IN_FLIGHT, Move.FORGET): Position.GONE,
}


class IllegalMoveError(RuntimeError):
    """A bug in the queue: a slot was moved in a way the table does not know."""


@dataclass(slots=True, eq=False)
class Wish:
    """One call on its way. Times in seconds since the epoch."""

    call: Any  # a Call of the type's own class
    kind: CallType[Any]
    ticket: int | None  # None: nobody waits
    key: ObjectKey
    offered: float  # when the newest part of it was wished
    not_before: float = 0.0
    tries: int = 0  # requests sent, verifications left out
    put_off: int = 0  # how many of them were answered 429
    phase: Phase = Phase.SEND
    step: int = 0
    unsure: bool = False  # a send went unanswered and may have had its effect
    cancelled: str = ""  # why it must not be tried again
    first_sent: float | None = None
    reads: int = 0  # verifications sent
    lane: Lane = Lane.STATUS  # of `call`, set with it
    is_last: bool = False  # what it writes is complete: no later wish builds on it

    def take(self, call: Any) -> None:
        """Carries `call` from now on."""
        self.lane = self.kind.lane(call)
        self.call = call

    @property
    def holds(self) -> bool:
        """Whether nothing else may be sent to the object before this wish ended."""
        return self.phase is not Phase.SEND or self.step > 0 or self.unsure

    def restart(self) -> None:
        """Back to the first request, on whatever the newest object is."""
        self.phase, self.step = Phase.SEND, 0

    def taken_back(self, base: KubeObject) -> KubeObject | None:
        """`base` where decisions have seen it with the change of this wish, which failed."""
        with suppress(CallTypeRaisedError):
            return base if self.kind.apply(self.call, base) is not base else None
        return base


@dataclass(slots=True, eq=False)
class Slot:
    key: Hashable
    object: ObjectKey
    sequence: int  # place in the queue: kept while calls replace each other
    base: KubeObject | None = None
    running: Wish | None = None
    sent_base: KubeObject | None = None  # what the request in flight was computed on
    waiting: list[Wish] = field(default_factory=list)
    position: Position = Position.NEW

    @property
    def is_empty(self) -> bool:
        return self.running is None and not self.waiting

    @property
    def current(self) -> Wish:
        """The wish that the next request belongs to. Not for an empty slot."""
        return self.running or self.waiting[0]

    def wishes(self) -> list[Wish]:
        """The running one first, then the waiting ones in the order in which they will be sent."""
        return [self.running, *self.waiting] if self.running is not None else list(self.waiting)

    def move(self, move: Move) -> None:
        target = MOVES.get((self.position, move))
        if target is None:
            raise IllegalMoveError(f"{self.key}: {move.value} while {self.position.value}")
        self.position = target

    def learn(self, newest: KubeObject | None) -> bool:
        """Takes `newest` as base unless a newer version is known. True if it is the base now."""
        if newest is None or (self.base is not None and is_newer(self.base, newest)):
            return False
        self.base = newest
        return True

    def check(self) -> None:
        relevances = [wish.kind.relevance for wish in self.waiting]
        names = {wish.kind.name for wish in self.waiting}
        assert relevances == sorted(relevances, reverse=True), f"{self.key}: order of {names}"
        assert len(names) == len(self.waiting), f"{self.key}: two waiting calls of one type"
        assert self.position in (Position.QUEUED, Position.IN_FLIGHT), f"{self.key}: {self.position}"
        assert not self.is_empty, f"{self.key}: empty slot kept"
        assert self.position is Position.QUEUED or self.running is not None


def is_newer(one: KubeObject, other: KubeObject) -> bool:
    """Whether `one` is a later version; versions that are not integers compare as not newer."""
    left, right = one.metadata.resource_version, other.metadata.resource_version
    return left.isdecimal() and right.isdecimal() and int(left) > int(right)
