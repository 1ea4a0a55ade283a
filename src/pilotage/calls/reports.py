"""Values that the call queue answers with: requests to send, ends to report, figures to look at."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request
from pilotage.calls.slots import Wish
from pilotage.calls.types import Lane, Phase
from pilotage.calls.verdicts import Rebase, Retry, Verdict, Verify
from pilotage.framework.calls import CallResult, ObjectKey, Outcome


class Again(Enum):
    """Why a call is sent once more."""

    REFUSED = "refused"  # an answered error that may pass
    UNANSWERED = "unanswered"
    CONFLICT = "conflict"  # the object had changed

    @staticmethod
    def of(phase: Phase, verdict: Verdict) -> Again | None:
        """None: the verdict asks for no repetition of the request."""
        match verdict:
            case Verify() | Retry(status=0):
                return Again.UNANSWERED
            case Retry():
                return Again.REFUSED
            case Rebase() if phase is Phase.SEND:
                return Again.CONFLICT
        return None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One HTTP request to send now. Its answer must come back through `finish(id, ...)` in any case."""

    id: int
    request: Request
    key: ObjectKey
    call_type: str
    lane: Lane
    phase: Phase
    timeout: float  # seconds
    tries: int  # requests of this call so far, this one included
    waited: float  # seconds since the wish


@dataclass(frozen=True, slots=True)
class Finished:
    """How one wish ended. Times in seconds since the epoch."""

    ticket: int | None
    outcome: Outcome
    call_type: str
    key: ObjectKey
    offered: float
    ended: float
    sent: float | None = None  # when its first request left, None if none did
    tries: int = 0
    object: KubeObject | None = None  # as the server returned it, where it did
    restore: KubeObject | None = None  # the newest object without the change that failed
    lane: Lane | None = None  # the last that it was in; None where it was refused at once


class Synced(NamedTuple):
    """An object with pending changes applied, and the wishes that it made needless."""

    object: KubeObject
    finished: list[Finished]


class PendingCall(NamedTuple):
    call_type: str
    key: ObjectKey
    lane: Lane
    in_flight: bool
    age: float  # seconds
    tries: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts by call type; `ended` since the start by call type and result; lanes count waiting calls."""

    pending: Mapping[str, int]
    in_flight: Mapping[str, int]
    lanes: Mapping[Lane, int]
    oldest: Mapping[Lane, float]  # seconds that the oldest waiting call of a lane waits
    offered: Mapping[str, int]
    requests: Mapping[str, int]
    retried: Mapping[tuple[str, Lane, Again], int]
    ended: Mapping[tuple[str, CallResult], int]
    remembered: int  # sent events kept for their series


@dataclass(slots=True)
class Tally:
    """Counts since the start, kept where wishes begin and end."""

    offered: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    ended: Counter[tuple[str, CallResult]] = field(default_factory=Counter)
    retried: Counter[tuple[str, Lane, Again]] = field(default_factory=Counter)
    # By call type: how many calls an object has on its way; objects without any are not here.
    _open: defaultdict[str, Counter[ObjectKey]] = field(default_factory=lambda: defaultdict(Counter))

    def begin(self, call_type: str, key: ObjectKey) -> None:
        self.offered[call_type] += 1
        self._open[call_type][key] += 1

    def end(self, call_type: str, key: ObjectKey, result: CallResult) -> None:
        self.ended[call_type, result] += 1
        left = self._open[call_type]
        if left[key] > 1:
            left[key] -= 1
        else:
            del left[key]

    def answered(
        self, wish: Wish, phase: Phase, verdict: Verdict, ended: Iterable[tuple[Wish, Outcome]]
    ) -> None:
        """A verdict on a request of `wish`, and what ended by it."""
        why = Again.of(phase, verdict)
        if why is not None and all(one is not wish for one, _ in ended):
            self.retried[wish.kind.name, wish.lane, why] += 1

    def keys_of(self, call_type: str) -> frozenset[ObjectKey]:
        """Objects that have a call of that type on its way. Costs what they are, not what else is pending."""
        return frozenset(self._open[call_type])

    def check(self, pending: Iterable[PendingCall], lingering: Collection[str]) -> None:
        """`lingering`: types whose ended calls may come back."""
        found = Counter((call.call_type, call.key) for call in pending if call.call_type not in lingering)
        kept = {(name, key): n for name, keys in self._open.items() for key, n in keys.items()}
        assert found == {one: number for one, number in kept.items() if one[0] not in lingering}

    def statistics(self, pending: Iterable[PendingCall], remembered: int) -> Statistics:
        waiting: Counter[str] = Counter()
        out: Counter[str] = Counter()
        lanes: Counter[Lane] = Counter()
        oldest: dict[Lane, float] = {}
        for call in pending:
            if call.in_flight:
                out[call.call_type] += 1
                continue
            waiting[call.call_type] += 1
            lanes[call.lane] += 1
            oldest[call.lane] = max(call.age, oldest.get(call.lane, 0.0))
        return Statistics(
            pending=waiting,
            in_flight=out,
            lanes=lanes,
            oldest=oldest,
            offered=Counter(self.offered),
            requests=Counter(self.requests),
            retried=Counter(self.retried),
            ended=Counter(self.ended),
            remembered=remembered,
        )
