"""Field cases F1 F2 F7 F8 on the whole system, in both settings of SchedulerAsyncAPICalls where both apply.

F4 and F5 are in test_field_cases_f_watches; further forms in test_watch_faults and test_bind_faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pilotage.framework.plugin import PermitResult
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.framework.status import SUCCESS, wait
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings
from pilotage.scheduling.transitions import Position
from pilotage.testing.harness import Harness

SCHEDULER = {"client": "scheduler"}
PODS = "/pods$"
BIND = "/binding$"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ASYNC = default_settings()
SEQUENTIAL = default_settings(gates={"SchedulerAsyncAPICalls": False})
both = pytest.mark.parametrize("settings", [ASYNC, SEQUENTIAL], ids=["async", "sequential"])


def used(h: Harness, node: str) -> int:
    """Milli-CPU that the scheduler counts on the node."""
    table = h.engine.cluster.nodes
    rows = [int(row) for row in table.live_rows if table.name(row) == node]
    return sum(info.requests["cpu"] for row in rows for info in h.engine.cluster.pods_on(row))


def blind(h: Harness) -> None:
    """The scheduler hears nothing more of pods, and what happens meanwhile is too old when it resumes."""
    h.faults.hold_watches(path=PODS, **SCHEDULER)


def list_again(h: Harness) -> None:
    h.server.compact()
    assert h.faults.drop_watches(path=PODS, **SCHEDULER) == 1
    h.settle(3)


def uid_of(h: Harness, name: str) -> str:
    return str(h.get("pods", name)["metadata"]["uid"])


# -- F1


@both
def test_f1_the_room_of_a_pod_deleted_unseen_goes_to_the_next(settings: Settings) -> None:
    """The case's own numbers: A's bind succeeds, its bound event is never seen, B waits for the room."""
    with Harness(seed=1, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=BIND, times=1)
        h.create(h.pod("a", cpu=4))
        h.run_until(lambda: hold.waiting)
        h.create(h.pod("b", cpu=4))
        h.run_until(lambda: h.attempts("b"))
        blind(h)
        hold.release()
        h.run_until_bound("a")
        h.delete("pods", "a", grace=0)
        h.run_for(20)
        assert not h.pod_state("b").node, "it cannot know yet"
        list_again(h)
        h.run_until_running("b", timeout=10)
        assert h.pod_state("b").node == "n1"
        h.check_converged()


class HeldAtPermit:
    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        is_held = pod.pod.metadata.name == "a"
        return PermitResult(wait(), 600.0) if is_held else PermitResult(SUCCESS)


def with_permit() -> tuple[Registry, Mapping[str, Any]]:
    registry = default_registry()
    registry.register("Held", lambda args, handle: HeldAtPermit())
    plugins = {"multiPoint": {"enabled": [{"name": "Held"}]}}
    return registry, {"profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}]}


def gated(h: Harness) -> None:
    h.create(h.pod("a", cpu=4, schedulingGates=[{"name": "example.com/later"}]))


def unschedulable(h: Harness) -> None:
    h.create(h.pod("a", cpu=64))
    h.run_until(lambda: h.attempts("a"))


def nominated(h: Harness) -> None:
    h.create(h.pod("victim", cpu=4, grace=600))
    h.run_until_bound("victim")
    h.create(h.pod("a", cpu=4, priority=100))
    h.run_until(lambda: h.get("pods", "a")["status"]["nominatedNodeName"] == "n1")


def waiting_at_permit(h: Harness) -> None:
    h.create(h.pod("a", cpu=4))
    h.run_until(lambda: h.engine.statistics().waiting_permits == 1)


def on_its_way(h: Harness) -> None:
    hold = h.faults.hold(path=BIND, times=1)
    h.create(h.pod("a", cpu=4))
    h.run_until(lambda: hold.waiting)


def bound(h: Harness) -> None:
    h.create(h.pod("a", cpu=4))
    h.run_until_bound("a")


STATES = [gated, unschedulable, nominated, waiting_at_permit, on_its_way, bound]
State = Callable[[Harness], None]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("is_new", [False, True], ids=["gone", "same-name"])
def test_f1_whichever_state_it_was_in(state: State, is_new: bool) -> None:
    """Queue, nominations, cache and waiting places: no trace is left of the UID that is gone."""
    registry, settings = with_permit() if state is waiting_at_permit else (None, None)
    with Harness(seed=2, registry=registry, settings=settings) as h:
        h.create(h.node("n1", cpu=4, kubelet=False))
        h.run_for(1)
        state(h)
        h.settle(2)
        uid = uid_of(h, "a")
        blind(h)
        h.delete("pods", "a", grace=0)
        if is_new:
            h.create(h.pod("a", cpu=8))
        list_again(h)
        h.faults.clear()
        h.settle(2)
        assert h.engine.cluster.pod(uid) is None
        assert h.engine.position(uid) is Position.ABSENT
        assert h.engine.waiting(uid) is None
        assert len(h.engine.cluster.nominations) == 0
        seen = h.engine.statistics()
        assert (seen.assumed_pods, seen.binding, seen.waiting_permits) == (0, 0, 0)
        assert seen.gated + seen.unschedulable + seen.backoff + seen.active == int(is_new)
        if state is nominated:
            h.delete("pods", "victim", grace=0)
        h.create(h.pod("b", cpu=4))
        h.run_until_bound("b", timeout=15)
        h.settle()
        h.check_converged()


@both
def test_f1_a_bind_never_lands_on_the_namesake(settings: Settings) -> None:
    """The old one's bind is on its way while a pod of its name, which fits elsewhere, takes its place."""
    with Harness(seed=3, settings=settings) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=8))
        hold = h.faults.hold(path=BIND, times=1)
        h.create(h.pod("a", cpu=4, node_selector={HOSTNAME: "n1"}))
        h.run_until(lambda: hold.waiting)
        blind(h)
        h.delete("pods", "a", grace=0)
        h.create(h.pod("a", cpu=8))
        hold.release()
        list_again(h)
        h.run_until_running("a", timeout=15)
        assert h.pod_state("a").node == "n2"
        h.create(h.pod("b", cpu=4))
        h.run_until_running("b")
        h.check_converged()


# -- F2


@both
def test_f2_a_node_that_comes_back_is_as_full_as_it_was(settings: Settings) -> None:
    with Harness(seed=4, settings=settings, services=None) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=3))
        h.run_until_bound("a")
        h.settle()
        h.delete("nodes", "n1")
        h.create(h.pod("b", cpu=2))
        h.run_for(30)
        assert h.pod_state("b").message.startswith("no nodes available"), h.pod_state("b").message
        h.create(h.node("n1", cpu=4))
        h.run_for(30)
        assert used(h, "n1") == 3000
        assert "1 Insufficient cpu" in h.pod_state("b").message
        assert h.engine.statistics().nodes == 1
        h.check_converged()


def test_f2_a_pod_deleted_while_its_node_is_away_leaves_no_entry() -> None:
    with Harness(seed=5, services=None) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=3))
        h.run_until_bound("a")
        h.settle()
        h.delete("nodes", "n1")
        h.settle()
        h.delete("pods", "a", grace=0)
        h.settle()
        seen = h.engine.statistics()
        assert (seen.nodes, seen.pods, seen.assumed_pods) == (0, 0, 0)
        assert len(h.engine.cluster.pods()) == 0
        h.create(h.node("n1", cpu=4), h.pod("b", cpu=4))
        h.run_until_bound("b")
        h.check_converged()


@both
def test_f2_a_pod_seen_before_its_node_counts_once_the_node_is_there(settings: Settings) -> None:
    with Harness(seed=6, settings=settings, services=None) as h:
        h.create(h.pod("a", cpu=3, nodeName="n1"))
        h.run_for(5)
        h.create(h.node("n1", cpu=4), h.pod("b", cpu=2), h.pod("c", cpu=1))
        h.run_until_bound("c")
        h.run_for(20)
        assert (used(h, "n1"), h.pod_state("b").node) == (4000, "")
        h.check_converged()


# -- F7


@both
def test_f7_a_lost_answer_after_the_bound_event_forgets_nothing(settings: Settings) -> None:
    with Harness(seed=11, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path=BIND, after_write=True, times=1)
        h.faults.lose_answer(path=BIND, times=1)
        h.create(h.pod("p", cpu=3))
        h.run_for(2)
        assert h.engine.cluster.node_of(uid_of(h, "p")) == "n1"
        hold.release()
        h.run_for(30)
        assert (used(h, "n1"), len(h.bindings("p")), len(h.attempts("p"))) == (3000, 1, 1)
        assert h.engine.position(uid_of(h, "p")) is Position.ABSENT
        assert h.events("p", reason="FailedScheduling") == []
        assert not [note for note in h.recorder.notes if "error" in note.lower()]
        h.check_converged()


@both
def test_f7_a_bind_that_truly_fails_is_forgotten_and_tried_elsewhere(settings: Settings) -> None:
    with Harness(seed=12, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        h.faults.answer(403, path=BIND, times=1)
        hold = h.faults.hold(path="/pods/p/status$", **SCHEDULER)
        h.create(h.pod("p", cpu=3))
        h.run_until(lambda: h.bindings("p") and h.bindings("p")[0].finished is not None)
        h.run_for(0.1)
        assert used(h, "n1") == 0
        failed = h.now
        hold.release()
        h.cordon("n1")
        h.create(h.node("n2", cpu=4))
        h.run_until_running("p", timeout=15)
        assert h.pod_state("p").node == "n2"
        assert h.bindings("p")[1].time - failed >= 0.8, "after its backoff of one second"
        assert (used(h, "n1"), used(h, "n2")) == (0, 3000)
        h.check_converged()


@both
def test_f7_no_timer_takes_an_assumed_pod_away_while_its_bind_is_open(settings: Settings) -> None:
    """Neither the bind nor the reads after it are answered for twenty minutes."""
    with Harness(seed=13, settings=settings) as h:
        h.create(h.node("n1", cpu=4))
        bind = h.faults.hold(path=BIND, **SCHEDULER)
        reads = h.faults.hold(verb="get", path="/pods/p$", **SCHEDULER)
        h.create(h.pod("p", cpu=3))
        h.run_until(lambda: bind.waiting)
        h.create(h.pod("q", cpu=2))
        for _ in range(20):
            h.run_for(60)
            assert used(h, "n1") == 3000
            assert not h.pod_state("q").node
        bind.release()
        reads.release()
        h.run_for(30)  # the bind had no effect after all: the room is free for whoever comes first
        assert [bool(h.pod_state(name).node) for name in ("p", "q")].count(True) == 1
        h.check_converged()


# -- F8


def names(h: Harness) -> list[str]:
    h.settle()
    table = h.engine.cluster.nodes
    h.engine.check_invariants()
    return sorted(table.name(row) for row in table.live_rows)


@pytest.mark.parametrize("order", ["m1 m2 m3", "m3 m2 m1", "m2 m3 m1"])
def test_f8_after_each_step_every_node_is_there_once(order: str) -> None:
    steps = {"m1": "z1", "m2": "z1", "m3": "z2"}
    three = ["m1", "m2", "m3"]
    with Harness(seed=14) as h:
        h.create(*(h.node(name) for name in three))
        assert names(h) == three
        for name in order.split():
            h.label("nodes", name, **{ZONE: steps[name]})
            assert names(h) == three
            pinned(h, name, f"with-{name}")
        h.create(h.node("w1", zone="z3"))
        assert names(h) == [*three, "w1"]
        h.delete("nodes", "w1")
        assert names(h) == three
        h.label("nodes", "m1", **{ZONE: "z2"})
        h.label("nodes", "m2", **{ZONE: None})
        assert names(h) == three
        for name in three:
            pinned(h, name, f"last-{name}")
        h.check_converged()


def pinned(h: Harness, node: str, name: str) -> None:
    h.create(h.pod(name, cpu="100m", node_selector={HOSTNAME: node}))
    h.run_until_running(name, timeout=10)
    assert h.pod_state(name).node == node


@both
def test_f8_a_change_of_zone_counts_for_the_new_one_and_no_more_for_the_old(settings: Settings) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "w"}},
    }
    with Harness(seed=15, settings=settings) as h:
        h.create(h.node("m1", zone="z1"), h.node("m2", zone="z1"), h.node("m3", zone="z2"))
        label = {"labels": {"app": "w"}}
        h.create(h.pod("on-m1", **label, node_selector={HOSTNAME: "m1"}))
        h.create(h.pod("on-m3", **label, node_selector={HOSTNAME: "m3"}))
        h.run_until_running("on-m1", "on-m3")
        h.label("nodes", "m1", **{ZONE: "z2"})  # z1 holds none now, z2 two
        h.create(*(h.pod(f"s{i}", **label, topologySpreadConstraints=[spread]) for i in range(3)))
        h.run_until_running("s0", "s1", "s2")
        zones = Counter(h.pod_state(f"s{i}").node for i in range(3))
        assert zones["m2"] in (2, 3)
        h.check_converged()
