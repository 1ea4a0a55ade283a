"""What an explanation consists of, before anybody prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotage.framework.status import Status


@dataclass(frozen=True, slots=True)
class Detail:
    """The numbers behind one node's rejection.

    `group`: what nodes with a like reason have in common ("" stands for the text); `numbers`: the same for
    machines, cpu in milli-CPU, memory and storage in bytes, everything else in units.
    """

    text: str = ""
    group: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def common(self) -> str:
        return self.group or self.text


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node cannot take the pod: the first filter that said no. `plugin` may be empty.

    `others`: further filters that would say no, where somebody asked for them.
    """

    node: str
    plugin: str
    reasons: tuple[str, ...]
    may_preempt: bool  # whether removing pods could help
    detail: Detail
    others: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that can take the pod. `scores`: weighted, by plugin; empty when nothing was scored."""

    node: str
    scores: Mapping[str, int]
    total: int
    is_winner: bool
    details: Mapping[str, str] = field(default_factory=dict)  # plugin -> the numbers behind its score


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Changes that would make nodes feasible, found by asking the filters again."""

    changes: tuple[str, ...]
    plugins: tuple[str, ...]  # whose rejection each change lifts, aligned
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Victim:
    namespace: str
    name: str
    priority: int


@dataclass(frozen=True, slots=True)
class Preemption:
    node: str
    victims: tuple[Victim, ...]


@dataclass(frozen=True, slots=True)
class Waker:
    """Cluster events that may make the pod schedulable again, by the plugin that waits for them."""

    plugin: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodState:
    """The pod as the API shows it. `condition`: PodScheduled, empty texts where there is none."""

    namespace: str
    name: str
    uid: str
    profile: str
    priority: int
    phase: str
    node: str
    nominated_node: str
    gates: tuple[str, ...]
    condition_status: str
    condition_reason: str
    condition_message: str
    is_terminating: bool
    requests: Mapping[str, int]
    events: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """`gate`: why PreEnqueue keeps the pod out of the queue, SUCCESS when it does not.

    `node`: where it would go now, "" for nowhere; `winners`: all nodes that are as good. `message`: what its
    condition would say. `is_nominated`: the nominated node was taken, the others did not matter.
    """

    pod: PodState
    n_nodes: int
    gate: Status
    node: str
    winners: tuple[str, ...]
    is_nominated: bool
    is_error: bool
    message: str
    rejections: Sequence[Rejection]
    candidates: Sequence[Candidate]
    what_ifs: Sequence[WhatIf]
    preemption: Preemption | None
    wakers: Sequence[Waker]
    notes: Sequence[str]

    @property
    def is_bound(self) -> bool:
        return bool(self.pod.node)

    @property
    def is_schedulable(self) -> bool:
        return bool(self.node) and self.gate.is_success
