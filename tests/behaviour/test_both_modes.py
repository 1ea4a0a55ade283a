"""The same stories with and without SchedulerAsyncAPICalls (A15): the same ends, whatever the order in time.

Every story leaves one possible end, so that placements and conditions can be compared pod by pod; leaving
the harness checks its invariants, and at the end the scheduler believes what the server shows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotage.runtime.config import default_settings
from pilotage.testing.harness import Harness

BIND = "/binding$"
STATUS = r"/pods/[^/]+/status$"
End = dict[str, tuple[str, str, str, str]]
Story = Callable[[Harness], None]


def crowd(h: Harness) -> None:
    """Some fit, some never do, the last one fits where the others left room."""
    h.create(h.node("small", cpu=2), h.node("large", cpu=8))
    h.create(*(h.pod(f"huge{i}", cpu=64) for i in range(30)))
    h.create(h.pod("wide", cpu=7), h.pod("tight", cpu=2), h.pod("last", cpu=1))


def eviction(h: Harness) -> None:
    h.create(h.node("n1", cpu=4), h.node("n2", cpu=4))
    h.create(h.pod("low", cpu=4, priority=1, grace=5), h.pod("middle", cpu=4, priority=50, grace=5))
    h.run_until_running("low", "middle")
    h.create(h.pod("high", cpu=4, priority=100), h.pod("late", cpu=4, priority=1))


def refused_binds(h: Harness) -> None:
    h.faults.answer(500, path=BIND, times=3)
    h.faults.too_many_requests(path=BIND, times=3)
    one_pod_per_node(h)


def refused_patches(h: Harness) -> None:
    h.faults.too_many_requests(path=STATUS, client="scheduler", times=5)
    h.faults.answer(503, path=STATUS, client="scheduler", times=2)
    crowd(h)


def lost_answers(h: Harness) -> None:
    h.faults.lose_answer(path=BIND, times=2)
    h.faults.lose_answer(path=STATUS, client="scheduler", times=2)
    h.faults.delay_watches(2.0, client="scheduler", path="/pods$")
    one_pod_per_node(h)
    h.create(h.pod("huge", cpu=64))


def room_later(h: Harness) -> None:
    h.create(h.node("n1", cpu=1))
    h.create(*(h.pod(f"p{i}", cpu=4) for i in range(3)))
    h.run_for(3)
    h.create(h.node("n2", cpu=12))


def changed_messages(h: Harness) -> None:
    """Each node that comes changes what a slow patch was about to say."""
    h.faults.latency(before=1.5, path=STATUS, client="scheduler")
    h.create(h.pod("blue", cpu=1, node_selector={"colour": "blue"}), h.pod("huge", cpu=64))
    for number in range(4):
        h.create(h.node(f"n{number}", cpu=2, labels={"colour": "red"}))
        h.run_for(1)
    h.create(h.node("there", cpu=2, labels={"colour": "blue"}))


def restart(h: Harness) -> None:
    hold = h.faults.hold(path=BIND, lands_anyway=True, times=1)
    one_pod_per_node(h)
    h.run_for(2)
    h.kill_scheduler()
    hold.release()
    h.start_scheduler()
    h.create(h.pod("huge", cpu=64))


def claims(h: Harness) -> None:
    h.create(h.storage_class("disks"), h.claim("data", "disks"), h.node("n1", cpu=2))
    h.create(h.pod("db", cpu=1, volumes=h.uses("data")), h.pod("other", cpu=1), h.pod("huge", cpu=64))


def one_pod_per_node(h: Harness) -> None:
    for number in range(4):
        h.create(h.node(f"n{number}", cpu=2))
        selector = {"kubernetes.io/hostname": f"n{number}"}
        h.create(h.pod(f"p{number}", cpu=2, node_selector=selector))


STORIES: tuple[Story, ...] = (
    crowd,
    eviction,
    refused_binds,
    refused_patches,
    lost_answers,
    room_later,
    changed_messages,
    restart,
    claims,
)


def end_of(story: Story, *, is_async: bool) -> tuple[End, Harness]:
    gates = {"SchedulerAsyncAPICalls": is_async}
    with Harness(seed=1, settings=default_settings(gates=gates)) as h:
        story(h)
        h.run_for(60)
        h.faults.clear()
        h.run_for(360)  # whoever waits is tried again by then, and its message speaks of all nodes
        h.settle(5)
        h.check_converged()
        states = h.pod_states("default")
    return {name: (s.node, s.phase, s.scheduled, s.message) for name, s in states.items()}, h


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_both_modes_come_to_the_same_end(story: Story) -> None:
    first, _ = end_of(story, is_async=True)
    second, _ = end_of(story, is_async=False)
    assert first == second
    assert any(node for node, *_ in first.values())


@pytest.mark.slow
def test_the_ends_are_those_that_the_stories_are_about() -> None:
    crowded, _ = end_of(crowd, is_async=True)
    assert {crowded[name][0] for name in ("wide", "last")} == {"large"}
    assert crowded["tight"][0] == "small"
    assert {crowded[f"huge{i}"][2] for i in range(30)} == {"False"}
    evicted, h = end_of(eviction, is_async=False)
    assert "low" not in evicted
    assert (evicted["high"][1], evicted["late"][0]) == ("Running", "")
    assert len(h.requests(client="scheduler", method="DELETE", path="/pods/low$")) == 1
    waited, _ = end_of(changed_messages, is_async=False)
    assert waited["blue"][0] == "there"
    assert "0/5 nodes" in waited["huge"][3]
