"""Events that the engine handles and effects that it answers with.

Law: a fact comes in with `now`, a list of effects goes out; the engine never waits, reads a clock or
talks. A failed effect returns as an event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pilotage.api.meta import KubeObject
from pilotage.framework.calls import Call, Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all facts."""


@dataclass(frozen=True, slots=True)
class Upserted(Event):
    """An object was added or changed. `resource` is the plural (`pods`, `nodes`, `replicasets.apps`, ...)."""

    resource: str
    object: KubeObject
    is_new: bool = field(default=False, compare=False)  # never told of before; for metrics only


@dataclass(frozen=True, slots=True)
class Deleted(Event):
    """An object is gone; `object` is its last known state."""

    resource: str
    object: KubeObject


@dataclass(frozen=True, slots=True)
class Undecodable(Event):
    """An object that could not be decoded. A node gets no pods; a pod stays pending with that reason.

    `scheduler_name` and `node_name` are a pod's, as far as they could be read.
    """

    resource: str
    namespace: str
    name: str
    uid: str
    error: str
    scheduler_name: str = "default-scheduler"
    node_name: str = ""


@dataclass(frozen=True, slots=True)
class CallFinished(Event):
    """A submitted call ended. `ticket` is the one of its `Submit`."""

    ticket: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """An async plugin step ended: `value` is what it returned, `error` the text of what it raised."""

    step: int
    value: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PermitResolved(Event):
    """A waiting pod was allowed (plugin named) or rejected with a reason."""

    uid: str
    plugin: str
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answered(Event):
    ask: int
    response: Any


@dataclass(frozen=True, slots=True)
class AskFailed(Event):
    ask: int
    error: str


@dataclass(frozen=True, slots=True)
class Tick(Event):
    """`next_wakeup` was reached: flush backoff, permits and the unschedulable pool."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of all effects. `stimulus` is the number of the event that caused it."""

    stimulus: int


@dataclass(frozen=True, slots=True)
class Submit(Effect):
    """Offer a call to the call queue. `awaited`: a `CallFinished(ticket)` must come back in any case."""

    ticket: int
    call: Call
    awaited: bool


@dataclass(frozen=True, slots=True)
class Cancel(Effect):
    """Cancel what is pending for a pod (it was deleted or preempted)."""

    uid: str
    why: str


@dataclass(frozen=True, slots=True)
class RunStep(Effect):
    """Run an async plugin step; its end comes back as `StepFinished(step)`."""

    step: int
    plugin: str
    point: str
    uid: str
    start: Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class CancelStep(Effect):
    """Nobody waits for this step or ask any more (its pod was deleted or bound): stop it, report nothing."""

    step: int


@dataclass(frozen=True, slots=True)
class Ask(Effect):
    """A request to someone outside (extender, out-of-process plugin), due by `deadline`: epoch seconds,
    infinite where whoever is asked ends it in time by himself."""

    ask: int
    request: Any
    deadline: float


@dataclass(frozen=True, slots=True)
class Attempt(Effect):
    """One scheduling attempt ended; for metrics and logs only. `result`: scheduled, unschedulable, error."""

    uid: str
    key: str
    profile: str
    result: str
    attempts: int
    node: str = ""
    message: str = ""
    age: float = 0.0  # seconds since the first attempt entered the active queue
    started: float = 0.0  # when the pod was popped for it
    after_flush: bool = False  # the periodic flush, not an event, caused this attempt


@dataclass(frozen=True, slots=True)
class BindingEnded(Effect):
    """What became of a chosen node; for metrics only. `points`: extension point, status word, seconds."""

    uid: str
    profile: str
    points: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class Queued(Effect):
    """A pod entered a queue; for metrics only. `queue`: active, backoff, unschedulable, gated."""

    uid: str
    key: str
    queue: str
    event: str  # label of the event that moved it


@dataclass(frozen=True, slots=True)
class PreemptionTried(Effect):
    """PostFilter ran for a pod that fits nowhere; for metrics only. `victims`: None if it chose no node."""

    uid: str
    profile: str
    victims: int | None


@dataclass(frozen=True, slots=True)
class ResizeTried(Effect):
    """A cycle of a deferred resize ended; for metrics only. `outcome`: fits, preempts, waits, rejected or
    error."""

    uid: str
    key: str
    profile: str
    outcome: str
    victims: int


@dataclass(frozen=True, slots=True)
class ResizeEnded(Effect):
    """A resize is not deferred any more; for metrics only. `resolution`: resized, reverted, infeasible,
    disabled, ended; `seconds` that it stood in the queue."""

    uid: str
    key: str
    profile: str
    resolution: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PreemptionEnded(Effect):
    """The API calls of a preemption ended, all of them well or not; for metrics only."""

    uid: str
    seconds: float
    is_ok: bool


@dataclass(frozen=True, slots=True)
class Log(Effect):
    """A line for the log at the edge."""

    level: str  # debug, info, warning, error
    text: str
