"""What is kept per pod signature, and when a plugin is asked again."""

from __future__ import annotations

from typing import Any

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.profile import Profile
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.framework.vector import all_pass
from pilotage.plugins import default_registry
from pilotage.scheduling.decide import decide_now
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows
from statekit import FakeHandle, cluster, node, pod


class Counting(Plugin):
    depends_on = DependsOn.ROW

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.asked: list[list[int]] = []

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        self.asked.append(rows.tolist())
        return all_pass(rows)

    def reason_texts(self, *_: Any) -> list[str]:
        return []


class CountingAlways(Counting):
    depends_on = DependsOn.EXTERNAL


def build(plugin: type[Counting], state: Any) -> tuple[Profile, Any]:
    registry = default_registry()
    registry.register(plugin.name, plugin)
    names = ("PrioritySort", plugin.name, "DefaultBinder")
    points = dict.fromkeys(EXTENSION_POINTS, tuple(PluginRef(name) for name in names))
    built = Profile(ProfileSettings("s", points), registry, FakeHandle(state))
    return built, built.plugins[plugin.name]


def replica(number: int) -> PodInfo:
    return pod(f"p{number}", {"cpu": "1m"}, labels={"app": "web"})


def test_only_rows_that_changed_are_asked_again() -> None:
    state = cluster(node("n0"), node("n1"), node("n2"))
    built, plugin = build(Counting, state)
    rng = np.random.default_rng(0)
    for number in range(4):
        info = replica(number)
        decision = decide_now(built, state, info, rng)
        if number >= 2:
            state.assume(info, decision.node)
            changed = decision.row
    # The first is one of a kind so far, the second fills the place, the third finds everything there.
    assert plugin.asked[:2] == [[0, 1, 2], [0, 1, 2]]
    assert len(plugin.asked) == 3
    decide_now(built, state, replica(9), rng)
    assert plugin.asked[-1] == [changed]


def test_plugins_that_read_more_than_the_row_are_asked_always() -> None:
    state = cluster(node("n0"), node("n1"))
    built, plugin = build(CountingAlways, state)
    for number in range(4):
        decide_now(built, state, replica(number), np.random.default_rng(0))
    assert len(plugin.asked) == 4


def test_another_table_starts_afresh() -> None:
    one, two = cluster(node("a"), node("b")), cluster(node("c"), node("d"))
    built, plugin = build(Counting, one)
    for state in (one, one, one, two):
        decide_now(built, state, replica(1), np.random.default_rng(0))
    assert plugin.asked[-1] == [0, 1]
    assert len(plugin.asked) == 3
