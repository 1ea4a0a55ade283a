"""The harness itself: time, problems in the background, restarts, fixtures."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.testing.harness import Harness, NotReachedError
from pilotage.testing.pytest_plugin import MakeHarness


def test_time_stands_still_outside_of_runs() -> None:
    with Harness() as h:
        assert h.now == 0
        h.create(h.node("n1"))
        assert h.now == 0
        h.run_for(2.5)
        assert h.now == 2.5
        assert h.run_until(lambda: h.now >= 3, timeout=5) >= 0.5


def test_a_predicate_that_raises_is_the_tests_own_error() -> None:
    def broken() -> bool:
        raise ZeroDivisionError

    with Harness() as h:
        with pytest.raises(ZeroDivisionError):
            h.run_until(broken)
        with pytest.raises(NotReachedError):
            h.run_until(lambda: h.get("pods", "nobody"), timeout=1)
        h.run_for(1)


def test_an_error_in_the_background_fails_the_run() -> None:
    async def crash() -> None:
        async def task() -> None:
            raise ValueError("boom")

        running = asyncio.get_running_loop().create_task(task())
        await asyncio.sleep(0)
        del running

    h = Harness(scheduler=False, services=None).start()
    h.do(crash())
    import gc

    gc.collect()
    with pytest.raises(AssertionError, match="boom"):
        h.run_for(1)
    h.close()


def test_overcommitment_is_noticed() -> None:
    h = Harness(seed=1).start()
    h.create(h.node("n1", cpu=1), h.pod("a", cpu=2))
    h.bind("a", "n1")
    with pytest.raises(AssertionError, match="n1 holds 2000 of 1000 cpu"):
        h.check_invariants()
    h.may_overcommit = True
    h.check_invariants()
    h.close()


def test_settings_as_a_configuration() -> None:
    settings = {"profiles": [{"schedulerName": "mine"}]}
    with Harness(settings=settings) as h:
        h.create(h.node("n1"), h.pod("a", schedulerName="mine"), h.pod("b"))
        h.run_until_bound("a")
        assert not h.pod_state("b").node


def test_without_a_scheduler_nothing_is_bound() -> None:
    with Harness(scheduler=False) as h:
        h.create(h.node("n1"), h.pod("a"))
        h.run_for(60)
        assert not h.pod_state("a").node
        h.start_scheduler()
        h.run_until_running("a")


def test_several_clusters_beside_each_other(make_harness: MakeHarness) -> None:
    one, two = make_harness(seed=1), make_harness(seed=2)
    one.create(one.node("n1"))
    two.create(two.node("n2"))
    assert [tree["metadata"]["name"] for tree in one.objects("nodes")] == ["n1"]
