"""The call queue (KEP-5229): wishes in, one HTTP request at a time out, exactly one outcome per wish.

Laws:
- Per written object at most one request is in flight and at most one wish per type waits; the newest
  wish is never lost: it is merged, waits for the one in flight, and is judged again when that ended.
- Each offered wish ends exactly once, with an Outcome; `Finished.ticket` says whose it was.
- A `Dispatch` is one request. Retries, reads on a conflict, verifications of unanswered writes and second
  steps are further dispatches of the same call: each takes a place in its lane and room like any other.
- Nothing grows but with the number of objects that have a call, save a bounded memory of sent events.
- Pure: `now` (seconds since the epoch) is an argument, ids are counted, nothing is read or waited for.
- A call type that raises ends its call as failed and harms nothing else.

Not known here: what any call writes (`CallType`), who sends the requests, at what rate.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import suppress

from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request
from pilotage.calls.admission import Ended, admit, failure, prune
from pilotage.calls.guard import CallTypeRaisedError, guarded
from pilotage.calls.holding import Held
from pilotage.calls.lanes import ALL_LANES, DEFAULT_LIMITS, Allowance, LaneBook, LaneLimits
from pilotage.calls.memory import SentMemory
from pilotage.calls.outcomes import FOLDED, Conclusion
from pilotage.calls.registry import CallTypes
from pilotage.calls.reports import Dispatch, Finished, PendingCall, Statistics, Synced, Tally
from pilotage.calls.requesting import next_request
from pilotage.calls.slots import Move, Position, Slot, Wish
from pilotage.calls.types import Lane, Phase, Result, Sent
from pilotage.calls.verdicts import Done
from pilotage.framework.calls import Call, CallResult, ObjectKey, Outcome


class UnknownDispatchError(LookupError):
    """`finish` was called for a dispatch that is not in flight (a bug in the dispatcher)."""


class CallQueue:
    def __init__(
        self,
        types: CallTypes,
        limits: Mapping[Lane, LaneLimits] = DEFAULT_LIMITS,
        *,
        memory: int = 4096,
    ) -> None:
        types.seal()
        self._types = {one.name: guarded(one) for one in types}
        self._book = LaneBook({**DEFAULT_LIMITS, **limits})
        # A slot is here exactly while its object has a waiting or running wish.
        self._slots: dict[Hashable, Slot] = {}
        # UID -> slot key, for slots whose key is an ObjectKey with a UID.
        self._by_uid: dict[str, Hashable] = {}
        # Dispatch id -> slot and lane, exactly for the requests that are out.
        self._flights: dict[int, tuple[Slot, Lane]] = {}
        self._held = Held()
        self._memory = SentMemory(memory)
        self._tally = Tally()
        self.keys_of = self._tally.keys_of
        # What ended while requests were taken; handed out by the next `collect`.
        self._late: list[Finished] = []
        self._sequence = 0
        self._last_id = 0
        self._closed = ""

    # Wishes

    def offer(
        self, call: Call, now: float, ticket: int | None = None, base: KubeObject | None = None
    ) -> list[Finished]:
        """Adds a wish; returns what ended by it, itself included. `base`: newest known object, if known."""
        kind = self._types.get(call.call_type) if isinstance(call, Call) else None
        if kind is None or self._closed:
            return [self._refuse(call, ticket, now)]
        wish = Wish(call, kind, ticket, call.key, now)
        self._tally.begin(kind.name, call.key)
        try:
            return self._place(wish, now, base)
        except CallTypeRaisedError as error:
            return self._report([(wish, failure(error))], None, now)

    def sync(self, resource: str, newest: KubeObject, now: float) -> Synced:
        """An object as informers brought it: pending calls look at it; it comes back with them applied."""
        slot = self._slots.get(self._by_uid.get(newest.metadata.uid))
        if slot is None or slot.object.resource != resource:
            return Synced(newest, [])
        ended: list[Finished] = []
        if slot.learn(newest):
            ended = self._settle(slot, now, self._judge_held(slot))
        for wish in slot.wishes():
            # A type that cannot apply its change leaves the object as it came.
            with suppress(CallTypeRaisedError):
                newest = wish.kind.apply(wish.call, newest)
        return Synced(newest, ended)

    def cancel(self, uid: str, why: str, now: float) -> list[Finished]:
        """Drops what is pending for an object. A request in flight ends by its answer, without retries."""
        slot = self._slots.get(self._by_uid.get(uid))
        return [] if slot is None else self._cancel(slot, why, now)

    # Requests

    def take(self, now: float, allowance: Allowance) -> list[Dispatch]:
        """The requests to send now, as many as `allowance` lets go; it is spent by that."""
        self._late += self.expire(now)
        taken: list[Dispatch] = []
        while (key := self._book.choose(allowance)) is not None:
            slot = self._slots[key]
            if self._held.takes(slot, self._slots):
                continue
            dispatch = self._start(slot, now)
            if dispatch is not None:
                taken.append(dispatch)
                allowance.spend(dispatch.lane)
        return taken

    def finish(self, dispatch: int, result: Result, now: float) -> list[Finished]:
        """The answer to a dispatch, or that there was none. Raises UnknownDispatchError."""
        if dispatch not in self._flights:
            raise UnknownDispatchError(f"call dispatch {dispatch} is not in flight")
        slot, lane = self._flights.pop(dispatch)
        self._book.in_flight[lane] -= 1
        slot.move(Move.ANSWER)
        wish = slot.current
        sent = Sent(wish.call, slot.sent_base, wish.phase, wish.step, wish.unsure)
        returned: KubeObject | None = None
        try:
            verdict = wish.kind.on_result(sent, result)
            returned = verdict.object if isinstance(verdict, Done) else None
            ended = Conclusion(slot, wish, now, self._memory).apply(verdict)
            self._tally.answered(wish, sent.phase, verdict, ended)
        except CallTypeRaisedError as error:
            slot.running = None
            ended = [(wish, failure(error))]
        if slot.running is None and slot.waiting and slot.waiting[0] is not wish:
            slot.sequence = self._next_sequence()
        return self._settle(slot, now, ended, returned)

    def expire(self, now: float) -> list[Finished]:
        """Drops ready calls of lanes with an age limit that waited too long; wakes what is due."""
        self._book.mature(now)
        ended: list[Finished] = []
        for lane, limits in self._book.limits.items():
            while limits.max_age is not None and (key := self._book.first(lane)) is not None:
                slot = self._slots[key]
                wish = slot.current
                if now - max(wish.offered, wish.not_before) <= limits.max_age:
                    break
                ended += self._drop(slot, now, "waited too long")
        for key, wish in self._memory.ended(now):
            ended += self._enqueue(wish, key, now, None)
        return ended

    def collect(self) -> list[Finished]:
        """What ended during `take`; to be asked after each."""
        late, self._late = self._late, []
        return late

    def next_wakeup(self) -> float | None:
        """When a delayed call is due; `take` should be called then. Ready calls only wait for room."""
        return min(filter(None, (self._book.next_due(), self._memory.next_end())), default=None)

    def has_ready(self, lanes: Collection[Lane] = ALL_LANES) -> bool:
        """Whether a request of `lanes` could go out at once if there were room for it."""
        return self._book.has_ready(lanes)

    # The end

    def drain(self, why: str, now: float) -> list[Finished]:
        """Takes no more wishes and cancels all that wait, binds excepted."""
        self._closed = self._closed or why
        self._memory.clear()
        ended: list[Finished] = []
        for slot in tuple(self._slots.values()):
            if slot.current.lane is not Lane.BIND:
                ended += self._cancel(slot, why, now, spared=Lane.BIND)
        return ended

    def shutdown(self, why: str, now: float) -> list[Finished]:
        """Ends everything as cancelled, also what is in flight: its effect is then unknown."""
        self._closed = self._closed or why
        ended: list[Finished] = []
        for slot in tuple(self._slots.values()):
            outcome = Outcome(CallResult.CANCELLED, why)
            ended += self._report([(wish, outcome) for wish in slot.wishes()], slot, now)
            slot.running, slot.waiting = None, []
            self._forget(slot)
        for _, lane in self._flights.values():
            self._book.in_flight[lane] -= 1
        self._flights.clear()
        return ended

    # Looking in

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not self._slots

    def pending(self, now: float) -> Iterator[PendingCall]:
        """All calls on their way, for `/debug/calls`."""
        for slot in self._slots.values():
            for wish in slot.wishes():
                is_out = slot.position is Position.IN_FLIGHT and wish is slot.running
                yield PendingCall(
                    wish.kind.name, wish.key, wish.lane, is_out, now - wish.offered, wish.tries, wish.phase
                )

    def statistics(self, now: float = 0.0) -> Statistics:
        return self._tally.statistics(self.pending(now), len(self._memory))

    def check_invariants(self) -> None:
        self._book.check()
        self._tally.check(self.pending(0.0), {name for name, kind in self._types.items() if kind.linger})
        queued = {slot.key for slot in self._slots.values() if slot.position is Position.QUEUED}
        placed, held = set(self._book.keys()), self._held.keys()
        assert placed <= queued <= placed | held, "lanes and slots disagree"
        out = {id(slot) for slot, _ in self._flights.values()}
        assert len(out) == len(self._flights), "two requests in flight for one object"
        for key, slot in self._slots.items():
            slot.check()
            assert slot.key == key
            assert (slot.position is Position.IN_FLIGHT) == (id(slot) in out), f"{key}: {slot.position}"
        for uid, key in self._by_uid.items():
            assert self._slots[key].object.uid == uid
        for lane, count in self._book.in_flight.items():
            assert count == sum(1 for _, one in self._flights.values() if one is lane)
            assert count <= self._book.limits[lane].in_flight

    # Inside

    def _place(self, wish: Wish, now: float, base: KubeObject | None) -> list[Finished]:
        kind = wish.kind
        wish.take(kind.prepare(wish.call, now))
        key = kind.slot(wish.call)
        if key not in self._slots and kind.linger and not self._memory.recall(wish, key, now):
            return self._report([(wish, FOLDED)], None, now)
        return self._enqueue(wish, key, now, base)

    def _enqueue(self, wish: Wish, key: Hashable, now: float, base: KubeObject | None) -> list[Finished]:
        ended = self._make_room(wish, key, now)
        slot = self._slots.get(key) or self._open(key, wish.key)
        slot.learn(base)
        try:
            return ended + self._settle(slot, now, admit(slot, wish))
        except CallTypeRaisedError as error:
            return ended + self._settle(slot, now, [(wish, failure(error))])

    def _make_room(self, wish: Wish, key: Hashable, now: float) -> list[Finished]:
        """A lane at its cap drops its oldest waiting call for a new one."""
        cap = self._book.limits[wish.lane].cap
        if cap is None or key in self._slots or self._book.count(wish.lane) < cap:
            return []
        oldest = self._book.first(wish.lane)
        return [] if oldest is None else self._drop(self._slots[oldest], now, "too many calls wait")

    def _open(self, key: Hashable, written: ObjectKey) -> Slot:
        slot = self._slots[key] = Slot(key, written, self._next_sequence())
        if isinstance(key, ObjectKey) and key.uid:
            self._by_uid[key.uid] = key
        return slot

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _forget(self, slot: Slot) -> None:
        self._book.discard(slot.key)
        slot.move(Move.FORGET)
        del self._slots[slot.key]
        if self._by_uid.get(slot.object.uid) == slot.key:
            del self._by_uid[slot.object.uid]

    def _judge_held(self, slot: Slot) -> Ended:
        """A newer object may settle a wish that waits between two of its requests."""
        held = slot.running
        if held is None or slot.position is not Position.QUEUED or slot.base is None:
            return []
        try:
            rest = held.kind.rebase(held.call, slot.base)
        except CallTypeRaisedError as error:
            rest = failure(error)
        if not isinstance(rest, Outcome):
            return []
        slot.running = None
        return [(held, rest)]

    def _settle(
        self, slot: Slot, now: float, ended: Ended, returned: KubeObject | None = None
    ) -> list[Finished]:
        """Reports what ended, ends what became needless, and gives the slot its place."""
        finished = self._report([*ended, *prune(slot)], slot, now, returned)
        self._release(slot, now)
        if slot.position is Position.IN_FLIGHT:
            return finished
        if slot.is_empty:
            self._forget(slot)
            return finished
        slot.move(Move.ENQUEUE)
        wish = slot.current
        self._book.place(slot.key, wish.lane, slot.sequence, wish.not_before, now)
        return finished

    def _release(self, slot: Slot, now: float) -> None:
        """What waited for this slot's wish stands in its lane again."""
        for key in self._held.released_by(slot):
            other = self._slots.get(key)
            if other is not None and other.position is Position.QUEUED:
                wish = other.current
                self._book.place(key, wish.lane, other.sequence, wish.not_before, now)

    def _start(self, slot: Slot, now: float) -> Dispatch | None:
        """The next request of a slot that was just taken out of its lane."""
        wish = slot.current
        if slot.running is None:
            slot.waiting.pop(0)
            slot.running = wish
        try:
            request = next_request(slot, wish, now)
        except (CallTypeRaisedError, IndexError) as error:
            slot.running = None
            self._late += self._settle(slot, now, [(wish, Outcome(CallResult.FAILED, str(error)))])
            return None
        slot.move(Move.TAKE)
        slot.sent_base = slot.base
        self._release(slot, now)
        return self._out(slot, wish, request, now)

    def _out(self, slot: Slot, wish: Wish, request: Request, now: float) -> Dispatch:
        self._last_id += 1
        self._flights[self._last_id] = (slot, wish.lane)
        self._book.in_flight[wish.lane] += 1
        self._tally.requests[wish.kind.name] += 1
        wish.tries += wish.phase is not Phase.VERIFY
        wish.first_sent = now if wish.first_sent is None else wish.first_sent
        return Dispatch(
            id=self._last_id,
            request=request,
            key=wish.key,
            call_type=wish.kind.name,
            lane=wish.lane,
            phase=wish.phase,
            timeout=wish.kind.retry.timeout,
            tries=wish.tries,
            waited=now - wish.offered,
        )

    def _cancel(self, slot: Slot, why: str, now: float, spared: Lane | None = None) -> list[Finished]:
        outcome = Outcome(CallResult.CANCELLED, why)
        ended: Ended = [(wish, outcome) for wish in slot.waiting if wish.lane is not spared]
        slot.waiting = [wish for wish in slot.waiting if wish.lane is spared]
        if slot.running is not None and slot.position is Position.IN_FLIGHT:
            slot.running.cancelled = why
        elif slot.running is not None:
            ended.insert(0, (slot.running, outcome))
            slot.running = None
        return self._settle(slot, now, ended)

    def _drop(self, slot: Slot, now: float, why: str) -> list[Finished]:
        wish = slot.current
        if slot.running is None:
            slot.waiting.pop(0)
        slot.running = None
        return self._settle(slot, now, [(wish, Outcome(CallResult.DROPPED, why))])

    def _refuse(self, call: Call, ticket: int | None, now: float) -> Finished:
        is_call = isinstance(call, Call)
        name = call.call_type if is_call else type(call).__name__
        key = call.key if is_call else ObjectKey("", "", "", "")
        outcome = Outcome(CallResult.FAILED, f"unknown call type {name!r}")
        if self._closed:
            outcome = Outcome(CallResult.CANCELLED, self._closed)
        self._tally.ended[name, outcome.result] += 1
        return Finished(ticket, outcome, name, key, offered=now, ended=now)

    def _report(
        self, ended: Ended, slot: Slot | None, now: float, returned: KubeObject | None = None
    ) -> list[Finished]:
        for wish, outcome in ended:
            self._tally.end(wish.kind.name, wish.key, outcome.result)
        base = slot.base if slot is not None else None
        return [
            Finished(
                ticket=wish.ticket,
                outcome=outcome,
                call_type=wish.kind.name,
                key=wish.key,
                offered=wish.offered,
                ended=now,
                sent=wish.first_sent,
                tries=wish.tries,
                object=returned if outcome.result is CallResult.DONE else None,
                restore=None if outcome.is_ok or base is None else wish.taken_back(base),
                lane=wish.lane,
            )
            for wish, outcome in ended
        ]
