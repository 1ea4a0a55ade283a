"""Events (events.k8s.io/v1), folded into series: equal ones cost one object and few writes.

Laws:
- Equal means: same regarding and related object, type, reason, action, note and reporter. What is equal and
  not sent yet is sent once, with its count; what was sent before becomes an update of that event's series.
- A series is updated on its first repeat and then at doubling intervals, up to half an hour; it ends six
  minutes after its last repeat, and then its count is complete on the server.
- An event that failed for good is dropped and counted; nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import collection_path
from pilotage.calls.types import Lane, Relevance, RetryPolicy, Sent
from pilotage.calls.verdicts import Done, Resend, Verdict
from pilotage.framework.calls import ObjectKey, Outcome, RecordEvent

EVENTS = "events.events.k8s.io"
MAX_NOTE_BYTES = 1024
SERIES_LIFE = 360.0  # seconds without a repeat after which the next one is a new event
FIRST_INTERVAL = 30.0
LAST_INTERVAL = 1800.0
_KINDS = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "leases.coordination.k8s.io": ("coordination.k8s.io/v1", "Lease"),
}


@dataclass(frozen=True, slots=True)
class EventSeries(RecordEvent):
    """A recorded event with its name and its repeats so far. Times in seconds since the epoch."""

    name: str = ""
    first: float = 0.0
    last: float = 0.0
    count: int = 1
    updates: int = -1  # writes that the server has seen, less one; -1: none
    next_write: float = 0.0


class Event(BaseCallType[EventSeries]):
    """`host` names this scheduler's machine in reportingInstance (`<reporter>-<host>`)."""

    name = "event"
    relevance: int = Relevance.STATUS
    retry = RetryPolicy(tries=12, first_delay=0.2, max_delay=10.0, max_age=120.0)
    linger = SERIES_LIFE

    def __init__(self, host: str) -> None:
        self._host = host
        # Largest nanosecond used in a name: names are unique within this process.
        self._nanos = 0

    def prepare(self, call: RecordEvent, now: float) -> EventSeries:
        name = self._fresh_name(call.key.name, now)
        return EventSeries(
            call.key,
            call.type,
            call.reason,
            call.action,
            cut(call.note),
            call.reporting_controller,
            call.related,
            name=name,
            first=now,
            last=now,
        )

    def slot(self, call: EventSeries) -> Hashable:
        who = (call.key, call.related, call.reporting_controller)
        return (EVENTS, *who, call.type, call.reason, call.action, call.note)

    def lane(self, call: EventSeries) -> Lane:
        return Lane.EVENT

    def merge(self, old: EventSeries, new: EventSeries) -> EventSeries:
        return replace(old, count=old.count + new.count, last=new.last)

    def after(self, call: EventSeries, sent: EventSeries) -> EventSeries | Outcome:
        return self.merge(sent, call)

    def earliest(self, call: EventSeries) -> float:
        return call.next_write

    def remember(self, call: EventSeries, now: float) -> EventSeries:
        updates = call.updates + 1
        interval = 0.0 if updates == 0 else min(LAST_INTERVAL, FIRST_INTERVAL * 2.0 ** (updates - 1))
        return replace(call, updates=updates, next_write=now + interval)

    def requests(self, call: EventSeries, base: KubeObject | None, now: float) -> Sequence[Request]:
        path = collection_path(EVENTS, _namespace(call))
        if call.updates < 0:
            return (Request("POST", path, body=msgspec.json.encode(self._body(call))),)
        body = msgspec.json.encode({"series": _series(call)})
        kind = "application/strategic-merge-patch+json"
        return (Request("PATCH", f"{path}/{call.name}", body=body, content_type=kind),)

    def on_conflict(self, sent: Sent[EventSeries], response: Response) -> Verdict:
        # Names are unique within this process: what exists is our own, from a send that went unanswered.
        if sent.call.updates < 0 and status_of(response).reason == "AlreadyExists":
            return Done()
        return super().on_conflict(sent, response)

    def on_error(self, sent: Sent[EventSeries], response: Response) -> Verdict:
        if response.status == 404 and sent.call.updates >= 0:
            fresh = self._fresh_name(sent.call.key.name, sent.call.last)
            return Resend(replace(sent.call, name=fresh, updates=-1), "the event is gone")
        return super().on_error(sent, response)

    def _fresh_name(self, about: str, now: float) -> str:
        self._nanos = max(self._nanos + 1, int(now * 1e9))
        suffix = f".{self._nanos:x}"
        return about[: 253 - len(suffix)].rstrip(".-") + suffix

    def _body(self, call: EventSeries) -> dict[str, Any]:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": call.name, "namespace": _namespace(call)},
            "eventTime": micro_time(call.first),
            "reportingController": call.reporting_controller,
            "reportingInstance": f"{call.reporting_controller}-{self._host}"[:128],
            "type": call.type,
            "reason": call.reason,
            "action": call.action,
            "note": call.note,
            "regarding": reference(call.key),
        }
        if call.related is not None:
            body["related"] = reference(call.related)
        if call.count > 1:
            body["series"] = _series(call)
        return body


def cut(note: str) -> str:
    """At most 1024 bytes, ending in ` ...` when cut; never within a character."""
    raw = note.encode()
    if len(raw) <= MAX_NOTE_BYTES:
        return note
    return raw[: MAX_NOTE_BYTES - 4].decode("utf-8", "ignore") + " ..."


def micro_time(now: float) -> str:
    """RFC 3339 with microseconds, as metav1.MicroTime is written."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def reference(key: ObjectKey) -> dict[str, str]:
    version, kind = _KINDS.get(key.resource, ("", ""))
    parts = {
        "apiVersion": version,
        "kind": kind,
        "namespace": key.namespace,
        "name": key.name,
        "uid": key.uid,
    }
    return {name: value for name, value in parts.items() if value}


def _namespace(call: EventSeries) -> str:
    return call.key.namespace or "default"


def _series(call: EventSeries) -> dict[str, Any]:
    return {"count": call.count, "lastObservedTime": micro_time(call.last)}
