"""Decisions that stop to ask somebody outside, and go on with the answer.

Law: whoever decides is a generator that yields a `Question`; it is sent the response, or `AskFailedError` is
thrown into it. Other pods are decided meanwhile, so after a question nothing that was seen before it may be
taken for granted. Nothing here knows who is asked, or how.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from pilotage.state.podinfo import PodInfo

T = TypeVar("T")


class AskFailedError(Exception):
    """Thrown into the generator when a question got no answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the decision waits for: send the response, or throw AskFailedError.

    `timeout`: seconds; None where whoever is asked ends it in time by himself.
    """

    request: Any
    timeout: float | None


Asking: TypeAlias = Generator[Question, Any, T]


def with_nobody_to_ask(asking: Asking[T]) -> T:
    """Runs it to its end; every question fails."""
    try:
        next(asking)
        while True:
            asking.throw(AskFailedError("nobody can be asked here"))
    except StopIteration as stop:
        result: T = stop.value
        return result


class Victims(NamedTuple):
    """Who would go from one node, and how many of them a disruption budget does not allow to."""

    pods: tuple[PodInfo, ...]
    violations: int


class VictimAsker(Protocol):
    """Somebody outside who has a say in who is preempted."""

    def narrow(
        self, pod: PodInfo, offered: Mapping[str, Victims], pods_on: Callable[[str], Sequence[PodInfo]]
    ) -> Asking[Mapping[str, Victims]]:
        """What is left of `offered` (by node). `pods_on`: all pods that a node has by then.

        Raises AskFailedError where a failure is one of the whole preemption.
        """


@runtime_checkable
class AsksAboutVictims(Protocol):
    def use_victim_askers(self, askers: Sequence[VictimAsker]) -> None:
        """Called once, when the engine is built."""
