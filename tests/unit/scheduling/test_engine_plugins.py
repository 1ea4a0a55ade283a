"""The engine with tiny plugins at each point: permits, async steps, rollback."""

from __future__ import annotations

from typing import Any

import pytest

from enginekit import REFUSED, World, bind_submit, binds, notes, only, patches
from pilotage.framework.calls import BindPod, Call, ObjectKey
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import PermitResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Status, error, pending, unschedulable, wait
from pilotage.scheduling.messages import (
    Attempt,
    Log,
    PermitResolved,
    RunStep,
    StepFinished,
    Submit,
)
from pluginkit import Journal, later, ready, run

# -- order, rollback -----------------------------------------------------------------------------


def test_points_run_in_order_and_the_way_back_is_reversed() -> None:
    log: list[str] = []
    world = ready(Journal("One", log), Journal("Two", log))
    submit = bind_submit(world.schedule())
    assert log == [
        f"{name}.{point}"
        for point in ("reserve", "permit", "pre_flight", "pre_bind", "bind")
        for name in ("One", "Two")
    ]
    log.clear()
    world.finish(submit, REFUSED)
    assert log == ["Two.unreserve", "One.unreserve"]
    world.engine.check_invariants()


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind", "bind"])
@pytest.mark.parametrize(
    "answer", [unschedulable("no"), error("no"), ValueError("no"), pending("no"), "text"]
)
def test_whatever_fails_the_pod_is_forgotten_and_told(point: str, answer: Any) -> None:
    log: list[str] = []
    world = ready(Journal("One", log, **{point: answer}), Journal("Two", log))
    effects = world.schedule()
    assert binds(effects) == []
    assert log[-2:] == ["Two.unreserve", "One.unreserve"]
    assert not world.engine.cluster.is_assumed("uid-a")
    (attempt,) = only(effects, Attempt)
    is_rejection = isinstance(answer, Status) and answer.is_rejection
    assert attempt.result == ("unschedulable" if is_rejection else "error")
    assert world.position("a") == ("error_backoff" if not is_rejection else _home(point))
    if is_rejection:
        assert attempt.message == "0/1 nodes are available: 1 no."
    else:
        names = {"reserve": "Reserve", "permit": "Permit", "pre_bind": "PreBind", "bind": "Bind"}
        assert f"running {names[point]} plugin" in attempt.message
    assert patches(effects)[0].conditions[0].reason == ("Unschedulable" if is_rejection else "SchedulerError")
    world.engine.check_invariants()


def _home(point: str) -> str:
    """After WaitOnPermit the pod is not in flight, nobody knows what it missed: it waits its backoff out."""
    return "unschedulable" if point in ("reserve", "permit") else "error_backoff"


def test_d2_an_error_after_a_rejection_needs_no_event() -> None:
    world = World(Journal("Y", reserve=RuntimeError("409")))
    world.node("n1")
    world.pod("a", "1", {"spec": {"nodeSelector": {"ok": "yes"}}})
    world.schedule()
    assert world.position("a") == "unschedulable"
    world.now += 60
    world.node("n1", "4", {"metadata": {"labels": {"ok": "yes"}}})
    world.schedule()
    assert world.position("a") == "error_backoff"
    world.wait(2)
    assert world.position("a") == "active"


def test_unreserve_that_raises_is_logged_and_does_not_stop_the_others() -> None:
    log: list[str] = []
    world = ready(Journal("One", log), Journal("Two", log, unreserve=ValueError("odd"), pre_bind=error("no")))
    effects = world.schedule()
    assert log[-2:] == ["Two.unreserve", "One.unreserve"]
    assert any("odd" in entry.text for entry in only(effects, Log))


def test_a_long_message_is_cut_in_the_note_but_not_in_the_condition() -> None:
    reason = "é" * 900
    effects = ready(Journal(reserve=unschedulable(reason))).schedule()
    message = patches(effects)[0].conditions[0].message
    assert message == f"0/1 nodes are available: 1 {reason}."
    note = notes(effects)[0][2]
    assert note.endswith("é ...")
    assert 1022 <= len(note.encode()) <= 1024


# -- permit --------------------------------------------------------------------------------------


def waits(seconds: float) -> PermitResult:
    return PermitResult(wait(), seconds)


def test_a_waiting_pod_is_nominated_then_allowed_and_bound() -> None:
    world = ready(Journal(permit=waits(20)))
    effects = world.schedule()
    assert [patch.nominated_node for patch in patches(effects)] == ["n1"]
    assert world.engine.statistics().waiting_permits == 1
    assert world.engine.statistics().in_flight == 1
    assert world.engine.next_wakeup() == world.now + 20
    assert world.send(PermitResolved("uid-a", "Other", True)) == []
    effects = world.send(PermitResolved("uid-a", "Journal", True))
    assert binds(effects) == [("a", "n1")]
    assert world.engine.statistics().in_flight == 0


def test_every_permit_plugin_that_waits_has_to_allow() -> None:
    world = ready(Journal("One", permit=waits(20)), Journal("Two", permit=waits(30)))
    world.schedule()
    assert binds(world.send(PermitResolved("uid-a", "Two", True))) == []
    assert binds(world.send(PermitResolved("uid-a", "One", True))) == [("a", "n1")]


def test_d8_permit_timeout_gives_the_room_back_and_does_not_wake_the_pod_itself() -> None:
    world = ready(Journal(permit=waits(20)))
    world.node("n1", pods="1")
    world.schedule()
    world.pod("b")
    world.schedule()
    assert world.position("b") == "unschedulable"
    effects = world.wait(20)
    (attempt,) = only(effects, Attempt)
    reason = "rejected due to timeout after waiting 20s at plugin Journal"
    assert attempt.message == f"0/1 nodes are available: 1 {reason}."
    assert world.position("a") == "unschedulable"
    assert world.position("b") == "active"
    assert [patch.nominated_node for patch in patches(effects)] == [""]  # the expectation is withdrawn


def test_a_rejected_permit_tells_the_reason() -> None:
    world = ready(Journal(permit=waits(20)))
    world.schedule()
    effects = world.send(PermitResolved("uid-a", "Journal", False, "quota is used up"))
    assert only(effects, Attempt)[0].message == "0/1 nodes are available: 1 quota is used up."


@pytest.mark.parametrize("permit", [waits(1e9), wait()], ids=["an age", "no time at all"])
def test_a_permit_waits_fifteen_minutes_at_most(permit: PermitResult | Status) -> None:
    world = ready(Journal(permit=permit))
    world.schedule()
    world.wait(899)
    assert world.engine.statistics().waiting_permits == 1
    effects = world.wait(1)
    assert "after waiting 15m0s" in only(effects, Attempt)[0].message


def test_b2_a_waiting_pod_that_is_deleted_ends_quietly() -> None:
    log: list[str] = []
    world = ready(Journal(log=log, permit=waits(600)))
    world.node("n1", pods="1")
    world.schedule()
    world.pod("b")
    world.schedule()
    world.now += 60
    effects = world.delete("a")
    assert log[-1] == "Journal.unreserve"
    assert notes(effects) == []
    assert patches(effects) == []
    assert world.position("b") == "active"
    assert world.engine.statistics().binding == 0


def test_a_waiting_pod_that_is_bound_by_hand_is_undone_quietly() -> None:
    log: list[str] = []
    world = ready(Journal(log=log, permit=waits(600)))
    world.schedule()
    world.node("n2")
    effects = world.bind("a", "n2")
    assert log[-1] == "Journal.unreserve"
    assert patches(effects) == []
    world.engine.check_invariants()


class Gang(Plugin):
    """Lets nobody pass before two are there: one plugin parks and resolves other pods."""

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.members: list[str] = []

    def permit(self, cycle: CycleState, pod: Any, node_name: str) -> PermitResult:
        self.members.append(pod.uid)
        if len(self.members) < 2:
            return waits(60)
        self.handle.resolve_permit(self.members[0], self.name, True)  # type: ignore[attr-defined]
        return PermitResult(SUCCESS)


def test_a_plugin_may_allow_pods_that_it_parked() -> None:
    world = ready(Gang)
    world.pod("b")
    assert sorted(binds(world.schedule())) == [("a", "n1"), ("b", "n1")]


class Waker(Plugin):
    def reserve(self, cycle: CycleState, pod: Any, node_name: str) -> Status:
        if pod.name == "a":
            self.handle.activate(["uid-parked", "unknown"])
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: Any, node_name: str) -> None:
        pass


def test_a_plugin_may_activate_pods() -> None:
    world = World(Waker)
    world.node("n1")
    world.pod("parked", "100")
    world.schedule()
    assert world.position("parked") == "unschedulable"
    world.pod("a")
    world.schedule(1)
    assert world.position("parked") == "active"


# -- async steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["permit", "pre_bind", "bind"])
def test_async_steps_are_run_outside_and_come_back(point: str) -> None:
    world = ready(Journal(**{point: later(SKIP if point == "bind" else SUCCESS)}))
    effects = world.schedule()
    (step,) = only(effects, RunStep)
    assert (step.plugin, step.uid) == ("Journal", "uid-a")
    assert binds(effects) == []
    assert [patch.nominated_node for patch in patches(effects)] == (["n1"] if point == "pre_bind" else [])
    assert binds(world.send(run(step))) == [("a", "n1")]
    world.engine.check_invariants()


def test_async_permit_may_wait() -> None:
    world = ready(Journal("One", permit=later(waits(5))), Journal("Two", permit=later(None)))
    (first,) = only(world.schedule(), RunStep)
    (second,) = only(world.send(run(first)), RunStep)
    assert binds(world.send(run(second))) == []
    assert binds(world.send(PermitResolved("uid-a", "One", True))) == [("a", "n1")]


class AsyncPreBind(Plugin):
    async def pre_bind(self, cycle: CycleState, pod: Any, node_name: str) -> Status:
        raise TimeoutError("volume is not ready")


def test_a_step_that_fails_rolls_back() -> None:
    world = ready(AsyncPreBind, Journal())
    (step,) = only(world.schedule(), RunStep)
    effects = world.send(run(step))
    text = 'running PreBind plugin "AsyncPreBind": TimeoutError: volume is not ready'
    assert only(effects, Attempt)[0].message == text
    assert world.position("a") == "error_backoff"
    assert not world.engine.cluster.is_assumed("uid-a")


def test_a_step_that_comes_back_too_late_is_ignored() -> None:
    world = ready(Journal(pre_bind=later(SUCCESS)))
    (step,) = only(world.schedule(), RunStep)
    world.delete("a")
    assert world.send(run(step)) == []


def test_pre_bind_is_skipped_where_pre_flight_says_so() -> None:
    log: list[str] = []
    world = ready(Journal(log=log, pre_flight=SKIP))
    assert binds(world.schedule())
    assert "Journal.pre_bind" not in log


def test_a_bind_plugin_may_bind_itself() -> None:
    effects = ready(Journal(bind=later(SUCCESS)))
    (step,) = only(effects.schedule(), RunStep)
    assert notes(effects.send(run(step)))[0][1] == "Scheduled"


def test_async_bind_may_answer_with_a_call() -> None:
    world = ready(Journal(bind=later(_a_call())))
    (step,) = only(world.schedule(), RunStep)
    (submit,) = only(world.send(run(step)), Submit)
    assert submit.awaited
    assert notes(world.finish(submit))[0][1] == "Scheduled"


def _a_call() -> Call:
    return BindPod(ObjectKey("pods", "ns", "a", "uid-a"), "n1")


def test_post_bind_runs_after_the_bind_and_its_failure_is_logged() -> None:
    log: list[str] = []
    world = ready(
        Journal("Odd", log, post_bind=ValueError("odd")), Journal("Slow", log, post_bind=later(None))
    )
    effects = world.finish(bind_submit(world.schedule()))
    assert log[-2:] == ["Odd.post_bind", "Slow.post_bind"]
    assert any("odd" in entry.text for entry in only(effects, Log))
    (step,) = only(effects, RunStep)
    assert run(step).error == ""
    (entry,) = only(world.send(StepFinished(step.step, error="later")), Log)
    assert "later" in entry.text
    assert notes(effects)[0][1] == "Scheduled"
