"""The whole scheduler against the embedded server, in process, under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from behaviour.world import PODS, World, in_world, kind, node, pod
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import Plugin
from pilotage.framework.status import SUCCESS, Status, error
from pilotage.runtime.metrics import Metrics, exposition
from pilotage.runtime.plugins_loading import build_registry
from pilotage.scheduling.messages import Attempt
from pilotage.state.podinfo import PodInfo


def test_pods_are_bound_to_nodes_that_have_room() -> None:
    async def use(world: World) -> dict[str, str]:
        await world.add(node("n1"), node("n2"), *[pod(f"p{i}", "1") for i in range(10)])
        await asyncio.sleep(5)
        return await world.bound()

    bound = in_world(use)
    assert sorted(bound.values()) == [""] * 2 + ["n1"] * 4 + ["n2"] * 4


def test_what_comes_after_the_start_is_scheduled_too_and_room_that_is_freed_is_used() -> None:
    async def use(world: World) -> tuple[dict[str, str], dict[str, str]]:
        await asyncio.wait_for(world.scheduler.ready.wait(), 5)
        await world.add(node("n1"), pod("a", "3"), pod("b", "3"))
        await asyncio.sleep(5)
        before = await world.bound()
        await world.api.delete(PODS, "a", "default", grace_seconds=0)
        await asyncio.sleep(15)
        return before, await world.bound()

    before, after = in_world(use)
    assert before == {"a": "n1", "b": ""}
    assert after == {"b": "n1"}


def test_a_pod_that_does_not_fit_says_why() -> None:
    async def use(world: World) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        await world.add(node("n1"), pod("big", "64"))
        await asyncio.sleep(5)
        events = (await world.api.list(kind("events.events.k8s.io"), "default"))["items"]
        return await world.api.get(PODS, "big", "default"), events

    waiting, events = in_world(use)
    condition = next(c for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert [e["reason"] for e in events] == ["FailedScheduling"]


def test_nothing_is_decided_before_every_informer_has_synced() -> None:
    async def use(world: World) -> None:
        await world.add(node("n1"), pod("a"))
        while not world.scheduler.ready.is_set():
            assert not world.seen.attempts
            await asyncio.sleep(0)
        statistics = world.scheduler.statistics()
        assert statistics.is_ready
        assert all(one.is_synced for one in statistics.informers.values())
        assert len(statistics.informers) == 18
        assert (statistics.engine.nodes, statistics.engine.pods) == (1, 1)

    in_world(use)


def test_expired_watches_lose_and_repeat_nothing() -> None:
    async def use(world: World) -> dict[str, str]:
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(5)
        for number in range(3):
            world.transport.host.drop_watches()
            await world.add(pod(f"b{number}"))
            await world.api.delete(PODS, "a", "default", grace_seconds=0) if number == 0 else None
            world.server.store.compact()
            await asyncio.sleep(30)
        statistics = world.scheduler.statistics()
        assert statistics.informers["pods"].relists == 3
        assert statistics.engine.pods == 3
        return await world.bound()

    assert in_world(use) == {"b0": "n1", "b1": "n1", "b2": "n1"}


class Hanging(Plugin):
    """A PreBind that never ends."""

    async def pre_bind(self, _cycle: CycleState, _pod: PodInfo, _node: str) -> Status:
        await asyncio.Event().wait()
        return SUCCESS


class Flaky(Plugin):
    """A PreBind that raises the first time and is slow the second."""

    calls = 0

    async def pre_bind(self, _cycle: CycleState, _pod: PodInfo, _node: str) -> Status:
        type(self).calls += 1
        await asyncio.sleep(0.5)
        if self.calls == 1:
            raise ConnectionError("lost the disk")
        return SUCCESS if self.calls > 2 else error("not yet")


def with_plugin(plugin: type[Plugin]) -> dict[str, Any]:
    registry = build_registry()
    registry.register(plugin.name, plugin)
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"preBind": {"enabled": [{"name": plugin.name}]}},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return {"registry": registry, "config": config}


def test_an_async_step_that_fails_rolls_back_and_is_tried_again() -> None:
    Flaky.calls = 0

    async def use(world: World) -> dict[str, str]:
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(30)
        assert [a.result for a in world.seen.attempts] == ["error", "error", "scheduled"]
        assert "lost the disk" in world.seen.attempts[0].message
        return await world.bound()

    assert in_world(use, **with_plugin(Flaky)) == {"a": "n1"}


def test_the_end_cancels_a_step_that_hangs_and_leaves_nothing_behind() -> None:
    async def use(world: World) -> float:
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(5)
        assert world.scheduler.statistics().steps == 1
        return await world.end()

    assert in_world(use, **with_plugin(Hanging)) < 1.0


def test_a_scheduler_that_is_cancelled_cleans_up_as_well() -> None:
    async def use(world: World) -> None:
        await world.add(node("n1"), pod("a"))
        await asyncio.sleep(5)
        world.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await world.task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_world(use)


def test_a_bug_ends_the_scheduler_loudly() -> None:
    async def use(world: World) -> None:
        await world.scheduler.ready.wait()

        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        world.scheduler.core.schedule = broken  # type: ignore[method-assign,assignment]  # the bug
        await world.add(node("n1"), pod("a"))
        with pytest.raises(RuntimeError, match="a bug"):
            await world.task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_world(use)


def test_metrics_tell_what_happened() -> None:
    async def use(world: World) -> str:
        metrics = Metrics(version="1")
        metrics.attach(world.scheduler)
        await world.add(node("n1"), pod("a"), pod("big", "64"))
        await asyncio.sleep(5)
        return exposition(metrics.registry()).decode()

    text = in_world(use)
    profile = 'profile="default-scheduler"'
    for line in (
        f'scheduler_schedule_attempts_total{{{profile},result="scheduled"}} 1.0',
        f'scheduler_schedule_attempts_total{{{profile},result="unschedulable"}} 1.0',
        f'scheduler_scheduling_attempt_duration_seconds_count{{{profile},result="scheduled"}} 1.0',
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_pending_pods{queue="active"} 0.0',
        'scheduler_cache_size{type="nodes"} 1.0',
        'scheduler_async_api_call_execution_total{call_type="pod_binding",result="success"} 1.0',
        'scheduler_pending_async_api_calls{call_type="pod_binding"} 0.0',
        'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0',
        'scheduler_pod_scheduling_attempts_bucket{le="1.0"} 1.0',
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
    ):
        assert line in text
    assert 'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2.0' in text


def test_two_runs_are_equal() -> None:
    async def use(world: World) -> list[Attempt]:
        await world.add(*[node(f"n{i}") for i in range(5)], *[pod(f"p{i}") for i in range(20)])
        await asyncio.sleep(10)
        return world.seen.attempts

    first = in_world(use)
    assert len(first) == 20
    assert first == in_world(use)
