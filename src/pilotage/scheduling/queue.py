"""The scheduling queue: which pod is next, who waits for what (spec/queue.md).

Laws
- A pod is in exactly one place; every move goes through the table in transitions.py.
- PreEnqueue runs on each entry into the active or backoff queue (not when backoff completes); the plugin
  that gated last time is asked first.
- A pod waits in the pool only after the events since its pop were judged by its rejectors' hints.
- Pods that failed by error, or in a binding that nobody kept events for, are never taken before their
  backoff is over: against a sick server early retries would be a hot loop.
- A pod has one early try: if that fails too, its backoff is waited out. Pods whose rejections wake one
  another (two that Permit refuses) would otherwise go round without end.
- `now` only moves forward; nothing here knows a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from pilotage.framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    Resource,
)
from pilotage.scheduling.cluster_events import pod_added, pod_updated
from pilotage.scheduling.queue_gates import Gates
from pilotage.scheduling.queue_heap import RecordHeap
from pilotage.scheduling.queue_hints import AskHint, HintIndex, Occurrence
from pilotage.scheduling.queue_inflight import InFlight
from pilotage.scheduling.queue_nodes import nodes_of
from pilotage.scheduling.queue_order import SortKey, sort_key
from pilotage.scheduling.queue_pool import UnschedulablePool
from pilotage.scheduling.queue_record import (
    BackoffSettings,
    Moved,
    QueueProfile,
    QueueStatistics,
    Rank,
    Record,
    backoff_seconds,
)
from pilotage.scheduling.transitions import IllegalMoveError, Move, Position, next_position
from pilotage.state.podinfo import PodInfo

FLUSH_SECONDS = 30.0

_QUEUE_LABELS = {
    Position.ACTIVE: "active",
    Position.BACKOFF: "backoff",
    Position.ERROR_BACKOFF: "backoff",
    Position.UNSCHEDULABLE: "unschedulable",
    Position.GATED: "gated",
}


class SchedulingQueue:
    """One queue for all profiles; they share the sort plugin. Times are seconds since the epoch."""

    def __init__(self, profiles: Mapping[str, QueueProfile], settings: BackoffSettings) -> None:
        self._profiles = dict(profiles)
        self.gates = Gates(self._profiles)
        self._settings = settings
        self._hints = HintIndex(
            {
                (name, p): regs
                for name, profile in profiles.items()
                for p, regs in profile.registrations.items()
            }
        )
        # UID -> record of every pod that is not ABSENT.
        self._records: dict[str, Record] = {}
        self._active = RecordHeap(self._sort_key)
        self._backoff = RecordHeap(lambda record: (self._expiry(record), self._sort_key(record)))
        self._error_backoff = RecordHeap(lambda record: (self._expiry(record), self._sort_key(record)))
        self._heaps = {
            Position.ACTIVE: self._active,
            Position.BACKOFF: self._backoff,
            Position.ERROR_BACKOFF: self._error_backoff,
        }
        self._pool = UnschedulablePool()
        self._in_flight = InFlight()
        self._next_flush: float | None = None
        self._arrivals = 0
        self._moves: list[Moved] = []

    # -- pods ------------------------------------------------------------------------------------

    def add(self, pod: PodInfo, now: float) -> None:
        """A new pod of a known profile, unbound or to be resized; a known one is updated."""
        if pod.uid in self._records:
            self.update(pod, now)
            return
        self._arrivals += 1
        record = Record(pod, timestamp=now, sequence=self._arrivals)
        kind = Resource.ASSIGNED_POD if pod.is_bound else Resource.UNSCHEDULABLE_POD
        self._enter(record, pod_added(kind).label, now, delay=False)

    def update(self, pod: PodInfo, now: float) -> None:
        """A newer object of a pod; in the pool its own change may free it."""
        record = self._records.get(pod.uid)
        if record is None:
            self.add(pod, now)
            return
        old, record.pod = record.pod, pod
        if record.position is Position.IN_FLIGHT:
            for event in pod_updated(old, pod):
                self._log(Occurrence(event, old, pod, own=pod.uid))
        elif record.position in (Position.UNSCHEDULABLE, Position.GATED):
            self._judge_own_update(record, old, now)
        else:
            self._heaps[record.position].push(record)

    def _judge_own_update(self, record: Record, old: PodInfo, now: float) -> None:
        for event in pod_updated(old, record.pod):
            occurrence = Occurrence(event, old, record.pod, own=record.pod.uid)
            rank = self._hints.rank(record, occurrence)
            if rank is not Rank.SKIP:
                self._settle(record, rank, event.label, now)
                return

    def delete(self, uid: str) -> Record | None:
        """Removes the pod wherever it is; None when it was not here."""
        record = self._records.get(uid)
        if record is not None:
            self._leave(record, Move.REMOVE)
        return record

    def pop(self, now: float) -> Record | None:
        """The next pod, now in flight until `requeue` or `done`; from backoff when nothing else waits."""
        record, label = self._active.peek(), ""
        if record is None:
            record, label = self._early(), str(POP_FROM_BACKOFF)
        if record is None:
            return None
        if label:
            self._moves.append(Moved(record.pod.uid, record.pod.key, "active", label))
        self._take_out(record, Move.POP)
        record.attempts += 1
        record.popped_at = now
        record.had_early_try = bool(label)
        record.unschedulable_plugins = set()
        record.pending_plugins = set()
        self._in_flight.start(record)
        return record

    def _early(self) -> Record | None:
        return self._backoff.peek() if self._settings.pop_early else None

    def done(self, uid: str) -> None:
        """The scheduling part of an attempt ended and there is nothing to requeue."""
        record = self._records.get(uid)
        if record is not None and record.position is Position.IN_FLIGHT:
            self._leave(record, Move.DONE)

    def requeue(
        self, record: Record, now: float, *, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()
    ) -> None:
        """Puts a pod back whose attempt failed. No rejector at all means that it failed by error."""
        if record.position not in (Position.IN_FLIGHT, Position.ABSENT):
            raise IllegalMoveError(f"requeue of a pod that is {record.position.value}")
        record.unschedulable_plugins = set(unschedulable)
        record.pending_plugins = set(pending)
        record.timestamp = now
        record.flushed = False
        record.waits_out = not record.rejectors or self._lost_track(record)
        if record.rejectors:
            record.unschedulable_count += 1
            record.consecutive_errors = 0
        else:
            record.consecutive_errors += 1
        self._settle(record, self._rank_since_pop(record), str(SCHEDULE_ATTEMPT_FAILURE), now)

    def _lost_track(self, record: Record) -> bool:
        """Nobody knows which events the attempt missed: it may not wait for them, nor be retried at once."""
        return record.position is not Position.IN_FLIGHT or record.missed_events

    def _rank_since_pop(self, record: Record) -> Rank:
        if record.waits_out:
            return Rank.AFTER_BACKOFF
        best = Rank.SKIP
        for occurrence in self._in_flight.since_pop(record):
            best = max(best, self._hints.rank(record, occurrence))
            if best is Rank.IMMEDIATELY:
                break
        return best

    def expect_rejectors(self, profile: str, names: Iterable[str]) -> None:
        """Whoever else may reject pods: any event wakes those, also one from before the first rejection."""
        for name in names:
            self._hints.ensure((profile, name))

    # -- events ----------------------------------------------------------------------------------

    def activate(self, uids: Sequence[str], now: float) -> None:
        """Moves pods to the active queue, whatever they wait for; one in flight is retried afterwards."""
        for uid in uids:
            record = self._records.get(uid)
            if record is None or record.position is Position.ACTIVE:
                continue
            if record.position is Position.IN_FLIGHT:
                self._log(Occurrence(FORCE_ACTIVATE, new=record.pod, own=uid))
            else:
                self._enter(record, str(FORCE_ACTIVATE), now, delay=False)

    def retry(self, uid: str, now: float) -> None:
        """As `activate`, but what is left of the backoff is kept."""
        record = self._records.get(uid)
        if record is not None and record.position in (Position.UNSCHEDULABLE, Position.GATED):
            self._settle(record, Rank.AFTER_BACKOFF, str(FORCE_ACTIVATE), now)

    def notify(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now: float,
        only: Callable[[PodInfo], bool] | None = None,
        *,
        is_ours: bool = False,
    ) -> None:
        """A cluster event: wakes pods whose rejectors registered it and whose hints say so.

        `only` leaves out parked pods for which it is False; `is_ours`: see Occurrence.
        """
        occurrence = Occurrence(event, old, new, is_ours=is_ours)
        matching = self._hints.matching(occurrence)
        if not matching:
            return
        for record in self._pool.waiting_on(matching, nodes_of(old, new)):
            if only is not None and not only(record.pod):
                continue
            rank = self._hints.rank(record, occurrence)
            if rank is not Rank.SKIP:
                self._settle(record, rank, str(event), now)
        self._in_flight.log(occurrence)

    def _log(self, occurrence: Occurrence) -> None:
        if occurrence.is_wildcard or self._hints.matching(occurrence):
            self._in_flight.log(occurrence)

    # -- time ------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """What time alone moves: pods whose backoff is over, and pods that waited too long for an event."""
        for heap in (self._backoff, self._error_backoff):
            while (record := heap.peek()) is not None and not self._is_backing_off(record, now):
                self._move(record, Move.ADMIT, str(BACKOFF_COMPLETE), now)
        if self._next_flush is None:
            self._next_flush = now + FLUSH_SECONDS
        if now >= self._next_flush:
            self._next_flush = now + FLUSH_SECONDS
            self._flush_pool(now)

    def _flush_pool(self, now: float) -> None:
        limit = self._settings.max_in_unschedulable
        for record in [r for r in self._pool if now - r.parked_at > limit]:
            self._settle(record, Rank.AFTER_BACKOFF, str(UNSCHEDULABLE_TIMEOUT), now)
            record.flushed = record.position is not Position.GATED

    def next_wakeup(self) -> float | None:
        """When `flush` has something to do next; None when it never will."""
        heads = (self._backoff.peek(), self._error_backoff.peek())
        times = [self._expiry(record) + 1.0 for record in heads if record is not None]
        if len(self._pool) and self._next_flush is not None:
            times.append(self._next_flush)
        return min(times, default=None)

    def _expiry(self, record: Record) -> float:
        return float(math.floor(record.timestamp + backoff_seconds(record, self._settings)))

    def _is_backing_off(self, record: Record, now: float) -> bool:
        if backoff_seconds(record, self._settings) == 0.0:
            return False
        return self._expiry(record) >= math.floor(now)

    # -- moves -----------------------------------------------------------------------------------

    def _settle(self, record: Record, rank: Rank, label: str, now: float) -> None:
        if rank is Rank.SKIP:
            self._move(record, Move.PARK, label, now)
        else:
            delay = rank is Rank.AFTER_BACKOFF and self._is_backing_off(record, now)
            self._enter(record, label, now, delay=delay)

    def _enter(self, record: Record, label: str, now: float, *, delay: bool) -> None:
        if self.gates.refuse(record):
            self._move(record, Move.GATE, label, now)
        elif not delay:
            self._move(record, Move.ADMIT, label, now)
        else:
            move = Move.WAIT_OUT if record.must_wait_out else Move.DELAY
            self._move(record, move, label, now)

    def _move(self, record: Record, move: Move, label: str, now: float) -> None:
        before = record.position
        self._take_out(record, move)
        self._records[record.pod.uid] = record
        if record.position in (Position.UNSCHEDULABLE, Position.GATED):
            record.parked_at = now
            for plugin in record.waits_on:
                self._hints.ensure((record.profile, plugin))
            self._pool.add(record)
        else:
            if record.position is Position.ACTIVE and record.initial_attempt is None:
                record.initial_attempt = now
            self._heaps[record.position].push(record)
        if before is not record.position:
            self._moves.append(Moved(record.pod.uid, record.pod.key, _QUEUE_LABELS[record.position], label))

    def _leave(self, record: Record, move: Move) -> None:
        self._take_out(record, move)
        del self._records[record.pod.uid]

    def _take_out(self, record: Record, move: Move) -> None:
        """Out of its present container and on to its next position; raises before it changes anything."""
        after = next_position(record.position, move)
        if record.position is Position.IN_FLIGHT:
            self._in_flight.finish(record.pod.uid)
        elif record.position in (Position.UNSCHEDULABLE, Position.GATED):
            self._pool.remove(record.pod.uid)
        elif record.position is not Position.ABSENT:
            self._heaps[record.position].remove(record.pod.uid)
        record.position = after

    def _sort_key(self, record: Record) -> SortKey:
        return sort_key(record, self._profiles[record.profile].sort_key)

    # -- looking in ------------------------------------------------------------------------------

    def ask_hints_through(self, ask: AskHint) -> None:
        """For whoever measures hints: `ask` must answer as `ask_hint` does."""
        self._hints.ask = ask

    @property
    def has_work(self) -> bool:
        """True when `pop` would return a pod."""
        return bool(self._active) or self._early() is not None

    def get(self, uid: str) -> Record | None:
        return self._records.get(uid)

    def uids(self) -> frozenset[str]:
        return frozenset(self._records)

    def in_flight(self) -> frozenset[str]:
        return frozenset(record.pod.uid for record in self._in_flight)

    def position(self, uid: str) -> Position:
        record = self._records.get(uid)
        return record.position if record is not None else Position.ABSENT

    def drain_moves(self) -> list[Moved]:
        """Entries into queues since the last call, in order."""
        moves, self._moves = self._moves, []
        return moves

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            active=len(self._active),
            backoff=len(self._backoff) + len(self._error_backoff),
            unschedulable=len(self._pool.unschedulable),
            gated=len(self._pool.gated),
            in_flight=len(self._in_flight),
            in_flight_events=self._in_flight.event_counts(),
            rejections=self._pool.rejections(),
        )

    def check_invariants(self) -> None:
        """Raises AssertionError where a pod is not in exactly the place that its record says."""
        homes: dict[Position, Iterable[Record]] = {
            Position.ACTIVE: self._active,
            Position.BACKOFF: self._backoff,
            Position.ERROR_BACKOFF: self._error_backoff,
            Position.IN_FLIGHT: self._in_flight,
            Position.UNSCHEDULABLE: self._pool.unschedulable.values(),
            Position.GATED: self._pool.gated.values(),
        }
        found = {r.pod.uid: position for position, home in homes.items() for r in home}
        assert found == {uid: record.position for uid, record in self._records.items()}
        assert sum(len(list(home)) for home in homes.values()) == len(self._records)
        assert all(record.must_wait_out for record in self._error_backoff)
        assert not any(record.must_wait_out for record in self._backoff)
        self._pool.check_invariants()
        self._in_flight.check_invariants()
