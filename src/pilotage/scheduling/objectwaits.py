"""Pods in PreBind that wait for objects to change: what they had written, what they look at, until when.

Laws: nothing is polled. A wait is looked at once when it starts, when one of its calls ends and when an
object changes that it watches; it ends by what its plugin says, by a call that fails or by its deadline,
and its end is told exactly once unless it was dropped. What is dropped takes its unsent calls with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pilotage.framework.calls import Call, CallResult, Outcome
from pilotage.framework.guard import PluginFailedError, guarded
from pilotage.framework.plugin import AwaitObjects
from pilotage.framework.status import Status, error
from pilotage.scheduling.deadlines import Deadlines
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.messages import CallFinished

Watched: TypeAlias = frozenset[tuple[str, str]]
_POINT = "PreBind"


@dataclass(slots=True, eq=False)
class _Wait:
    uid: str
    plugin: str
    wanted: AwaitObjects
    tickets: dict[int, Call] = field(default_factory=dict)  # of calls that have not ended
    is_written: bool = True  # no call was taken over by somebody else's
    watched: Watched = frozenset()


class ObjectWaits:
    """`on_end(uid, answer)`: what the plugin answered, or the PluginFailedError that its code ended in."""

    def __init__(self, state: EngineState, on_end: Callable[[str, Any], None]) -> None:
        self._state = state
        self._on_end = on_end
        self._by_uid: dict[str, _Wait] = {}
        # Ticket -> the wait that has it among its `tickets`.
        self._by_ticket: dict[int, _Wait] = {}
        # (resource, key) -> UIDs of the waits that watch it; no empty entries.
        self._watchers: dict[tuple[str, str], dict[str, None]] = {}
        self._deadlines: Deadlines[str] = Deadlines()

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_uid

    def start(self, uid: str, plugin: str, wanted: AwaitObjects) -> None:
        """May end within the call."""
        wait = self._by_uid[uid] = _Wait(uid, plugin, wanted)
        self._deadlines.set(uid, self._state.now + wanted.timeout)
        for call in wanted.calls:
            ticket = self._state.outbox.submit(call, awaited=True)
            wait.tickets[ticket] = call
            self._by_ticket[ticket] = wait
        self._look(wait)

    def drop(self, uid: str, why: str) -> None:
        """Nobody waits any more. Nothing when the pod does not wait here."""
        wait = self._by_uid.pop(uid, None)
        if wait is None:
            return
        self._deadlines.remove(uid)
        self._watch(wait, frozenset())
        for ticket, call in wait.tickets.items():
            del self._by_ticket[ticket]
            self._state.outbox.cancel(call.key.uid, why)

    def call_finished(self, event: CallFinished) -> bool:
        """Whether the call was one of these."""
        wait = self._by_ticket.pop(event.ticket, None)
        if wait is None:
            return False
        call = wait.tickets.pop(event.ticket)
        if not event.outcome.is_ok:
            self._end(wait, error(_why(call, event.outcome)))
            return True
        if event.outcome.result is CallResult.OVERWRITTEN:
            wait.is_written = False
        self._look(wait)
        return True

    def object_changed(self, resource: str, key: str) -> None:
        for uid in tuple(self._watchers.get((resource, key), ())):
            wait = self._by_uid.get(uid)
            if wait is not None:
                self._look(wait)

    def expire(self) -> None:
        for uid in self._deadlines.pop_due(self._state.now):
            wait = self._by_uid[uid]
            self._answer(wait, wait.wanted.timed_out)

    def next_deadline(self) -> float | None:
        return self._deadlines.next()

    def _look(self, wait: _Wait) -> None:
        is_written = wait.is_written and not wait.tickets
        if not self._answer(wait, lambda: wait.wanted.check(is_written)):
            self._watch(wait, self._watched_by(wait))

    def _answer(self, wait: _Wait, ask: Callable[[], Status | None]) -> bool:
        """Ends the wait with the answer, if there is one."""
        answer: Any
        try:
            answer = guarded(wait.plugin, _POINT, ask)
        except PluginFailedError as fault:
            answer = fault
        if answer is None:
            return False
        self._end(wait, answer)
        return True

    def _watched_by(self, wait: _Wait) -> Watched:
        try:
            return frozenset(guarded(wait.plugin, _POINT, wait.wanted.watched))
        except PluginFailedError as fault:
            self._state.outbox.log("error", fault.status.message)
            return wait.watched

    def _watch(self, wait: _Wait, wanted: Watched) -> None:
        for name in wait.watched - wanted:
            watchers = self._watchers[name]
            del watchers[wait.uid]
            if not watchers:
                del self._watchers[name]
        for name in sorted(wanted - wait.watched):
            self._watchers.setdefault(name, {})[wait.uid] = None
        wait.watched = wanted

    def _end(self, wait: _Wait, answer: Any) -> None:
        self.drop(wait.uid, "its pod does not wait for it any more")
        self._on_end(wait.uid, answer)

    def check_invariants(self) -> None:
        for uid, wait in self._by_uid.items():
            assert wait.uid == uid
            assert uid in self._deadlines
            assert all(self._by_ticket[ticket] is wait for ticket in wait.tickets)
            assert all(uid in self._watchers[name] for name in wait.watched)
        assert len(self._by_ticket) == sum(len(wait.tickets) for wait in self._by_uid.values())
        assert sum(map(len, self._watchers.values())) == sum(len(w.watched) for w in self._by_uid.values())
        assert len(self._deadlines) == len(self._by_uid)


def _why(call: Call, outcome: Outcome) -> str:
    kind = {"persistentvolumes": "persistentvolume", "persistentvolumeclaims": "persistentvolumeclaim"}
    name = kind.get(call.key.resource, call.key.resource)
    return f'writing {name} "{call.key.name}" failed: {outcome.error or outcome.result.value}'
