"""The same stories with SchedulerAsyncAPICalls or SchedulerAsyncPreemption on and off (A15): the same ends.

Every story leaves one possible end, whatever the order in time, so that placements, conditions and
nominations can be compared pod by pod; leaving the harness checks its invariants, and at the end the
scheduler believes what the server shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pilotage.framework.status import SUCCESS, Status
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness

BIND = "/binding$"
STATUS = r"/pods/[^/]+/status$"
SCHEDULER = {"client": "scheduler"}
ON: Mapping[str, bool] = {}
NO_ASYNC_CALLS = {"SchedulerAsyncAPICalls": False}
NO_ASYNC_PREEMPTION = {"SchedulerAsyncPreemption": False}
End = dict[str, tuple[str, str, str, str, str, str]]
Story = Callable[[Harness], None]
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "Patience"}]}},
        }
    ],
}


class Patience:
    """Pods named slow* take five seconds at Permit."""

    async def permit(self, cycle: object, pod: Any, node: str) -> Status:
        if pod.pod.metadata.name.startswith("slow"):
            await asyncio.sleep(5.0)
        return SUCCESS


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


def permit_waits(h: Harness) -> None:
    h.create(h.node("n1", cpu=4), h.node("n2", cpu=2))
    h.create(h.pod("slow-a", cpu=3), h.pod("huge", cpu=64))
    h.run_for(1)
    h.create(h.pod("slow-b", cpu=2), h.pod("last", cpu=1))


def outranked_at_permit(h: Harness) -> None:
    """The one that waits makes room in memory and stays unschedulable."""
    h.create(h.node("n1", cpu=4), h.pod("slow-low", cpu=4, priority=1))
    h.run_for(2)
    h.create(h.pod("high", cpu=4, priority=100))


def nomination_stays(h: Harness) -> None:
    """The victim takes its time to go."""
    h.create(h.node("n1", cpu=4, kubelet=False), h.pod("victim", cpu=4, priority=1, grace=3000))
    h.run_until_bound("victim")
    h.create(h.pod("high", cpu=4, priority=100), h.pod("low", cpu=4))


def churning_nodes(h: Harness) -> None:
    """A node goes and comes back while the bind to it is on its way; others come and go."""
    h.create(h.node("n0", cpu=2))
    hold = h.faults.hold(path="/pods/p0/binding$", times=1)
    h.create(h.pod("p0", cpu=2), h.pod("waits", cpu=2, node_selector={"colour": "blue"}))
    h.run_for(1)
    for number in range(1, 5):
        h.create(h.node(f"n{number}", cpu=1))
        h.delete("nodes", f"n{number - 1}")
    h.create(h.node("n0", cpu=2))
    hold.release()
    h.run_for(2)
    h.create(h.node("blue", cpu=2, labels={"colour": "blue"}))


def deleted_while_binding(h: Harness) -> None:
    h.create(h.node("n1", cpu=4))
    hold = h.faults.hold(path="/pods/a/binding$", times=1)
    h.create(h.pod("a", cpu=4))
    h.run_for(1)
    h.delete("pods", "a", grace=0)
    h.create(h.pod("b", cpu=4), h.pod("huge", cpu=64))
    h.run_for(1)
    hold.release()


def bound_by_hand(h: Harness) -> None:
    h.create(h.node("n1", cpu=4))
    hold = h.faults.hold(path="/pods/a/binding$", client="scheduler", times=1)
    h.create(h.pod("a", cpu=4), h.pod("huge", cpu=64))
    h.run_for(1)
    h.create(h.node("n2", cpu=4))
    h.bind("a", "n2")
    hold.release()
    h.create(h.pod("b", cpu=4))


def cut_watches(h: Harness) -> None:
    """Cut, too old, and silent while pods come, are bound and go."""
    one_pod_per_node(h)
    h.faults.drop_watches(**SCHEDULER)
    h.run_for(3)
    h.faults.hold_watches(**SCHEDULER)
    h.delete("pods", "p1", grace=0)
    h.create(h.pod("next", cpu=2), h.pod("huge", cpu=64))
    h.server.compact()
    for form in Gone:
        h.faults.gone(form, path="/pods$", **SCHEDULER)
    h.faults.drop_watches(**SCHEDULER)
    h.run_for(10)
    h.faults.drop_watches(**SCHEDULER)


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
    permit_waits,
    outranked_at_permit,
    nomination_stays,
    churning_nodes,
    deleted_while_binding,
    bound_by_hand,
    cut_watches,
)


def end_of(story: Story, gates: Mapping[str, bool]) -> tuple[End, Harness]:
    registry = default_registry()
    registry.register("Patience", lambda args, handle: Patience())
    settings = load_settings(CONFIG, registry, gates)
    with Harness(seed=1, registry=registry, settings=settings) as h:
        story(h)
        h.run_for(60)
        h.faults.clear()
        h.run_for(360)  # whoever waits is tried again by then, and its message speaks of all nodes
        h.settle(5)
        h.check_converged()
        states = h.pod_states("default")
    return {
        name: (s.node, s.phase, s.scheduled, s.message, s.nominated, s.reason) for name, s in states.items()
    }, h


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_all_modes_come_to_the_same_end(story: Story) -> None:
    first, _ = end_of(story, ON)
    for gates in (NO_ASYNC_CALLS, NO_ASYNC_PREEMPTION):
        assert end_of(story, gates)[0] == first, gates
    assert any(node for node, *_ in first.values())


@pytest.mark.slow
def test_the_ends_are_those_that_the_stories_are_about() -> None:
    crowded, _ = end_of(crowd, ON)
    assert {crowded[name][0] for name in ("wide", "last")} == {"large"}
    assert crowded["tight"][0] == "small"
    assert {crowded[f"huge{i}"][2] for i in range(30)} == {"False"}
    evicted, h = end_of(eviction, NO_ASYNC_CALLS)
    assert "low" not in evicted
    assert (evicted["high"][1], evicted["late"][0]) == ("Running", "")
    assert len(h.requests(client="scheduler", method="DELETE", path="/pods/low$")) == 1
    waited, _ = end_of(changed_messages, NO_ASYNC_CALLS)
    assert waited["blue"][0] == "there"
    assert "0/5 nodes" in waited["huge"][3]
    outranked, _ = end_of(outranked_at_permit, NO_ASYNC_CALLS)
    assert (outranked["slow-low"][0], outranked["high"][0]) == ("", "n1")
    stays, _ = end_of(nomination_stays, NO_ASYNC_PREEMPTION)
    assert (stays["high"][0], stays["high"][4]) == ("", "n1")
    churned, _ = end_of(churning_nodes, ON)
    assert (churned["p0"][0], churned["waits"][0]) == ("n0", "blue")
    by_hand, _ = end_of(bound_by_hand, NO_ASYNC_CALLS)
    assert (by_hand["a"][0], by_hand["b"][0]) == ("n2", "n1")
    cut, _ = end_of(cut_watches, NO_ASYNC_CALLS)
    assert (cut["next"][0], cut["huge"][2]) == ("n1", "False")
