"""The engine with plugins that choose victims or fail while deciding, and with somebody outside to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from enginekit import World, bind_submit, binds, notes, only, patches
from pilotage.framework.calls import CallResult, Outcome
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import Plugin, PostFilterResult
from pilotage.framework.status import SUCCESS, Status, error, unresolvable, unschedulable
from pilotage.scheduling.askers import Screening
from pilotage.scheduling.messages import (
    Answered,
    Ask,
    AskFailed,
    Attempt,
)
from pluginkit import ready

# -- post filter ---------------------------------------------------------------------------------


NO_HELP = (
    "no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


class Preempt(Plugin):
    answer: PostFilterResult

    def post_filter(self, cycle: CycleState, pod: Any, view: Any, failures: Any) -> PostFilterResult:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "suffix", "nominated"),
    [
        (PostFilterResult(SUCCESS, "n1"), "", "n1"),
        (PostFilterResult(unschedulable("preemption: no"), ""), f" preemption: no, {NO_HELP}", None),
        (PostFilterResult(unresolvable("not eligible")), " not eligible", None),
        (PostFilterResult(error("broken")), " broken", None),
    ],
)
def test_post_filter_adds_to_the_message_and_may_nominate(
    answer: PostFilterResult, suffix: str, nominated: str | None
) -> None:
    plugin = Preempt()
    plugin.answer = answer
    world = World(plugin)
    world.node("n1")
    world.pod("big", "5")
    effects = world.schedule()
    assert only(effects, Attempt)[0].message == f"0/1 nodes are available: 1 Insufficient cpu.{suffix}"
    assert only(effects, Attempt)[0].result == "unschedulable"
    assert patches(effects)[0].nominated_node == nominated
    assert world.engine.cluster.nominations.node_of("uid-big") == (nominated or "")


# -- plugins that fail while deciding ------------------------------------------------------------


class Raises(Plugin):
    def filter(self, cycle: CycleState, pod: Any, node: Any) -> Status:
        if pod.name == "a":
            raise KeyError("label")
        return SUCCESS


class NoStatus(Plugin):
    def filter(self, cycle: CycleState, pod: Any, node: Any) -> Any:
        return 7 if pod.name == "a" else SUCCESS


class BadReserve(Plugin):
    def reserve(self, cycle: CycleState, pod: Any, node_name: str) -> Any:
        return 7 if pod.name == "a" else SUCCESS

    def unreserve(self, cycle: CycleState, pod: Any, node_name: str) -> None:
        pass


@pytest.mark.parametrize("plugin", [Raises, NoStatus, BadReserve])
def test_a_plugin_that_fails_fails_that_attempt_alone(plugin: type[Plugin]) -> None:
    world = ready(plugin)
    world.pod("b")
    effects = world.schedule()
    assert binds(effects) == [("b", "n1")]
    attempts = {attempt.key: attempt.result for attempt in only(effects, Attempt)}
    assert attempts["ns/a"] == "error"
    assert world.position("a") == "error_backoff"
    assert notes(effects)[0][:2] == ("Warning", "FailedScheduling")
    assert world.engine.statistics().in_flight == 0


# -- asking somebody outside ---------------------------------------------------------------------


class FakeAsker:
    """Asks about every pod; the answer names the nodes to leave out."""

    name = "outside"
    label = 'asking "outside"'
    timeout = 5.0
    is_ignorable = False

    def request(self, pod: Any, node_names: Sequence[str]) -> Any | None:
        return (pod.name, tuple(node_names)) if pod.name.startswith("ask") else None

    def screen(self, response: Any, node_names: Sequence[str]) -> Screening:
        if not isinstance(response, Mapping):
            raise ValueError("not a mapping")
        return Screening(dict(response))


def asking(*nodes: str) -> tuple[World, Ask]:
    world = World(askers={"default-scheduler": [FakeAsker()]})
    for name in nodes or ("n1", "n2"):
        world.node(name)
    world.pod("ask")
    (ask,) = only(world.schedule(), Ask)
    return world, ask


def test_an_answer_resumes_the_decision() -> None:
    world, ask = asking()
    assert ask.request == ("ask", ("n1", "n2"))
    assert ask.deadline == world.now + 5
    assert world.engine.statistics().asks == 1
    assert binds(world.send(Answered(ask.ask, {"n1": "no"}))) == [("ask", "n2")]
    assert world.engine.statistics().asks == 0


def test_other_pods_are_decided_while_one_is_asked_about() -> None:
    world, ask = asking()
    world.pod("b")
    world.pod("c")
    assert [name for name, _ in binds(world.schedule())] == ["b", "c"]
    assert not world.engine.cluster.is_assumed("uid-ask")
    assert binds(world.send(Answered(ask.ask, {})))


def test_a_choice_that_no_longer_fits_starts_over() -> None:
    world, ask = asking()
    world.pod("b", "4", {"spec": {"nodeSelector": None}})
    world.pod("hog", "4", {"spec": {"nodeName": "n2"}})
    effects = world.send(Answered(ask.ask, {"n1": "no"}))  # n2 was the choice, and is full now
    assert binds(effects) == []
    (again,) = only(effects, Ask)
    assert again.request == ("ask", ("n1",))
    assert binds(world.send(Answered(again.ask, {}))) == [("ask", "n1")]


def test_a_pod_that_changed_meanwhile_is_decided_anew() -> None:
    world, ask = asking()
    world.pod("ask", None, {"metadata": {"labels": {"new": "label"}}})
    (again,) = only(world.send(Answered(ask.ask, {})), Ask)
    assert binds(world.send(Answered(again.ask, {}))) != []
    world.engine.check_invariants()


@pytest.mark.parametrize(
    "event", [lambda ask: AskFailed(ask, "refused"), lambda ask: Answered(ask, "gibberish")]
)
def test_no_answer_is_an_error_of_that_attempt(event: Callable[[int], Any]) -> None:
    world, ask = asking()
    effects = world.send(event(ask.ask))
    assert only(effects, Attempt)[0].result == "error"
    assert world.position("ask") == "error_backoff"


def test_an_overdue_ask_fails_by_itself_and_its_late_answer_is_ignored() -> None:
    world, ask = asking()
    assert world.engine.next_wakeup() == ask.deadline
    effects = world.wait(5)
    assert only(effects, Attempt)[0].message == 'asking "outside": no answer in time'
    assert world.send(Answered(ask.ask, {})) == []


def test_a_pod_that_goes_while_it_is_asked_about_is_dropped() -> None:
    world, ask = asking()
    world.delete("ask")
    assert world.engine.statistics().in_flight == 0
    assert world.send(Answered(ask.ask, {})) == []
    world, ask = asking()
    world.bind("ask", "n1")
    assert world.send(Answered(ask.ask, {})) == []
    world.engine.check_invariants()


def test_cancelled_outcome_names_itself() -> None:
    world = ready()
    effects = world.finish(bind_submit(world.schedule()), Outcome(CallResult.CANCELLED))
    text = 'running Bind plugin "DefaultBinder": the binding call was cancelled'
    assert only(effects, Attempt)[0].message == text


def test_whatever_happens_during_the_first_question_may_change_the_answer() -> None:
    """No plugin registered the event, and nobody outside has rejected a pod before."""
    world, ask = asking("n1")
    world.node("n1", "4", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    world.send(Answered(ask.ask, {"n1": "no"}))
    assert world.position("ask") == "backoff"
    assert only(world.schedule(), Ask), "tried at once: nothing else waits"
