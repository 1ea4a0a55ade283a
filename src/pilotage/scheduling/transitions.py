"""Legal moves of a pod's position in the queue and of its binding, as literal tables.

Laws: every change of position or stage goes through `next_position` / `next_stage`; what the table does
not hold raises `IllegalMoveError` and leaves the state as it was. Diagrams and tests read the tables.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class IllegalMoveError(Exception):
    """The engine tried a move that the tables do not hold: a bug of the engine."""


class Position(Enum):
    """Where a pod is as the queue sees it. ABSENT: unknown, bound, or past WaitOnPermit."""

    ABSENT = "absent"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"


class Move(Enum):
    ADMIT = "admit"  # ready now: passed PreEnqueue, no backoff left
    DELAY = "delay"  # passed PreEnqueue, backs off after a rejection
    WAIT_OUT = (
        "wait_out"  # passed PreEnqueue, backs off to the end: after an error, a lost track, an early try
    )
    GATE = "gate"  # a PreEnqueue plugin refused
    PARK = "park"  # rejected, and no event since that could help
    POP = "pop"
    DONE = "done"  # the attempt's scheduling part is over, nothing to requeue
    REMOVE = "remove"  # deleted, or bound by someone


_P, _M = Position, Move

POSITIONS: Final[dict[tuple[Position, Move], Position]] = {
    (_P.ABSENT, _M.ADMIT): _P.ACTIVE,
    (_P.ABSENT, _M.DELAY): _P.BACKOFF,
    (_P.ABSENT, _M.WAIT_OUT): _P.ERROR_BACKOFF,
    (_P.ABSENT, _M.GATE): _P.GATED,
    (_P.ACTIVE, _M.POP): _P.IN_FLIGHT,
    (_P.ACTIVE, _M.REMOVE): _P.ABSENT,
    (_P.BACKOFF, _M.ADMIT): _P.ACTIVE,
    (_P.BACKOFF, _M.GATE): _P.GATED,
    (_P.BACKOFF, _M.POP): _P.IN_FLIGHT,
    (_P.BACKOFF, _M.REMOVE): _P.ABSENT,
    (_P.ERROR_BACKOFF, _M.ADMIT): _P.ACTIVE,
    (_P.ERROR_BACKOFF, _M.GATE): _P.GATED,
    (_P.ERROR_BACKOFF, _M.REMOVE): _P.ABSENT,
    (_P.UNSCHEDULABLE, _M.ADMIT): _P.ACTIVE,
    (_P.UNSCHEDULABLE, _M.DELAY): _P.BACKOFF,
    (_P.UNSCHEDULABLE, _M.WAIT_OUT): _P.ERROR_BACKOFF,
    (_P.UNSCHEDULABLE, _M.GATE): _P.GATED,
    (_P.UNSCHEDULABLE, _M.REMOVE): _P.ABSENT,
    (_P.GATED, _M.ADMIT): _P.ACTIVE,
    (_P.GATED, _M.DELAY): _P.BACKOFF,
    (_P.GATED, _M.WAIT_OUT): _P.ERROR_BACKOFF,
    (_P.GATED, _M.GATE): _P.GATED,
    (_P.GATED, _M.REMOVE): _P.ABSENT,
    (_P.IN_FLIGHT, _M.ADMIT): _P.ACTIVE,
    (_P.IN_FLIGHT, _M.DELAY): _P.BACKOFF,
    (_P.IN_FLIGHT, _M.WAIT_OUT): _P.ERROR_BACKOFF,
    (_P.IN_FLIGHT, _M.GATE): _P.GATED,
    (_P.IN_FLIGHT, _M.PARK): _P.UNSCHEDULABLE,
    (_P.IN_FLIGHT, _M.DONE): _P.ABSENT,
    (_P.IN_FLIGHT, _M.REMOVE): _P.ABSENT,
}


def next_position(position: Position, move: Move) -> Position:
    """The position after `move`. Raises IllegalMoveError."""
    try:
        return POSITIONS[position, move]
    except KeyError:
        raise IllegalMoveError(f"pod position {position.value}: no move {move.value}") from None


class Stage(Enum):
    """Where a pod with a chosen node is. ENDED and FAILED are final."""

    ASSUMED = "assumed"
    RESERVED = "reserved"
    PERMITTING = "permitting"  # an async Permit step runs
    WAITING = "waiting"  # parked by Permit plugins
    PERMITTED = "permitted"
    PRE_BINDING = "pre_binding"
    BINDING = "binding"
    ENDED = "ended"
    FAILED = "failed"


class Step(Enum):
    RESERVE = "reserve"
    PERMIT_STEP = "permit_step"
    WAIT = "wait"
    ALLOW = "allow"
    PRE_BIND = "pre_bind"
    BIND = "bind"
    CONFIRM = "confirm"  # bound, by our call or as the informer shows it
    FAIL = "fail"


_S, _T = Stage, Step

STAGES: Final[dict[tuple[Stage, Step], Stage]] = {
    (_S.ASSUMED, _T.RESERVE): _S.RESERVED,
    (_S.ASSUMED, _T.FAIL): _S.FAILED,
    (_S.RESERVED, _T.PERMIT_STEP): _S.PERMITTING,
    (_S.RESERVED, _T.WAIT): _S.WAITING,
    (_S.RESERVED, _T.ALLOW): _S.PERMITTED,
    (_S.RESERVED, _T.FAIL): _S.FAILED,
    (_S.PERMITTING, _T.PERMIT_STEP): _S.PERMITTING,
    (_S.PERMITTING, _T.WAIT): _S.WAITING,
    (_S.PERMITTING, _T.ALLOW): _S.PERMITTED,
    (_S.PERMITTING, _T.CONFIRM): _S.ENDED,
    (_S.PERMITTING, _T.FAIL): _S.FAILED,
    (_S.WAITING, _T.ALLOW): _S.PERMITTED,
    (_S.WAITING, _T.CONFIRM): _S.ENDED,
    (_S.WAITING, _T.FAIL): _S.FAILED,
    (_S.PERMITTED, _T.PRE_BIND): _S.PRE_BINDING,
    (_S.PERMITTED, _T.FAIL): _S.FAILED,
    (_S.PRE_BINDING, _T.BIND): _S.BINDING,
    (_S.PRE_BINDING, _T.CONFIRM): _S.ENDED,
    (_S.PRE_BINDING, _T.FAIL): _S.FAILED,
    (_S.BINDING, _T.CONFIRM): _S.ENDED,
    (_S.BINDING, _T.FAIL): _S.FAILED,
}


def next_stage(stage: Stage, step: Step) -> Stage:
    """The stage after `step`. Raises IllegalMoveError."""
    try:
        return STAGES[stage, step]
    except KeyError:
        raise IllegalMoveError(f"binding stage {stage.value}: no step {step.value}") from None
