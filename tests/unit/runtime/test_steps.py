"""Steps and questions: each ends in one event; the end leaves nothing behind. Under virtual time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pilotage.runtime.steps import Steps
from pilotage.scheduling.messages import Answered, Ask, AskFailed, Event, RunStep, StepFinished
from pilotage.testing import virtualtime


class Reports:
    """A `Steps` whose events are kept."""

    def __init__(self, asker: Any = None) -> None:
        self.events: list[Event] = []
        self.steps = Steps(self.events.append, self.now, asker)

    @staticmethod
    def now() -> float:
        return 1000.0 + asyncio.get_running_loop().time()

    def step(self, start: Any, number: int = 1) -> None:
        self.steps.run(RunStep(0, number, "Slow", "PreBind", "uid-1", start))

    def ask(self, deadline: float) -> None:
        self.steps.ask(Ask(0, 7, "request", deadline))


async def returns(value: object, after: float = 0.0) -> object:
    await asyncio.sleep(after)
    return value


async def raises(problem: Exception) -> None:
    raise problem


def test_what_a_step_returns_and_raises_comes_back() -> None:
    async def main() -> list[Event]:
        reports = Reports()
        reports.step(lambda: returns("done"), 1)
        reports.step(lambda: raises(ValueError("bad\nnews")), 2)
        reports.step(lambda: raises(KeyError()), 3)
        reports.step(lambda: 1 / 0, 4)  # fails before there is anything to await
        await asyncio.sleep(1)
        assert len(reports.steps) == 0
        return reports.events

    assert sorted(virtualtime.run(main()), key=lambda e: e.step) == [  # type: ignore[attr-defined]  # all are
        StepFinished(1, "done"),
        StepFinished(2, error="bad news"),
        StepFinished(3, error="KeyError"),
        StepFinished(4, error="division by zero"),
    ]


def test_a_slow_step_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reports = Reports()
        reports.step(lambda: returns(None, after=0.05))
        reports.step(lambda: returns(None, after=0.2))
        await asyncio.sleep(1)

    with caplog.at_level(logging.INFO, logger="pilotage"):
        virtualtime.run(main())
    assert [r.getMessage() for r in caplog.records] == ["plugin Slow took 0.200 s at PreBind (pod uid-1)"]


def test_close_cancels_and_reports_nothing_more() -> None:
    async def main() -> list[Event]:
        reports = Reports()
        reports.step(lambda: returns(None, after=100))
        await asyncio.sleep(1)
        reports.step(lambda: returns(None))  # has not even begun
        await reports.steps.close()
        assert len(reports.steps) == 0
        return reports.events

    assert virtualtime.run(main()) == []


@pytest.mark.parametrize(
    ("asker", "expected"),
    [
        (lambda request: returns(f"{request}!"), Answered(7, "request!")),
        (lambda _: raises(OSError("refused")), AskFailed(7, "refused")),
        (lambda _: returns(None, after=60), AskFailed(7, "no answer in time")),
        (None, AskFailed(7, "nobody is configured to answer")),
    ],
)
def test_questions(asker: Any, expected: Event) -> None:
    async def main() -> list[Event]:
        reports = Reports(asker)
        reports.ask(deadline=1005.0)
        await asyncio.sleep(6)
        return reports.events

    assert virtualtime.run(main()) == [expected]
