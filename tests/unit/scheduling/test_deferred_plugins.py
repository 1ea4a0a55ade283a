"""Plugins in the cycles of deferred resizes: who is asked, what they see (R2, R3, R14)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.enginekit import World, notes, only
from tests.resizekit import DEFERRED, evictions, runs, told

from pilotage.framework.plugin import Plugin, PostFilterResult, PreFilterResult
from pilotage.framework.status import SUCCESS, Status, unresolvable, unschedulable
from pilotage.scheduling.deferred_cycle import as_resized
from pilotage.scheduling.messages import Submit
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo


class Bystander(Plugin):
    """Knows nothing of resizes, and would fail every one."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._fail(pod)

    def pre_filter(self, _cycle: Any, pod: PodInfo, _view: Any) -> Status:
        return self._fail(pod)

    def filter(self, _cycle: Any, pod: PodInfo, _node: Any) -> Status:
        return self._fail(pod)

    def post_filter(self, _cycle: Any, pod: PodInfo, _view: Any, _failures: Any) -> PostFilterResult:
        self._fail(pod)
        return PostFilterResult(unschedulable())

    def reserve(self, _cycle: Any, pod: PodInfo, _node: str) -> Status:
        return self._fail(pod)

    def permit(self, _cycle: Any, pod: PodInfo, _node: str) -> Status:
        return self._fail(pod)

    def _fail(self, pod: PodInfo) -> Status:
        assert not pod.is_bound, "asked about a resize"
        return SUCCESS


class Quota(Plugin):
    """Takes part: refuses what is larger than it allows, at the point it is told."""

    takes_part_in_resizes = True

    def __init__(self, point: str, status: Status | Exception) -> None:
        super().__init__()
        self.point, self.status = point, status
        self.seen: list[tuple[str, dict[str, int]]] = []

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._answer("pre_enqueue", pod)

    def pre_filter(self, _cycle: Any, pod: PodInfo, _view: Any) -> Status | PreFilterResult:
        if self.point == "node set":
            return PreFilterResult(SUCCESS, frozenset({"n2"}))
        return self._answer("pre_filter", pod)

    def filter(self, _cycle: Any, pod: PodInfo, _node: Any) -> Status:
        return self._answer("filter", pod)

    def _answer(self, point: str, pod: PodInfo) -> Status:
        if not pod.is_bound:
            return SUCCESS
        self.seen.append((point, pod.requests))
        if point != self.point:
            return SUCCESS
        if isinstance(self.status, Exception):
            raise self.status
        return self.status


def full(world: World) -> None:
    world.node("n1", "10")
    runs(world, "v1", "3")
    runs(world, "v2", "3")
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000)


def test_plugins_that_do_not_take_part_are_not_asked() -> None:
    world = World(Bystander)
    full(world)
    assert evictions(world.schedule()) == ["v1"]
    assert "error" not in told(world, "r")


def test_a_plugin_that_takes_part_sees_what_the_pod_needs() -> None:
    quota = Quota("nowhere", SUCCESS)
    world = World(quota)
    full(world)
    world.schedule()
    assert {point for point, _ in quota.seen} == {"pre_enqueue", "pre_filter", "filter"}
    assert all(requests == {"cpu": 6000} for point, requests in quota.seen)


@pytest.mark.parametrize("point", ["pre_filter", "filter"])
def test_its_rejection_counts_and_its_events_wake(point: str) -> None:
    quota = Quota(point, unresolvable("over quota"))
    world = World(quota)
    full(world)
    assert not evictions(world.schedule())
    assert "over quota" in told(world, "r")
    assert world.position("r") == "unschedulable"
    assert world.engine.waits_on("uid-r") == {"Quota"}
    world.wait(2)
    quota.status = SUCCESS
    world.node("n2", "10")  # not its node
    assert world.position("r") == "unschedulable"
    world.node("n1", "10", {"metadata": {"labels": {"a": "b"}}})  # it registered nothing: any event
    assert evictions(world.schedule()) == ["v1"]


def test_a_node_set_without_its_own_node_is_a_rejection() -> None:
    world = World(Quota("node set", SUCCESS))
    full(world)
    assert not evictions(world.schedule())
    assert world.position("r") == "unschedulable"


def test_its_gate_keeps_the_resize_out_and_writes_nothing_on_the_pod() -> None:
    world = World(Quota("pre_enqueue", unresolvable("wait")))
    full(world)
    assert world.position("r") == "gated"
    world.wait(20)
    assert not only(world.effects, Submit)


def test_its_fault_fails_this_attempt_and_nobody_else() -> None:
    quota = Quota("filter", RuntimeError("boom"))
    world = World(quota)
    full(world)
    world.pod("new", "1m")
    world.schedule()
    assert "boom" in told(world, "r")
    assert world.position("r") == "error_backoff"
    assert next(reason for _, reason, _ in notes(world.effects)) == "FailedResizePreemption"
    quota.status = SUCCESS
    world.wait(3)
    assert evictions(world.schedule()) == ["v1"]


def test_a_pod_of_a_group_is_resized_as_an_individual() -> None:
    """R14"""
    world = World()
    world.node("n1", "10")
    runs(world, "v1", "6", schedulingGroup={"podGroupName": "g"})
    runs(world, "r", "6", DEFERRED, allocated="4", priority=1000, schedulingGroup={"podGroupName": "g"})
    assert evictions(world.schedule()) == ["v1"]


def test_the_larger_of_queue_and_cache_counts() -> None:
    """R3"""
    cluster, queued = ClusterState(), World()
    runs(queued, "r", "6", DEFERRED, allocated="4")
    small = queued.engine.cluster.pod("uid-r")
    runs(queued, "r", "8", DEFERRED, allocated="4")
    large = queued.engine.cluster.pod("uid-r")
    assert small is not None
    assert large is not None
    cluster.upsert_pod(large)
    assert as_resized(cluster, small).requests == {"cpu": 8000}
    assert as_resized(cluster, large).requests == {"cpu": 8000}
    cluster = ClusterState()
    cluster.upsert_pod(small)
    assert as_resized(cluster, large).requests == {"cpu": 8000}
