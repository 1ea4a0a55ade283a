"""Faults on demand, for any transport: which requests they hit, how often, and what they do there.

    faults = Faults()
    faults.answer(503, method="POST", path="/binding$", times=2)
    faults.lose_answer(verb="create", path="/binding$", times=1)
    faults.drop_watches(path="/pods$")

Laws: rules apply in the order in which they were added and compose; a rule counts the requests that it
matched; `path` is a regular expression that is searched for. Works over real HTTP as well: put a
`faultytransport.FaultyTransport` round an `HttpTransport`, or stand `proxy.FaultProxy` before a server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypedDict, Unpack

from pilotage.api.wire import Request
from pilotage.testing import faultkinds
from pilotage.testing.faultkinds import Fault, Hold
from pilotage.testing.requestlog import Record, RequestLog
from pilotage.testing.streams import ControlledStream, End


class Gone(Enum):
    """The three ways in which a server says that a resourceVersion is too old."""

    STATUS = "an HTTP 410 answers the watch"
    EVENT = "an ERROR event inside a 200 stream"
    LIST = "an HTTP 410 in the middle of a paged list"


class Selection(TypedDict, total=False):
    """Which requests a rule hits: all that is given must hold."""

    method: str
    verb: str  # get, list, watch, create, update, patch, delete, deletecollection
    path: str
    client: str
    where: Callable[[Request], bool]
    skip: int  # the first so many matching requests pass
    times: int  # then so many are hit; all where not given


@dataclass(eq=False)
class Rule:
    """A fault and whom it hits. `hits` counts what it matched; `remove()` ends it."""

    fault: Fault
    selection: Selection
    hits: int = 0
    is_active: bool = True
    until: float | None = None  # loop time at which the rule ends by itself
    _seen: int = 0
    _path: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        unknown = set(self.selection) - Selection.__optional_keys__
        if unknown:
            raise TypeError(f"a fault cannot be selected by {', '.join(sorted(unknown))}")
        self._path = re.compile(self.selection.get("path", ""))

    def remove(self) -> None:
        self.is_active = False

    def take(self, record: Record) -> bool:
        """Whether the rule hits this request, which it matches; counts it if so."""
        is_over = self.until is not None and record.time >= self.until
        if is_over or not self.is_active:
            return False
        self._seen += 1
        if self._seen <= self.selection.get("skip", 0):
            return False
        if "times" in self.selection and self.hits >= self.selection["times"]:
            return False
        self.hits += 1
        record.faults.append(type(self.fault).__name__)
        return True

    def matches(self, record: Record) -> bool:
        chosen = self.selection
        where = chosen.get("where")
        return (
            chosen.get("method", record.method) == record.method
            and chosen.get("verb", record.verb) == record.verb
            and chosen.get("client", record.client) == record.client
            and self._path.search(record.path) is not None
            and (where is None or where(record.request))
        )


class Faults:
    """The rules in force and the watches that are open. One for all transports of a cluster."""

    def __init__(self, time: Callable[[], float] | None = None) -> None:
        self.log = RequestLog()
        self.time = time or _loop_time
        self._rules: list[Rule] = []
        # Watches that are open now, with the record of their request.
        self._streams: list[tuple[Record, ControlledStream]] = []

    def add(self, fault: Fault, **selection: Unpack[Selection]) -> Rule:
        """Put any fault in force. The shortcuts below cover the usual ones."""
        rule = Rule(fault, selection)
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """End all rules, let held calls go on and delayed or held watches flow."""
        for rule in self._rules:
            rule.remove()
            if isinstance(rule.fault, Hold):
                rule.fault.release()
        self._rules.clear()
        for _, stream in self._open_streams():
            stream.set_delay(0.0)
            stream.release()

    def answer(self, status: int, message: str = "", **selection: Unpack[Selection]) -> Rule:
        return self.add(faultkinds.Answer(status, message), **selection)

    def too_many_requests(self, retry_after: int = 1, **selection: Unpack[Selection]) -> Rule:
        return self.add(faultkinds.Answer(429, "too many requests", retry_after), **selection)

    def latency(self, before: float = 0.0, after: float = 0.0, **selection: Unpack[Selection]) -> Rule:
        return self.add(faultkinds.Latency(before, after), **selection)

    def hold(
        self, *, after_write: bool = False, lands_anyway: bool = False, **selection: Unpack[Selection]
    ) -> Hold:
        """Keep matching calls until `.release()`; `.waiting` lists them."""
        fault = Hold(after_write=after_write, lands_anyway=lands_anyway)
        self.add(fault, **selection)
        return fault

    def lose_answer(self, *, after_write: bool = True, **selection: Unpack[Selection]) -> Rule:
        return self.add(faultkinds.LoseAnswer(after_write=after_write), **selection)

    def gone(self, form: Gone, **selection: Unpack[Selection]) -> Rule:
        """410 in one of its forms; once unless `times` says otherwise."""
        selection.setdefault("times", 1)
        if form is Gone.LIST:
            selection["verb"] = "list"
            selection["where"] = lambda request: bool(request.query.get("continue"))
            return self.answer(410, "The provided continue parameter is too old", **selection)
        selection["verb"] = "watch"
        if form is Gone.STATUS:
            return self.answer(410, "too old resource version", **selection)
        return self.add(faultkinds.GoneInStream(), **selection)

    def unreachable(self, **selection: Unpack[Selection]) -> Rule:
        """From now on nobody answers, and open watches break; `.remove()` brings the server back."""
        rule = self.add(faultkinds.Unreachable(), **selection)
        self._cut(rule, End.CUT)
        return rule

    def unreachable_for(self, seconds: float, **selection: Unpack[Selection]) -> Rule:
        rule = self.unreachable(**selection)
        rule.until = self.time() + seconds
        return rule

    def drop_watches(self, end: End = End.CUT, **selection: Unpack[Selection]) -> int:
        """Break open watches now; answers how many there were."""
        return self._cut(Rule(Fault(), selection), end)

    def cut_watch_after(self, events: int, **selection: Unpack[Selection]) -> Rule:
        selection["verb"] = "watch"
        return self.add(faultkinds.CutWatch(events), **selection)

    def delay_watches(self, seconds: float, **selection: Unpack[Selection]) -> Rule:
        """Events of open and later watches arrive late."""
        rule = self.add(faultkinds.StaleWatch(seconds), **selection)
        for stream in self._matching(rule):
            stream.set_delay(seconds)
        return rule

    def hold_watches(self, **selection: Unpack[Selection]) -> HeldWatches:
        """Events of the watches open now are kept until `.release()`."""
        streams = self._matching(Rule(Fault(), selection))
        for stream in streams:
            stream.hold()
        return HeldWatches(streams)

    def candidates(self, record: Record) -> list[Rule]:
        """Rules that may hit this request; each counts it only when it is reached (`Rule.take`)."""
        return [rule for rule in self._rules if rule.is_active and rule.matches(record)]

    def opened(self, record: Record, stream: ControlledStream) -> None:
        self._streams = [*self._open_streams(), (record, stream)]

    def _open_streams(self) -> list[tuple[Record, ControlledStream]]:
        return [pair for pair in self._streams if pair[1].is_open]

    def _matching(self, rule: Rule) -> list[ControlledStream]:
        return [stream for record, stream in self._open_streams() if rule.matches(record)]

    def _cut(self, rule: Rule, end: End) -> int:
        streams = self._matching(rule)
        for stream in streams:
            stream.cut(end)
        return len(streams)


@dataclass(frozen=True, slots=True)
class HeldWatches:
    streams: list[ControlledStream]

    def release(self) -> None:
        for stream in self.streams:
            if stream.is_open:
                stream.release()


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
