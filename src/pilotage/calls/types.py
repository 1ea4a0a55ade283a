"""What a call type is: the contract between the call queue and everything that can be written.

Laws:
- The queue owns order and nothing else. Merging, no-ops, what a newer object leaves of a wish, the
  requests and the meaning of their answers belong to the one implementation registered per type.
- All methods are pure: no clock, no randomness, no IO. Times are seconds since the epoch.
- A new kind of write is one new class plus one registration; the queue never changes for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response
from pilotage.calls.verdicts import Verdict
from pilotage.framework.calls import Call, ObjectKey, Outcome

C = TypeVar("C", bound=Call)


class Lane(IntEnum):
    """Lanes by importance, the most urgent first. A merged call takes the most urgent of its parts."""

    BIND = 0  # binds, evictions
    VOLUME = 1  # volumes, claims
    NOMINATION = 2
    STATUS = 3
    EVENT = 4


class Relevance(IntEnum):
    """Of two calls on one object the more relevant one wins. Any int will do for other types."""

    STATUS = 1
    BINDING = 2
    EVICTION = 3


class Phase(Enum):
    """What a request of a call is for."""

    SEND = "send"  # the write itself
    READ = "read"  # fetch the newest object, then write on top of it
    VERIFY = "verify"  # a write went unanswered: read what became of it before anything else


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No complete answer came. `sent`: the request may have had its effect."""

    sent: bool
    error: str = ""


Result: TypeAlias = Response | NoAnswer


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Seconds. `tries` requests at most, and none later than `max_age` after the first."""

    tries: int = 8
    first_delay: float = 0.1
    max_delay: float = 10.0
    max_age: float = 60.0
    timeout: float = 30.0  # per request

    def delay(self, tries: int) -> float:
        """How long to wait after `tries` fruitless ones: doubling, capped."""
        return min(self.max_delay, self.first_delay * 2.0 ** max(0, tries - 1))


@dataclass(frozen=True, slots=True)
class Sent(Generic[C]):
    """A request that went out: the call as sent, and the object it was computed on."""

    call: C
    base: KubeObject | None
    phase: Phase
    step: int  # index into `requests`
    unsure: bool  # an earlier send of this call may have had its effect


class CallType(Protocol[C]):
    """One kind of write. `BaseCallType` has defaults for all but `name` and `requests`."""

    name: str
    relevance: int
    retry: RetryPolicy
    linger: float  # seconds for which a sent call is remembered (0: not at all), see `after`

    def prepare(self, call: C, now: float) -> C:
        """The call as kept in the queue, with what depends on the moment of the wish."""

    def slot(self, call: C) -> Hashable:
        """The object that is written. Calls of one slot are never in flight together."""

    def lane(self, call: C) -> Lane: ...

    def waits_for(self, call: C) -> ObjectKey | None:
        """An object whose urgent wish, where it was there before and is not sent yet, goes first."""

    def merge(self, old: C, new: C) -> C:
        """Both wishes in one, the newer winning field by field."""

    def remainder(self, call: C, by: Call) -> C | None:
        """What survives of `call` beside the more relevant `by`; None: nothing."""

    def after(self, call: C, sent: C) -> C | Outcome:
        """What is still wanted of `call` once `sent` was written; an Outcome ends it."""

    def earliest(self, call: C) -> float:
        """When `call` may be written at the earliest; until then it is only remembered."""

    def remember(self, call: C, now: float) -> C:
        """The written call as later `after` calls shall see it (only where `linger` > 0)."""

    def rebase(self, call: C, newest: KubeObject) -> C | Outcome:
        """What is still wanted on top of a newer object; an Outcome ends the call."""

    def is_no_op(self, call: C, base: KubeObject) -> bool:
        """Whether writing `call` on `base` would change nothing."""

    def apply(self, call: C, base: KubeObject) -> KubeObject:
        """`base` with the change, as decisions shall see it before it is written."""

    def reads_first(self, call: C) -> bool:
        """Whether the newest object must be known before the first request."""

    def read(self, call: C) -> Request: ...

    def requests(self, call: C, base: KubeObject | None, now: float) -> Sequence[Request]:
        """The write as one or more requests, sent in this order."""

    def on_result(self, sent: Sent[C], result: Result) -> Verdict: ...
