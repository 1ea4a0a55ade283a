"""Plugins that answer nonsense, at every extension point: their pod's attempt pays, the engine lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from enginekit import World
from pilotage.framework.calls import BindPod
from pilotage.framework.events import WILDCARD, EventRegistration
from pilotage.framework.plugin import FilterResult, PermitResult, Plugin, PostFilterResult, PreFilterResult
from pilotage.framework.status import SUCCESS, Code, Status, unschedulable, wait
from pilotage.scheduling.messages import RunStep, StepFinished, Submit


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raises(fault: Exception) -> Callable[[], Any]:
    def answer() -> Any:
        raise fault

    return answer


def _rows(codes: Any, reasons: Any) -> FilterResult:
    return FilterResult(codes, reasons)


ANSWERS: dict[str, Callable[[], Any]] = {
    "raises": _raises(ValueError("broken")),
    "raises-unprintable": _raises(UnprintableError()),
    "none": lambda: None,
    "true": lambda: True,
    "number": lambda: 7,
    "text": lambda: "no",
    "list": lambda: [3],
    "unprintable": Unprintable,
    "array-0d": lambda: np.zeros(()),
    "array-3": lambda: np.zeros(3, np.int64),
    "huge": lambda: 10**400,
    "nan": lambda: float("nan"),
    "status-of-text": lambda: Status(Code.UNSCHEDULABLE, "no room"),  # type: ignore[arg-type]
    "status-of-numbers": lambda: Status(Code.ERROR, (3, None)),  # type: ignore[arg-type]
    "status-77": lambda: Status(77),  # type: ignore[arg-type]
    "status-none": lambda: Status(None),  # type: ignore[arg-type]
    "status-wait": wait,
    "status-skip": lambda: Status(Code.SKIP),
    "status-pending": lambda: Status(Code.PENDING, ("later",)),
    "prefilter-none": lambda: PreFilterResult(None),  # type: ignore[arg-type]
    "prefilter-text": lambda: PreFilterResult(SUCCESS, "n1"),  # type: ignore[arg-type]
    "prefilter-number": lambda: PreFilterResult(SUCCESS, 5),  # type: ignore[arg-type]
    "prefilter-unhashable": lambda: PreFilterResult(SUCCESS, [[]]),  # type: ignore[arg-type]
    "filter-none": lambda: _rows(None, None),
    "filter-lists": lambda: _rows([0], [0]),
    "filter-0d": lambda: _rows(np.zeros((), np.int8), np.zeros((), np.uint64)),
    "filter-77": lambda: _rows(np.full(2, 77, np.int8), np.zeros(2, np.uint64)),
    "filter-short": lambda: _rows(np.full(2, 2, np.int8), np.zeros(1, np.uint64)),
    "filter-no-reasons": lambda: _rows(np.full(2, 2, np.int8), None),
    "filter-floats": lambda: _rows(np.full(2, 2.0), np.zeros(2)),
    "postfilter-none": lambda: PostFilterResult(None),  # type: ignore[arg-type]
    "postfilter-number": lambda: PostFilterResult(SUCCESS, 5),  # type: ignore[arg-type]
    "postfilter-unknown-node": lambda: PostFilterResult(unschedulable("a"), "nowhere"),
    "permit-none": lambda: PermitResult(None),  # type: ignore[arg-type]
    "permit-text": lambda: PermitResult(wait(), "soon"),  # type: ignore[arg-type]
    "permit-no-time": lambda: PermitResult(wait(), None),  # type: ignore[arg-type]
    "permit-nan": lambda: PermitResult(wait(), float("nan")),
    "permit-negative": lambda: PermitResult(wait(), -5),
    "permit-infinite": lambda: PermitResult(wait(), float("inf")),
    "permit-huge": lambda: PermitResult(wait(), 10**400),
    "call-on-nothing": lambda: BindPod(None, "n1"),  # type: ignore[arg-type]
}

# What a plugin needs beside the method under attack, so that it is reached.
BESIDE: dict[str, dict[str, Any]] = {
    "pre_enqueue": {},
    "sort_key": {},
    "pre_filter": {},
    "filter": {},
    "filter_nodes": {"reason_texts": lambda *_: ("r",)},
    "reason_texts": {
        "filter_nodes": lambda _s, _c, _p, _v, rows: FilterResult(
            np.full(rows.size, 2, np.int8), np.ones(rows.size, np.uint64)
        )
    },
    "post_filter": {"filter": lambda *_: unschedulable("no")},
    "pre_score": {},
    "score": {},
    "score_nodes": {},
    "normalize": {"score": lambda *_: 1},
    "reserve": {"unreserve": lambda *_: None},
    "unreserve": {"reserve": lambda *_: unschedulable("no")},
    "permit": {},
    "pre_bind_pre_flight": {"pre_bind": lambda *_: SUCCESS},
    "pre_bind": {},
    "bind": {},
    "post_bind": {},
    "hint": {"filter": lambda *_: unschedulable("no")},
}
ASYNC_POINTS = ("permit", "pre_bind", "bind", "post_bind")


def _plugin(point: str, answer: Callable[[], Any], *, is_async: bool = False) -> type[Plugin]:
    async def later(*_: Any) -> Any:
        return answer()

    method = later if is_async else lambda *_: answer()
    methods = {**BESIDE[point], point: method}
    if point == "hint":
        methods["events_to_register"] = lambda _: (EventRegistration(WILDCARD, lambda *_: answer()),)
    return type("Attacker", (Plugin,), methods)


def _live(world: World) -> None:
    """Two minutes of a busy cluster: every effect is answered, and every timer runs."""
    for turn in range(12):
        effects = [*world.effects, *world.schedule()]
        world.effects.clear()
        while effects:
            _answer(world, effects)
            world.engine.check_invariants()
            effects, world.effects = [*world.effects, *world.schedule()], []
        world.node("n1", "4", {"metadata": {"labels": {"turn": str(turn)}}})
        world.wait(10)
        world.engine.check_invariants()


def _answer(world: World, effects: Sequence[Any]) -> None:
    for effect in effects:
        if isinstance(effect, RunStep):
            world.send(asyncio.run(_run(effect)))
        elif isinstance(effect, Submit) and effect.awaited:
            world.finish(effect)


async def _run(step: RunStep) -> StepFinished:
    try:
        return StepFinished(step.step, await step.start())
    except Exception as fault:
        return StepFinished(step.step, error=type(fault).__name__)


def _world(plugin: type[Plugin], point: str) -> World:
    if point == "sort_key":
        return World(type("PrioritySort", (plugin,), {"name": "Sorter"}), defaults=False, sort="Sorter")
    return World(plugin)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("point", [point for point in BESIDE if point != "sort_key"])
def test_nonsense_costs_an_attempt_and_never_the_engine(point: str, answer: str) -> None:
    world = World(_plugin(point, ANSWERS[answer]))
    _attack(world)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("point", ASYNC_POINTS)
def test_nonsense_from_an_async_step_too(point: str, answer: str) -> None:
    world = World(_plugin(point, ANSWERS[answer], is_async=True))
    _attack(world)


def _attack(world: World) -> None:
    world.node("n1")
    world.node("n2")
    world.pod("a")
    world.pod("big", "100")
    world.pod("nominated", "1", {"status": {"nominatedNodeName": "n1"}})
    _live(world)
    world.delete("a")
    world.delete("big")
    world.delete("nominated")
    assert world.lengths() == (0, 0, 0, 0)
    world.engine.check_invariants()
