"""Deferred resizes against a plain reading of the rules, on random nodes (R4, R5, R7, R11)."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from enginekit import World
from pilotage.scheduling.deferred_cycle import ResizeVerdict, decide_resize
from resizekit import DEFERRED, has, runs, terminates


class Beside(NamedTuple):
    """A pod on the node: milli-CPU that it wants, has allocated and really has."""

    name: str
    priority: int
    wants: int
    allocated: int
    actual: int
    is_leaving: bool

    @property
    def held(self) -> int:
        return max(self.allocated, self.actual)


AMOUNTS = st.integers(0, 12).map(lambda n: n * 500)


@st.composite
def nodes(draw: Any) -> tuple[int, int, list[Beside]]:
    """milli-CPU of the node, what the pod wants, and the pods beside it."""
    count = draw(st.integers(0, 6))
    pods = [
        Beside(
            f"p{index}",
            draw(st.sampled_from([0, 0, 1, 5, 10, 20])),
            draw(AMOUNTS),
            draw(AMOUNTS),
            draw(AMOUNTS),
            draw(st.sampled_from([False, False, False, True])),
        )
        for index in range(count)
    ]
    return draw(st.integers(1, 20)) * 500, draw(st.integers(1, 16)) * 500, pods


def verdict_of(offered: int, wants: int, pods: list[Beside]) -> ResizeVerdict:
    world = World()
    world.node("n1", f"{offered}m")
    for pod in pods:
        bound = {"spec": {"nodeName": "n1", "priority": pod.priority}}
        status = has(f"{pod.allocated}m", actual=f"{pod.actual}m")
        world.pod(pod.name, f"{pod.wants}m", bound, status)
        if pod.is_leaving:
            terminates(world, pod.name)
    runs(world, "r", f"{wants}m", DEFERRED, allocated=f"{min(wants, 500)}m", priority=10)
    info = world.engine.cluster.pod("uid-r")
    assert info is not None
    return decide_resize(world.engine.profiles["default-scheduler"], world.engine.cluster, info)


def expected(offered: int, wants: int, pods: list[Beside]) -> tuple[str, list[str]]:
    """Outcome and victims, by hand."""
    free = offered - wants
    if wants > offered:
        return "rejected", []
    if sum(pod.held for pod in pods) <= free:
        return "fits", []
    staying = [pod for pod in pods if not pod.is_leaving]
    if len(staying) < len(pods) and sum(pod.held for pod in staying) <= free:
        return "waits", []
    lower = [pod for pod in staying if pod.priority < 10]
    used = sum(pod.held for pod in staying if pod.priority >= 10)
    if used > free or not lower:
        return "rejected", []
    # important ones come back first; of equals without a start time the last to arrive
    victims = []
    for pod in sorted(lower, key=lambda pod: (-pod.priority, -int(pod.name[1:]))):
        if used + pod.held <= free:
            used += pod.held
        else:
            victims.append(pod.name)
    return "preempts", sorted(victims)


@given(nodes())
def test_outcome_and_victims(case: tuple[int, int, list[Beside]]) -> None:
    verdict = verdict_of(*case)
    units = verdict.preemption.units if verdict.preemption is not None else ()
    victims = sorted(pod.name for unit in units for pod in unit.pods)
    assert (verdict.outcome.value, victims) == expected(*case)
