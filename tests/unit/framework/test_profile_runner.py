"""The profile: building it, order, Skip, and plugins that misbehave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotage.framework.cycle import CycleState
from pilotage.framework.events import WILDCARD
from pilotage.framework.failures import NodeFailures
from pilotage.framework.plugin import NodeRef, Plugin, PostFilterResult, PreFilterResult
from pilotage.framework.profile import Profile, ProfileError
from pilotage.framework.registry import Registry, RegistryError
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.decide import decide_now
from pilotage.scheduling.verdict import Decision
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView
from statekit import cluster, feasible, node, pod, profile, scores_of


def with_plugins(*plugins: type[Plugin]) -> dict[str, Any]:
    """Arguments for `profile`: the defaults, then these."""
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    return {
        "plugins": (*DEFAULT_MULTIPOINT, *(PluginRef(plugin.name, 10) for plugin in plugins)),
        "registry": registry,
    }


def decide(*plugins: type[Plugin], nodes: int = 2) -> tuple[Any, Decision]:
    state = cluster(*(node(f"n{i}") for i in range(nodes)))
    built = profile(state, **with_plugins(*plugins))
    return state, decide_now(built, state, pod("p"), np.random.default_rng(0))


# Registry and construction


def test_names_are_registered_once() -> None:
    registry = default_registry()
    with pytest.raises(RegistryError, match='plugin "NodeName" is registered already'):
        registry.register("NodeName", Plugin)


def test_the_registry_tells_points() -> None:
    registry = default_registry()
    assert registry.points("NodePorts") == {"preFilter", "filter"}
    assert registry.points("ImageLocality") == {"score"}
    assert registry.points("PrioritySort") == {"queueSort"}
    assert registry.points("DefaultBinder") == {"bind"}
    registry.register("Made", lambda args, handle: object())
    assert registry.points("Made") == set(EXTENSION_POINTS)
    registry.register("Told", lambda args, handle: object(), points=["permit"])
    assert registry.points("Told") == {"permit"}
    with pytest.raises(RegistryError, match='plugin "Nobody" is not registered'):
        registry.points("Nobody")


def settings(**points: tuple[str, ...]) -> ProfileSettings:
    defaults = {"queueSort": ("PrioritySort",), "bind": ("DefaultBinder",), **points}
    refs = {point: tuple(PluginRef(name) for name in names) for point, names in defaults.items()}
    return ProfileSettings("mine", refs)


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ({"filter": ("Nope",)}, 'profile "mine", filter: plugin "Nope" is not registered'),
        ({"queueSort": ()}, "exactly one plugin at queueSort is needed, found none"),
        ({"bind": ()}, "no plugin is enabled at bind"),
        ({"filter": ("NodeName", "NodeName")}, 'plugin "NodeName" is enabled twice at filter'),
    ],
)
def test_profiles_that_cannot_be(points: dict[str, tuple[str, ...]], text: str) -> None:
    with pytest.raises(ProfileError, match=text):
        Profile(settings(**points), default_registry())


def test_two_queue_sorts_are_refused() -> None:
    registry = default_registry()
    registry.register("Other", type("Other", (Plugin,), {"sort_key": lambda self, queued: 0}))
    with pytest.raises(ProfileError, match="found PrioritySort, Other"):
        Profile(settings(queueSort=("PrioritySort", "Other")), registry)


def test_one_class_under_two_names_has_two_instances() -> None:
    registry = default_registry()
    for name in ("A", "B"):
        registry.register(name, Plugin)
    built = Profile(settings(filter=("A", "B")), registry)
    assert (built.plugins["A"].name, built.plugins["B"].name) == ("A", "B")
    assert built.at("filter") == ()  # implements nothing there


def test_a_plugin_that_cannot_be_built_is_named() -> None:
    class Broken(Plugin):
        def __init__(self, args: Any = None, handle: Any = None) -> None:
            raise RuntimeError("no licence")

    with pytest.raises(ProfileError, match='plugin "Broken": RuntimeError: no licence'):
        decide(Broken)


# The convenient form


def test_the_per_node_form_filters_and_scores() -> None:
    class NotFirst(Plugin):
        def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
            return unschedulable("node(s) came first") if node.name == "n0" else SUCCESS

    class ByNumber(Plugin):
        def score(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> int:
            return int(node.name[1:]) * 10

    state, decision = decide(NotFirst, ByNumber, nodes=4)
    assert feasible(state, decision) == {"n1", "n2", "n3"}
    assert scores_of(state, decision, "ByNumber") == {"n1": 100, "n2": 200, "n3": 300}
    assert decision.node == "n3"


def test_a_node_ref_shows_the_node() -> None:
    seen: list[Any] = []

    class Looks(Plugin):
        def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
            seen.append((node.labels, node.allocatable["cpu"], node.requested["cpu"], len(node.pods)))
            return SUCCESS

    state = cluster(node("n1", labels={"a": "b"}), pod("x", {"cpu": 1}, on="n1"))
    decide_now(profile(state, **with_plugins(Looks)), state, pod("p"), np.random.default_rng(0))
    assert seen == [({"a": "b"}, 4000, 1000, 1)]


# Misbehaviour


class RaisesInFilter(Plugin):
    def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
        raise KeyError("boom")


class RaisesInPreFilter(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        raise RuntimeError("boom")


class ErrorInPreFilter(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        return error("lost my state")


class ScoresTooMuch(Plugin):
    def score(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> int:
        return 101


class ScoresHalves(Plugin):
    def score(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> int:
        return 0.5  # type: ignore[return-value]  # on purpose


class AnswersTrue(Plugin):
    def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
        return True  # type: ignore[return-value]  # on purpose


class WrongLength(Plugin):
    def score_nodes(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Any) -> Any:
        return np.zeros(1, np.int64)


class RaisesInPreScore(Plugin):
    def pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Any) -> Status:
        raise ValueError


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (RaisesInFilter, "running Filter plugin \"RaisesInFilter\": KeyError: 'boom'"),
        (RaisesInPreFilter, 'running PreFilter plugin "RaisesInPreFilter": RuntimeError: boom'),
        (ErrorInPreFilter, 'running PreFilter plugin "ErrorInPreFilter": lost my state'),
        (ScoresTooMuch, 'running Score plugin "ScoresTooMuch": score 101 of node n0 is not in 0..100'),
        (ScoresHalves, 'running Score plugin "ScoresHalves": score of node n0 is 0.5, not a whole number'),
        (AnswersTrue, 'running Filter plugin "AnswersTrue": it answered True, not a Status'),
        (WrongLength, 'running Score plugin "WrongLength": 1 scores for 2 nodes'),
        (RaisesInPreScore, 'running PreScore plugin "RaisesInPreScore": ValueError'),
    ],
)
def test_a_plugin_that_misbehaves_fails_the_attempt_only(plugin: type[Plugin], message: str) -> None:
    _, decision = decide(plugin)
    assert decision.status.code is Code.ERROR
    assert decision.status.plugin == plugin.name
    assert decision.message == message
    assert not decision.is_scheduled
    assert not decision.unschedulable_plugins
    assert decision.failures is None


# PreFilter


class Unsure(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        return unschedulable("not now")


class Sure(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        return unresolvable("never")


class NeverRun(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        raise AssertionError("must not run")


def test_unschedulable_lets_the_others_run_and_unresolvable_ends() -> None:
    _, decision = decide(Unsure, Sure, NeverRun)
    assert decision.message == "0/2 nodes are available: never."
    assert decision.unschedulable_plugins == {"Unsure", "Sure"}
    assert decision.failures is not None
    assert decision.failures.code(0) is Code.UNRESOLVABLE
    assert decision.failures.rows_with(Code.UNRESOLVABLE).tolist() == [0, 1]


class OnlyFirst(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset({"n0"}))


class OnlySecond(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset({"n1"}))


class OnlyNothing(Plugin):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset())


def test_node_sets_are_intersected() -> None:
    _, decision = decide(OnlyFirst)
    assert (decision.node, decision.evaluated) == ("n0", 1)
    _, decision = decide(OnlyFirst, OnlySecond)
    assert decision.message == (
        "0/2 nodes are available: node(s) didn't satisfy plugin(s) [OnlyFirst OnlySecond] simultaneously."
    )
    assert decision.unschedulable_plugins == {"OnlyFirst", "OnlySecond"}
    _, decision = decide(OnlyNothing)
    assert decision.message == "0/2 nodes are available: node(s) didn't satisfy plugin OnlyNothing."


def test_skip_leaves_the_filter_and_the_score_out() -> None:
    class Skips(Plugin):
        def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
            return SKIP

        def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
            raise AssertionError("skipped")

        def pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Any) -> Status:
            return SKIP

        def score(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> int:
            raise AssertionError("skipped")

    _, decision = decide(Skips)
    assert decision.is_scheduled
    assert decision.scores is not None
    assert "Skips" not in decision.scores.by_plugin


# Queue, PostFilter, Reserve


def test_the_plugin_that_gated_last_is_asked_first() -> None:
    asked: list[str] = []

    def gate(name: str) -> type[Plugin]:
        def pre_enqueue(_self: Plugin, _pod: PodInfo) -> Status:
            asked.append(name)
            return unresolvable(f"by {name}")

        return type(name, (Plugin,), {"pre_enqueue": pre_enqueue})

    state = cluster()
    built = profile(state, **with_plugins(gate("GateA"), gate("GateB")))
    assert built.run_pre_enqueue(pod("p"), first="GateB").plugin == "GateB"
    assert built.run_pre_enqueue(pod("p")).plugin == "GateA"
    assert asked == ["GateB", "GateA"]


def post_filter(name: str, status: Status, nominated: str | None = None) -> type[Plugin]:
    def method(*_: Any) -> PostFilterResult:
        return PostFilterResult(status, nominated)

    return type(name, (Plugin,), {"post_filter": method})


@pytest.mark.parametrize(
    ("plugins", "code", "reasons", "nominated"),
    [
        ([], Code.UNSCHEDULABLE, (), None),
        (
            [post_filter("A", unschedulable("a")), post_filter("B", unschedulable("b"), "")],
            Code.UNSCHEDULABLE,
            ("a", "b"),
            "",
        ),
        (
            [post_filter("A", unschedulable("a")), post_filter("B", SUCCESS, "n1")],
            Code.SUCCESS,
            (),
            "n1",
        ),
        (
            [post_filter("A", unresolvable("a")), post_filter("B", SUCCESS, "n1")],
            Code.UNRESOLVABLE,
            ("a",),
            None,
        ),
    ],
)
def test_post_filters_run_until_one_settles_it(
    plugins: list[type[Plugin]], code: Code, reasons: tuple[str, ...], nominated: str | None
) -> None:
    state = cluster()
    arguments = with_plugins(*plugins)
    own = {plugin.name for plugin in plugins} | {"PrioritySort", "DefaultBinder"}
    arguments["plugins"] = [ref for ref in arguments["plugins"] if ref.name in own]
    built = profile(state, **arguments)
    failures = NodeFailures(state.nodes, pod("p"))
    result = built.run_post_filter(CycleState(), pod("p"), state.nodes, failures)
    assert (result.status.code, result.status.reasons, result.nominated_node) == (code, reasons, nominated)


def test_unreserve_runs_in_reverse_whatever_fails() -> None:
    undone: list[str] = []

    def reserving(name: str, *, fails: bool = False) -> type[Plugin]:
        def unreserve(*_: Any) -> None:
            undone.append(name)
            if fails:
                raise RuntimeError("cannot undo")

        body = {"reserve": lambda *_: unschedulable("taken") if fails else None, "unreserve": unreserve}
        return type(name, (Plugin,), body)

    plugins = with_plugins(reserving("One"), reserving("Two", fails=True), reserving("Three"))
    built = profile(cluster(), **plugins)
    status = built.run_reserve(CycleState(), pod("p"), "n1")
    assert (status.code, status.plugin, status.reasons) == (Code.UNSCHEDULABLE, "Two", ("taken",))
    (failure,) = built.run_unreserve(CycleState(), pod("p"), "n1")
    assert undone == ["Three", "Two", "One"]
    assert failure.message == 'running Unreserve plugin "Two": RuntimeError: cannot undo'


def test_pre_flight_tells_whether_pre_bind_has_work() -> None:
    idle = type("Idle", (Plugin,), {"pre_bind": lambda *_: SUCCESS, "pre_bind_pre_flight": lambda *_: SKIP})
    busy = type("Busy", (Plugin,), {"pre_bind": lambda *_: SUCCESS})
    cycle = CycleState()
    assert profile(cluster(), **with_plugins(idle)).run_pre_bind_pre_flight(cycle, pod("p"), "n1").is_skip
    assert cycle.skip_pre_bind == {"Idle", "VolumeBinding"}
    built = profile(cluster(), **with_plugins(idle, busy))
    assert built.run_pre_bind_pre_flight(CycleState(), pod("p"), "n1").is_success


def test_a_plugin_that_registers_nothing_is_woken_by_everything() -> None:
    built = profile(cluster(), **with_plugins(RaisesInFilter))
    (registration,) = built.registrations()["RaisesInFilter"]
    assert registration.event == WILDCARD


def test_registries_are_separate() -> None:
    first, second = Registry(), Registry()
    first.register("A", Plugin)
    assert "A" in first
    assert "A" not in second
