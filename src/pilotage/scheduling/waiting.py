"""What the queue knows of one pod, as a value for people: where it waits, for whom, and until when.

Read from the queue's own record at the moment of asking; nothing is kept here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.settings import Settings
from pilotage.scheduling.queue_record import BackoffSettings, Record, backoff_seconds
from pilotage.scheduling.transitions import Position

Registrations = Mapping[str, Sequence[EventRegistration]]
_WAITING_FOR_EVENTS = (Position.UNSCHEDULABLE, Position.GATED)
_BACKING_OFF = (Position.BACKOFF, Position.ERROR_BACKOFF)


@dataclass(frozen=True, slots=True)
class Waiting:
    """`next_retry`: seconds since the epoch when time alone lets it try again; None when only events do, or
    when it is being tried. `woken_by`: plugin -> events, of the plugins that it waits for."""

    position: Position
    attempts: int
    backoff_until: float | None
    next_retry: float | None
    gated_by: str
    gate_message: str
    waits_on: tuple[str, ...]
    woken_by: Mapping[str, tuple[str, ...]]


def waiting(record: Record, settings: Settings, registrations: Registrations) -> Waiting:
    """The record in words; `registrations` are those of the pod's profile."""
    backoff = _backoff_end(record, settings)
    is_gated = record.position is Position.GATED
    parked = record.position in _WAITING_FOR_EVENTS
    waits_on = tuple(sorted(record.waits_on)) if parked or record.position in _BACKING_OFF else ()
    return Waiting(
        position=record.position,
        attempts=record.attempts,
        backoff_until=backoff if record.rejectors or record.consecutive_errors else None,
        next_retry=_next_retry(record, settings, backoff),
        gated_by=record.gating_plugin if is_gated else "",
        gate_message=record.gate_status.message if is_gated else "",
        waits_on=waits_on,
        woken_by={name: event_names(registrations.get(name, ())) for name in waits_on} if parked else {},
    )


def _next_retry(record: Record, settings: Settings, backoff: float) -> float | None:
    if record.position in _BACKING_OFF:
        return backoff
    if record.position is Position.UNSCHEDULABLE:
        return max(record.parked_at + settings.pod_max_in_unschedulable, backoff)
    return None


def _backoff_end(record: Record, settings: Settings) -> float:
    """The queue lets a pod go at the first whole second after its backoff."""
    limits = BackoffSettings(settings.pod_initial_backoff, settings.pod_max_backoff)
    seconds = backoff_seconds(record, limits)
    return math.floor(record.timestamp + seconds) + 1.0 if seconds else record.timestamp


def event_names(registrations: Iterable[EventRegistration]) -> tuple[str, ...]:
    """`NodeAdd`, `NodeUpdateNodeTaint`, ...: kube-scheduler's labels; `any event` if none is registered."""
    found: dict[str, None] = {}
    for registration in registrations:
        found.update(dict.fromkeys(_names(registration.event)))
    return tuple(found) or ("any event",)


def _names(event: ClusterEvent) -> Iterable[str]:
    if event.resource is Resource.WILDCARD:
        return ("any event",)
    if event.action & Action.UPDATE == Action.UPDATE:
        updates = ["Update"]
    else:
        updates = [_camel(flag) for flag in Action.UPDATE & event.action]
    others = [_camel(flag) for flag in (Action.ADD | Action.DELETE) & event.action]
    return [f"{event.resource.value}{action}" for action in (*others, *updates)]


def _camel(flag: Action) -> str:
    if flag is Action.UPDATE_OTHER:
        return "Update"
    return "".join(word.capitalize() for word in (flag.name or "").split("_"))
