"""The engine with the default plugins: informer facts, bind outcomes, failure handling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from enginekit import REFUSED, World, bind_submit, binds, notes, only, patches
from pilotage.framework.calls import CallResult, Outcome
from pilotage.scheduling.messages import Attempt, Cancel


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.engine.check_invariants()


# -- success -------------------------------------------------------------------------------------


def test_a_pod_is_bound_and_said_to_be(world: World) -> None:
    world.node("n1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    assert world.engine.cluster.is_assumed("uid-a")
    assert world.engine.statistics().binding == 1
    effects = world.finish(submit)
    assert notes(effects) == [("Normal", "Scheduled", "Successfully assigned ns/a to n1")]
    (attempt,) = only(effects, Attempt)
    assert (attempt.result, attempt.node, attempt.attempts) == ("scheduled", "n1", 1)
    world.bind("a", "n1")
    assert not world.engine.cluster.is_assumed("uid-a")
    assert world.engine.statistics().assumed_pods == 0
    assert "Successfully assigned ns/a to n1" in world.story("a")


def test_the_informer_may_confirm_before_the_call_ends(world: World) -> None:
    world.node("n1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.bind("a", "n1")
    assert notes(world.finish(submit))[0][1] == "Scheduled"


def test_every_effect_carries_the_number_of_its_stimulus(world: World) -> None:
    world.node("n1")
    first = world.pod("a")
    second = world.schedule()
    assert {effect.stimulus for effect in first} == {2}
    assert {effect.stimulus for effect in second} == {3}


def test_a_slice_decides_no_more_than_its_limit(world: World) -> None:
    world.node("n1")
    for name in "abc":
        world.pod(name)
    assert binds(world.schedule(2)) == [("a", "n1"), ("b", "n1")]
    assert world.engine.has_work
    assert binds(world.schedule(2)) == [("c", "n1")]
    assert not world.engine.has_work


# -- unschedulable -------------------------------------------------------------------------------


NO_HELP = (
    "no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def test_a_pod_that_does_not_fit_is_told_why(world: World) -> None:
    world.node("n1")
    world.pod("big", "5")
    effects = world.schedule()
    message = "0/1 nodes are available: 1 Insufficient cpu. " + NO_HELP
    assert notes(effects) == [("Warning", "FailedScheduling", message)]
    (patch,) = patches(effects)
    (condition,) = patch.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == message
    assert condition.observed_generation == 1
    assert condition.last_transition_time == "1970-01-01T00:16:40Z"
    assert patch.nominated_node is None
    assert world.position("big") == "unschedulable"


def test_no_nodes_wakes_at_the_first_node(world: World) -> None:
    world.pod("a")
    effects = world.schedule()
    assert notes(effects) == [("Warning", "FailedScheduling", "no nodes available to schedule pods")]
    assert world.position("a") == "unschedulable"
    world.node("n1")
    assert binds(world.schedule()) == [("a", "n1")]


def test_no_patch_when_the_condition_is_shown_already(world: World) -> None:
    world.node("n1")
    world.pod("big", "5")
    (patch,) = patches(world.schedule())
    (condition,) = patch.conditions
    shown = {
        "type": "PodScheduled",
        "status": "False",
        "reason": condition.reason,
        "message": condition.message,
    }
    world.pod("big", None, {"status": {"conditions": [shown]}})
    world.wait(400)
    effects = world.schedule()
    assert only(effects, Attempt)[0].attempts == 2
    assert patches(effects) == []
    assert len(notes(effects)) == 1


def test_a_patch_on_its_way_is_overtaken_by_going_back_to_what_is_shown(world: World) -> None:
    shown = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    shown["message"] = "0/1 nodes are available: 1 Insufficient cpu. " + NO_HELP
    world.node("n1")
    world.pod("big", "5", {"status": {"conditions": [shown]}})
    assert patches(world.schedule()) == []
    world.node("n1", "6", {"spec": {"unschedulable": True}})
    world.now += 60
    (other,) = patches(world.schedule())
    assert other.conditions[0].message != shown["message"]
    world.node("n1", "4", {"spec": {"unschedulable": False}})
    world.now += 60
    (back,) = patches(world.schedule())
    assert back.conditions[0].message == shown["message"]


def test_a7_the_patch_is_computed_against_the_newest_object(world: World) -> None:
    shown = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "x",
        "message": "y",
        "lastTransitionTime": "T1",
    }
    world.node("n1")
    world.pod("big", "5", {"spec": {"preemptionPolicy": "Never"}})
    world.pod("big", None, {"metadata": {"generation": 7}})
    world.pod("big", None, {"status": {"nominatedNodeName": "n1", "conditions": [shown]}})
    (patch,) = patches(world.schedule())
    assert patch.nominated_node is None  # kept: the cycle said nothing about it
    (condition,) = patch.conditions
    assert condition.last_transition_time == "T1"
    assert condition.observed_generation == 7
    assert world.engine.cluster.nominations.node_of("uid-big") == "n1"


# -- bind outcomes -------------------------------------------------------------------------------


def test_a_refused_bind_backs_off_as_an_error_and_gives_its_room_back(world: World) -> None:
    world.node("n1", pods="1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.pod("b")
    world.schedule()
    assert world.position("b") == "unschedulable"
    world.now += 60
    effects = world.finish(submit, REFUSED)
    assert world.position("a") == "error_backoff"
    assert world.position("b") == "active"
    (condition,) = patches(effects)[0].conditions
    assert condition.reason == "SchedulerError"
    assert condition.message == 'running Bind plugin "DefaultBinder": refused'
    assert binds(world.schedule()) == [("b", "n1")]


def test_d8_an_assumed_pod_that_is_deleted_gives_its_room_back(world: World) -> None:
    world.node("n1", pods="1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.pod("b")
    world.schedule()
    world.now += 60
    effects = world.delete("a")
    assert only(effects, Cancel)[0].uid == "uid-a"
    assert world.position("b") == "active"
    assert world.finish(submit, Outcome(CallResult.CANCELLED, "gone")) == []
    assert binds(world.schedule()) == [("b", "n1")]


def test_d8_a_host_port_of_a_failed_bind_is_free_again(world: World) -> None:
    port = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}}
    world.node("n1")
    world.pod("a", None, port)
    submit = bind_submit(world.schedule())
    world.pod("b", None, port)
    world.schedule()
    assert world.position("b") == "unschedulable"
    world.now += 60
    world.finish(submit, REFUSED)
    assert world.position("b") == "active"


def test_f7_a_failed_bind_that_took_effect_is_a_success(world: World) -> None:
    world.node("n1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.bind("a", "n1")
    effects = world.finish(submit, Outcome(CallResult.FAILED, "transport closing"))
    assert notes(effects)[0][1] == "Scheduled"
    assert world.position("a") == "absent"
    assert world.engine.statistics().binding == 0


def test_f7_a_bind_that_truly_failed_is_forgotten_and_tried_again(world: World) -> None:
    world.node("n1")
    world.pod("a")
    world.finish(bind_submit(world.schedule()), Outcome(CallResult.FAILED, "transport closing"))
    world.wait(3.0)
    submit = bind_submit(world.schedule())
    world.finish(submit)
    world.bind("a", "n1")
    assert world.engine.statistics().assumed_pods == 0


def test_a_pod_bound_elsewhere_while_our_bind_is_out_is_accepted(world: World) -> None:
    world.node("n1")
    world.pod("a")
    submit = bind_submit(world.schedule())
    world.node("n2")
    world.bind("a", "n2")
    conflict = Outcome(CallResult.FAILED, "already assigned", 409, "Conflict")
    effects = world.finish(submit, conflict)
    assert notes(effects) == []
    assert patches(effects) == []
    assert world.position("a") == "absent"
    assert world.engine.cluster.node_of("uid-a") == "n2"


@pytest.mark.parametrize(
    "result", [CallResult.CANCELLED, CallResult.OVERWRITTEN, CallResult.DROPPED, CallResult.SKIPPED]
)
def test_a_bind_that_was_never_sent_is_no_success(world: World, result: CallResult) -> None:
    world.node("n1")
    world.pod("a")
    world.finish(bind_submit(world.schedule()), Outcome(result))
    assert world.position("a") == "error_backoff"
    assert not world.engine.cluster.is_assumed("uid-a")


def test_d10_attempts_against_a_sick_api_server_are_few(world: World) -> None:
    world.node("n1")
    world.pod("a")
    start, attempts = world.now, []
    while world.now < start + 10:
        effects = world.schedule()
        if binds(effects):
            attempts.append(world.now - start)
            world.finish(bind_submit(effects), Outcome(CallResult.FAILED, "unavailable", 503))
        world.wait(0.5)
    assert len(attempts) <= 4
    assert attempts[0] == 0
    assert all(later - earlier >= 1 for earlier, later in pairwise(attempts))
