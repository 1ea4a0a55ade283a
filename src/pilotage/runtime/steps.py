"""Effects that take time, as tasks: async plugin steps and questions to someone outside.

Laws: every task ends in exactly one event, failures and a step that was cancelled from inside included;
only a step that nobody waits for any more, cancellation at the end and bugs of ours end without one. The
coroutine is made inside its task, so none is ever left un-awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

from pilotage.scheduling.messages import Answered, Ask, AskFailed, Event, RunStep, StepFinished

logger = logging.getLogger(__name__)

SLOW_SECONDS = 0.1

Asker = Callable[[Any], Awaitable[Any]]
"""Carries a request of an `Ask` to whoever answers it; what it raises is the failure."""


class Steps:
    """`report` takes the events; `now` is the clock's time, epoch seconds."""

    def __init__(
        self, report: Callable[[Event], None], now: Callable[[], float], asker: Asker | None = None
    ) -> None:
        self._report = report
        self._now = now
        self._asker = asker
        # Exactly the tasks that have not reported yet.
        self._tasks: set[asyncio.Task[None]] = set()
        self._by_step: dict[int, asyncio.Task[None]] = {}  # steps and questions, by their number
        self._unwanted: set[int] = set()  # those that were cancelled and have not ended yet
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def run(self, step: RunStep) -> None:
        self._remember(step.step, self._step(step), f"{step.point} of {step.plugin} for {step.uid}")

    def _remember(self, number: int, work: Any, name: str) -> None:
        task = self._start(work, name)
        self._by_step[number] = task
        task.add_done_callback(lambda _: self._forget(number))

    def _forget(self, step: int) -> None:
        self._by_step.pop(step, None)
        self._unwanted.discard(step)

    def cancel(self, step: int) -> None:
        """Nobody waits for the step or question any more; one that has ended is left alone."""
        task = self._by_step.get(step)
        if task is not None:
            self._unwanted.add(step)
            task.cancel()

    def ask(self, question: Ask) -> None:
        self._remember(question.ask, self._question(question), f"question {question.ask}")

    async def close(self) -> None:
        """Cancels what is still running, and waits for it; nothing is reported any more."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Any, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not self._closed:
            # Reporting itself failed: the engine has a bug. Let the loop's handler show it.
            task.get_loop().call_exception_handler(
                {
                    "message": f"{task.get_name()}: its end could not be reported",
                    "exception": task.exception(),
                }
            )

    async def _step(self, step: RunStep) -> None:
        start = self._now()
        end = await self._outcome(step)
        if step.step not in self._unwanted:
            self._tell(end)
        took = self._now() - start
        if took > SLOW_SECONDS:
            logger.info("plugin %s took %.3f s at %s (pod %s)", step.plugin, took, step.point, step.uid)

    async def _outcome(self, step: RunStep) -> StepFinished:
        """How it ended, whoever cancelled it."""
        try:
            return StepFinished(step.step, await step.start())
        except asyncio.CancelledError:
            return StepFinished(step.step, error="it was cancelled")
        except Exception as error:  # a plugin may raise anything; it fails its pod, not us
            return StepFinished(step.step, error=_text(error))

    async def _question(self, question: Ask) -> None:
        left = None if question.deadline == inf else max(0.0, question.deadline - self._now())
        try:
            if self._asker is None:
                raise LookupError("nobody is configured to answer")
            async with asyncio.timeout(left):
                response = await self._asker(question.request)
        except TimeoutError:
            self._tell(AskFailed(question.ask, "no answer in time"))
        except Exception as error:  # whoever is asked may fail in any way
            self._tell(AskFailed(question.ask, _text(error)))
        else:
            self._tell(Answered(question.ask, response))

    def _tell(self, event: Event) -> None:
        if not self._closed:
            self._report(event)


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
