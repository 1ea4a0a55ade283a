"""Which plugins registered an event, and what their hints say to one waiting pod.

Laws: an event nobody registered matches nothing; a hint that raises counts as Queue; a plugin without
registrations, or one unknown here (an extender), is woken by every event; Node Add implies Node Taint,
because a taint may have hidden a node from the plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pilotage.framework.events import (
    TAINT_MAY_HAVE_HIDDEN,
    WILDCARD,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    HintFn,
    Resource,
)
from pilotage.scheduling.queue_nodes import nodes_of
from pilotage.scheduling.queue_record import Rank, Record
from pilotage.state.podinfo import PodInfo

RejectorKey: TypeAlias = tuple[str, str]  # profile, plugin
HintFns: TypeAlias = tuple[HintFn | None, ...]

_EVERYTHING = (EventRegistration(WILDCARD),)
_POD_KINDS = (Resource.POD, Resource.ASSIGNED_POD)
_OWN_KINDS = (Resource.POD, Resource.TARGET_POD, Resource.UNSCHEDULABLE_POD, Resource.ASSIGNED_POD)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event that happened, with the object before and after. `own`: UID of the only pod it is about.

    `is_ours`: a failed attempt gave room back. Nobody outside paces such events, so they never cut a
    backoff: two pods that Permit refuses would wake each other without end.
    """

    event: ClusterEvent
    old: object | None = None
    new: object | None = None
    own: str = ""
    is_ours: bool = False

    @property
    def is_wildcard(self) -> bool:
        return self.event.resource is Resource.WILDCARD

    def concerns(self, pod: PodInfo) -> bool:
        """Whether the pod is told of it at all; a bound one hears only of itself and of its own node."""
        if self.own or not pod.is_bound:
            return not self.own or self.own == pod.uid
        if isinstance(self.new, PodInfo) and self.new.uid == pod.uid:
            return False  # it hears of itself by `own`
        return pod.node_name in nodes_of(self.old, self.new)


class HintResult(Enum):
    """What came of asking a hint; an error wakes the pod."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"
    ERROR = "Error"


def ask_hint(plugin: str, hint: HintFn | None, record: Record, occurrence: Occurrence) -> HintResult:
    """`plugin` is for whoever looks on."""
    del plugin
    if hint is None:
        return HintResult.QUEUE
    try:
        skips = hint(record.pod, occurrence.old, occurrence.new) is Hint.SKIP
    except Exception:  # plugin code: whatever it raises, waking the pod is the safe answer
        return HintResult.ERROR
    return HintResult.SKIP if skips else HintResult.QUEUE


AskHint: TypeAlias = Callable[[str, HintFn | None, Record, Occurrence], HintResult]


def matches(registered: ClusterEvent, event: ClusterEvent, *, own: bool) -> bool:
    """Does a registration cover an event? `own`: the event is an update of the waiting pod itself."""
    if not registered.action & event.action:
        return False
    if registered.resource is Resource.WILDCARD:
        return True
    if own:
        return registered.resource in _OWN_KINDS
    if event.resource is Resource.ASSIGNED_POD:
        return registered.resource in _POD_KINDS
    return registered.resource is event.resource


class HintIndex:
    """Registrations of all profiles, found by event. Answers are cached per kind of event."""

    def __init__(self, registrations: Mapping[RejectorKey, Sequence[EventRegistration]]) -> None:
        self._registrations = {key: _completed(regs) for key, regs in registrations.items()}
        self._cache: dict[tuple[Resource, Action, bool], dict[RejectorKey, HintFns]] = {}
        self.ask: AskHint = ask_hint  # to be replaced by one that also looks on

    def ensure(self, key: RejectorKey) -> None:
        """Makes an unknown rejector one that every event wakes."""
        if key not in self._registrations:
            self._registrations[key] = _EVERYTHING
            self._cache.clear()

    def matching(self, occurrence: Occurrence) -> Mapping[RejectorKey, HintFns]:
        """The plugins whose registrations cover the event, each with the hints to ask."""
        event, own = occurrence.event, bool(occurrence.own)
        cache_key = (event.resource, event.action, own)
        found = self._cache.get(cache_key)
        if found is None:
            found = self._cache[cache_key] = self._match(event, own)
        return found

    def _match(self, event: ClusterEvent, own: bool) -> dict[RejectorKey, HintFns]:
        found: dict[RejectorKey, HintFns] = {}
        for key, registrations in self._registrations.items():
            hints = tuple(r.hint for r in registrations if matches(r.event, event, own=own))
            if hints:
                found[key] = hints
        return found

    def registered_wildcard(self, key: RejectorKey) -> bool:
        """True where the plugin itself asked for every event."""
        return any(r.event.resource is Resource.WILDCARD for r in self._registrations.get(key, _EVERYTHING))

    def rank(self, record: Record, occurrence: Occurrence) -> Rank:
        """What the event is worth to the pod, by the hints of the plugins that it waits on."""
        if not occurrence.concerns(record.pod):
            return Rank.SKIP
        if occurrence.is_wildcard or not record.waits_on:
            return Rank.AFTER_BACKOFF
        rank = Rank.SKIP
        for plugin, hints in self._asked(record, occurrence):
            if all(self.ask(plugin, hint, record, occurrence) is HintResult.SKIP for hint in hints):
                continue
            if plugin in record.pending_plugins and not occurrence.is_ours:
                return Rank.IMMEDIATELY
            rank = Rank.AFTER_BACKOFF
            if not record.pending_plugins:
                return rank
        return rank

    def _asked(self, record: Record, occurrence: Occurrence) -> Iterator[tuple[str, HintFns]]:
        for plugin in sorted(record.waits_on):
            key = (record.profile, plugin)
            self.ensure(key)
            hints = self.matching(occurrence).get(key)
            if hints:
                yield plugin, hints


def _completed(registrations: Sequence[EventRegistration]) -> Sequence[EventRegistration]:
    if not registrations:
        return _EVERYTHING
    node_actions = Action(0)
    for registration in registrations:
        if registration.event.resource is Resource.NODE:
            node_actions |= registration.event.action
    if node_actions & Action.ADD and not node_actions & Action.UPDATE_NODE_TAINT:
        return (*registrations, TAINT_MAY_HAVE_HIDDEN)
    return registrations
