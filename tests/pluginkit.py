"""A plugin that writes down what it is called for, and what a driver does with its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from enginekit import World
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import Plugin
from pilotage.framework.status import SKIP, SUCCESS, Status
from pilotage.scheduling.messages import (
    RunStep,
    StepFinished,
)


class Journal(Plugin):
    """Writes down what it is called for; answers what it is told to. Registers Node Add alone."""

    def __init__(self, name: str = "Journal", log: list[str] | None = None, **answers: Any) -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]  # one class under several names
        self.log = [] if log is None else log
        self.answers = answers

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),)

    def _answer(self, point: str, default: Any = SUCCESS) -> Any:
        self.log.append(f"{self.name}.{point}")
        answer = self.answers.get(point, default)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def reserve(self, *_: Any) -> Status:
        return self._answer("reserve")

    def unreserve(self, *_: Any) -> None:
        self._answer("unreserve")

    def permit(self, *_: Any) -> Any:
        return self._answer("permit")

    def pre_bind_pre_flight(self, *_: Any) -> Status:
        return self._answer("pre_flight")

    def pre_bind(self, *_: Any) -> Any:
        return self._answer("pre_bind")

    def bind(self, *_: Any) -> Any:
        return self._answer("bind", SKIP)

    def post_bind(self, *_: Any) -> Any:
        return self._answer("post_bind", None)


def later(value: Any) -> Callable[[], Awaitable[Any]]:
    async def answer() -> Any:
        return value

    return answer


def run(step: RunStep) -> StepFinished:
    """What the driver does with a step."""

    async def carry_out() -> StepFinished:
        try:
            return StepFinished(step.step, await step.start())
        except Exception as fault:
            return StepFinished(step.step, error=f"{type(fault).__name__}: {fault}")

    return asyncio.run(carry_out())


def ready(*plugins: Any, **world: Any) -> World:
    """One node, one pod."""
    found = World(*plugins, **world)
    found.node("n1")
    found.pod("a")
    return found
