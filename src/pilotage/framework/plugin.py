"""Extension points as protocols. A plugin is any class whose methods match one or more of them.

Three forms, one registry. Vector: `filter_nodes` / `score_nodes` on many rows at once (built-ins).
Per node: `filter` / `score`, run only on rows that survived (the convenient form). Async: `permit`,
`pre_bind`, `bind` and `post_bind` may be `async def`; the engine then hands them to the runtime and the
result comes back as an event. A plugin that raises fails that pod's attempt, never the scheduler.

Resizes. A bound pod whose resize the kubelet deferred has cycles of its own: its node is the only one, and at
PreEnqueue, PreFilter (AddPod, RemovePod), Filter and PostFilter only those plugins run whose
`takes_part_in_resizes` is true; nothing is scored, reserved, permitted or bound. They see the pod by
`pod.is_bound`; `pod.requests` is what it needs once resized, and the view is the node without it. Events wake
it only where they are about its own node, or about the pod itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pilotage.framework.asking import Asking
from pilotage.framework.calls import Call
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import EventRegistration
from pilotage.framework.status import SUCCESS, Code, Status
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int8, Int64, NodeView, Rows, UInt64

MAX_NODE_SCORE = 100
MAX_PERMIT_SECONDS = 15 * 60.0


class DependsOn(Enum):
    """What a row's filter or score answer depends on, for caching by pod signature."""

    ROW = "row"  # the row alone, and the pod's signature
    DOMAIN = "domain"  # the pods in the row's topology domain
    CLUSTER = "cluster"  # anything in the cluster state
    EXTERNAL = "external"  # anything: never cached


class Handle(Protocol):
    """What the engine offers to plugins. The only way from a plugin to the API is `submit`."""

    @property
    def gates(self) -> Mapping[str, bool]:
        """Feature gates, frozen at start."""

    @property
    def cluster(self) -> Any:
        """`state.cluster.ClusterState`, to read."""

    @property
    def random(self) -> np.random.Generator:
        """Seeded: the only source of chance."""

    def now(self) -> float:
        """Time of the event being handled, seconds since the epoch."""

    def submit(self, call: Call) -> None: ...

    def activate(self, pods: Sequence[str]) -> None:
        """Moves pods (UIDs) to the active queue."""


class Plugin:
    """Convenient base class: args and handle kept as attributes, name taken from the class."""

    name: ClassVar[str] = ""
    depends_on: ClassVar[DependsOn] = DependsOn.EXTERNAL
    takes_part_in_resizes: ClassVar[bool] = False

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        self.args = args
        self._handle = handle

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    @property
    def handle(self) -> Handle:
        assert self._handle is not None, f"plugin {self.name} was built without a handle"
        return self._handle

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that may make a pod this plugin rejected schedulable. None at all: every event wakes it."""
        return ()


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Status, and optionally the only nodes (names) worth looking at."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class FilterResult(NamedTuple):
    """Aligned with the `rows` that were asked: a Code and a plugin-private reason bit set per row."""

    codes: Int8
    reasons: UInt64


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that go together: one ordinary pod, or all members of a group."""

    pods: tuple[PodInfo, ...]


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whom a PostFilter plugin wants removed, and where. Carried out by the engine, never by the plugin.

    `outranked`: pods of lower priority that are nominated to the node; they lose their nomination.
    """

    node: str
    units: tuple[VictimUnit, ...]
    outranked: tuple[PodInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """`nominated_node`: None leaves the nomination as it is, "" clears it."""

    status: Status
    nominated_node: str | None = None
    preemption: Preemption | None = None


@dataclass(slots=True)
class QueuedPod:
    """A pod with its queue record, as QueueSort and the queue see it. Times are seconds since the epoch."""

    pod: PodInfo
    timestamp: float = 0.0  # (re)entry: base of backoff and of FIFO order
    initial_attempt: float | None = None  # first time in the active queue
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    sequence: int = 0  # arrival number, the last tie-break


MaybeAsync: TypeAlias = Status | Awaitable[Status]


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: PodInfo) -> Status: ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    def sort_key(self, queued: QueuedPod) -> Any:
        """Smallest key is popped first. Must not change while the pod is in the queue."""


@runtime_checkable
class PreFilterPlugin(Protocol):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterResult | Status: ...


@runtime_checkable
class WhatIfPlugin(Protocol):
    """PreFilter extensions: `view` already shows the change on `row`; redo what PreFilter counted."""

    def add_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status: ...

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status: ...


@runtime_checkable
class FilterNodesPlugin(Protocol):
    def filter_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult: ...

    def reason_texts(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, row: int, bits: int
    ) -> Sequence[str]:
        """Texts behind a row's reason bits; called only for rejected rows that somebody reads.

        Within a cycle equal bits must mean equal texts: one row is asked for all that have them.
        """


@runtime_checkable
class FilterPlugin(Protocol):
    def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status: ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, failures: NodeFailures
    ) -> PostFilterResult | Asking[PostFilterResult]:
        """A generator may ask somebody outside, see `framework.asking`."""


@runtime_checkable
class PreScorePlugin(Protocol):
    def pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Status: ...


@runtime_checkable
class ScoreNodesPlugin(Protocol):
    def score_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        """Raw scores aligned with `rows`."""


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> int: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    def normalize(self, cycle: CycleState, pod: PodInfo, scores: Int64, rows: Rows) -> Int64:
        """Scores brought to 0..100; anything else afterwards is an error."""


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status: ...

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None: ...


class PermitResult(NamedTuple):
    status: Status
    timeout: float = 0.0  # seconds, with Code.WAIT


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(
        self, cycle: CycleState, pod: PodInfo, node_name: str
    ) -> PermitResult | Status | Awaitable[PermitResult | Status]: ...


@dataclass(frozen=True, slots=True)
class AwaitObjects:
    """PreBind's answer where somebody else has to act: `calls` are written, then objects are waited for.

    `check` looks at the cluster: None goes on waiting, a Status ends the plugin's PreBind. It is asked at
    once, when a call ends, and when one of the objects changes that `watched` names (resource and
    `namespace/name` or name; asked again after each look). Its argument tells whether all calls have ended
    well; one that fails ends PreBind with an error. After `timeout` seconds `timed_out` does.
    """

    calls: tuple[Call, ...]
    watched: Callable[[], Iterable[tuple[str, str]]]
    check: Callable[[bool], Status | None]
    timeout: float
    timed_out: Callable[[], Status]


@runtime_checkable
class PreBindPlugin(Protocol):
    """`pre_bind_pre_flight` is optional: Skip there skips this plugin's PreBind."""

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> MaybeAsync | AwaitObjects: ...


@runtime_checkable
class BindPlugin(Protocol):
    """Returns the call that binds, or a Status (Skip passes the pod to the next bind plugin)."""

    def bind(
        self, cycle: CycleState, pod: PodInfo, node_name: str
    ) -> Call | Status | Awaitable[Call | Status]: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Awaitable[None] | None: ...


class NodeRef(Protocol):
    """One node, as per-node plugins see it."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def node(self) -> Any:
        """`api.nodes.Node`"""

    @property
    def pods(self) -> Sequence[PodInfo]: ...

    @property
    def allocatable(self) -> Mapping[str, int]:
        """milli-CPU, bytes, units"""

    @property
    def requested(self) -> Mapping[str, int]: ...


class NodeFailures(Protocol):
    """Why each node was rejected, built lazily."""

    def code(self, row: int) -> Code: ...

    def status(self, row: int) -> Status: ...

    def rows_with(self, code: Code) -> Rows: ...
