"""Random lives of a small cluster, with every effect answered: nothing is lost, nothing is bound twice.

The API server is a dict here: a bind takes effect once, and informer facts about it come later, or before
the answer to the call. No node may ever hold more than it has.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from enginekit import World, only
from pilotage.framework.calls import BindPod, CallResult, EvictPod, Outcome
from pilotage.framework.plugin import PermitResult, Plugin
from pilotage.framework.status import SUCCESS, Status, error, unschedulable, wait
from pilotage.scheduling.askers import Screening
from pilotage.scheduling.messages import (
    Answered,
    Ask,
    AskFailed,
    Attempt,
    Effect,
    PermitResolved,
    RunStep,
    StepFinished,
    Submit,
)

PODS = [f"p{number}" for number in range(8)]
NODES = ["n1", "n2", "n3"]
KINDS = ["plain", "permit", "slow", "ask", "reserve"]
ROOM = {"n1": 2, "n2": 3, "n3": 4}


class Awkward(Plugin):
    """By the pod's `kind` label: waits at Permit, is slow before Bind, refuses at Reserve now and then."""

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.reserved: dict[str, str] = {}
        self.refuses = 0

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> Status:
        assert pod.uid not in self.reserved, "reserved twice"
        if pod.labels["kind"] == "reserve":
            self.refuses += 1
            if self.refuses % 3:
                return unschedulable("not now") if self.refuses % 2 else error("not now")
        self.reserved[pod.uid] = node_name
        return SUCCESS

    def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        assert self.reserved.pop(pod.uid, node_name) == node_name

    def permit(self, cycle: Any, pod: Any, node_name: str) -> PermitResult:
        return PermitResult(wait(), 30.0) if pod.labels["kind"] == "permit" else PermitResult(SUCCESS)

    def pre_bind(self, cycle: Any, pod: Any, node_name: str) -> Any:
        return self._later() if pod.labels["kind"] == "slow" else SUCCESS

    def _later(self) -> Any:
        return Later()

    def post_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        del self.reserved[pod.uid]


class Later:
    """An awaitable that nobody has to await."""

    def __await__(self) -> Any:
        yield


class Outside:
    name = label = "outside"
    timeout = 5.0
    is_ignorable = False

    def request(self, pod: Any, node_names: Any) -> Any:
        return tuple(node_names) if pod.labels["kind"] == "ask" else None

    def screen(self, response: Any, node_names: Any) -> Screening:
        return Screening(dict.fromkeys(response, "not there"))


class EngineMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.plugin = Awkward()
        self.world = World(self.plugin, askers={"default-scheduler": [Outside()]})
        self.versions: dict[str, int] = {}
        self.bound: dict[str, str] = {}  # name -> node, as the API server has it
        self.shown: set[str] = set()  # bound pods that the informer has shown bound
        self.binds: list[Submit] = []
        self.evictions: list[Submit] = []
        self.evicted: set[str] = set()  # UIDs whose eviction was accepted
        self.steps: list[RunStep] = []
        self.asks: list[Ask] = []
        self.uid_of: dict[str, str] = {}
        self.successes: dict[str, int] = {}

    # -- answering -------------------------------------------------------------------------------

    def take(self, effects: list[Effect]) -> None:
        self.binds += [s for s in only(effects, Submit) if isinstance(s.call, BindPod)]
        for submit in only(effects, Submit):
            if isinstance(submit.call, EvictPod):
                self.evict(submit)
        self.steps += only(effects, RunStep)
        self.asks += only(effects, Ask)
        for attempt in only(effects, Attempt):
            if attempt.result == "scheduled":
                self.successes[attempt.uid] = self.successes.get(attempt.uid, 0) + 1

    def evict(self, submit: Submit) -> None:
        """A pod has one eviction at a time, and none after one that was accepted."""
        uid = submit.call.key.uid
        assert submit.awaited
        assert uid not in {other.call.key.uid for other in self.evictions}
        assert uid not in self.evicted
        name = submit.call.key.name
        assert name in self.bound, f"{name} is not bound: it is preempted in memory"
        self.evictions.append(submit)

    def alive(self, name: str) -> bool:
        return f"ns/{name}" in self.world.trees

    def show(self, name: str) -> None:
        if self.alive(name) and name in self.bound and name not in self.shown:
            self.shown.add(name)
            self.take(self.world.bind(name, self.bound[name]))

    def execute(self, submit: Submit) -> Outcome:
        """The API server carries a bind out."""
        call = submit.call
        assert isinstance(call, BindPod)
        name = call.key.name
        if not self.alive(name) or self.uid_of[name] != call.key.uid:
            return Outcome(CallResult.FAILED, "not found", 404)
        if name in self.bound:
            return Outcome(CallResult.FAILED, "already bound", 409)
        self.bound[name] = call.node
        return Outcome(CallResult.DONE)

    # -- rules -----------------------------------------------------------------------------------

    @initialize(
        kinds=st.lists(st.sampled_from(KINDS), min_size=4, max_size=6), cpu=st.sampled_from(["1", "2"])
    )
    def begin(self, kinds: list[str], cpu: str) -> None:
        """Most lives start with something to do, or the rules would seldom meet; many with a full cluster."""
        for name in NODES:
            self.node(name, False, False)
        for name, kind in zip(PODS, kinds, strict=False):
            self.create(name, kind, 0, False, cpu)
        self.schedule(8)

    @rule(
        name=st.sampled_from(NODES),
        taint=st.sampled_from([False, False, True]),
        cordon=st.sampled_from([False, False, True]),
    )
    def node(self, name: str, taint: bool, cordon: bool) -> None:
        taints = [{"key": "k", "effect": "NoSchedule"}] if taint else []
        spec = {"spec": {"taints": taints, "unschedulable": cordon}}
        self.take(self.world.node(name, str(ROOM[name]), spec))

    @precondition(lambda self: all(node in self.world.trees for node in NODES))
    @rule(name=st.sampled_from(NODES))
    def delete_node(self, name: str) -> None:
        if name in self.world.trees:
            self.take(self.world.delete_node(name))

    @rule(
        name=st.sampled_from(PODS),
        kind=st.sampled_from(KINDS),
        priority=st.integers(0, 2),
        gated=st.booleans(),
        cpu=st.sampled_from(["1", "1", "1", "2", "9"]),
    )
    def create(self, name: str, kind: str, priority: int, gated: bool, cpu: str) -> None:
        name = next((other for other in PODS[PODS.index(name) :] if not self.alive(other)), name)
        if self.alive(name):
            return
        self.versions[name] = self.versions.get(name, 0) + 1
        self.uid_of[name] = f"uid-{name}-{self.versions[name]}"
        gates = [{"name": "g"}] if gated and priority else []
        self.take(
            self.world.pod(
                name,
                cpu,
                {"metadata": {"uid": self.uid_of[name], "labels": {"kind": kind}}},
                {"spec": {"priority": priority, "schedulingGates": gates}},
            )
        )

    @rule(
        kind=st.sampled_from(["plain", "plain", "permit", "slow"]),
        priority=st.integers(3, 5),
        cpu=st.sampled_from(["2", "2", "3"]),
    )
    def create_urgent(self, kind: str, priority: int, cpu: str) -> None:
        """One that will have to preempt, in a full cluster; the last pod makes place for it."""
        if all(map(self.alive, PODS)):
            self.remove(PODS[-1])
        self.create(PODS[-1], kind, priority, False, cpu)
        self.schedule(2)

    @rule(name=st.sampled_from(PODS), what=st.sampled_from(["ungate", "tolerate", "relabel", "annotate"]))
    def change(self, name: str, what: str) -> None:
        if self.alive(name):
            changes = {
                "ungate": {"spec": {"schedulingGates": []}},
                "tolerate": {"spec": {"tolerations": [{"operator": "Exists"}]}},
                "relabel": {"metadata": {"labels": {"x": str(self.world.version)}}},
                "annotate": {"metadata": {"annotations": {"x": str(self.world.version)}}},
            }
            self.take(self.world.pod(name, None, changes[what]))

    @precondition(lambda self: len(self.world.trees) > 6)
    @rule(name=st.sampled_from(PODS))
    def delete(self, name: str) -> None:
        if self.alive(name):
            self.remove(name)

    @rule(data=st.data())
    def decide_and_answer(self, data: st.DataObject) -> None:
        """The usual course of things, so that long lives get somewhere."""
        self.schedule(3)
        for _ in range(len(self.binds)):
            self.answer_bind(0, data.draw(st.sampled_from(["done", "shown first", "refused"])))

    @rule(limit=st.integers(1, 4))
    def schedule(self, limit: int) -> None:
        self.take(self.world.schedule(limit))

    @precondition(lambda self: self.binds)
    @rule(
        index=st.integers(0, 7),
        way=st.sampled_from(["done", "shown first", "answer lost", "refused", "cancelled"]),
    )
    def answer_bind(self, index: int, way: str) -> None:
        submit = self.binds.pop(index % len(self.binds))
        if way in ("refused", "cancelled"):
            result = CallResult.FAILED if way == "refused" else CallResult.CANCELLED
            self.take(self.world.finish(submit, Outcome(result, way)))
            return
        outcome = self.execute(submit)
        if way != "done":
            self.show(submit.call.key.name)
        if way == "answer lost" and outcome.result is CallResult.DONE:
            outcome = Outcome(CallResult.FAILED, "transport closing")
        self.take(self.world.finish(submit, outcome))

    @precondition(lambda self: self.evictions)
    @rule(
        index=st.integers(0, 7),
        way=st.sampled_from(["gone first", "gone later", "leaving", "leaving later", "failed", "skipped"]),
    )
    def answer_eviction(self, index: int, way: str) -> None:
        submit = self.evictions.pop(index % len(self.evictions))
        name, uid = submit.call.key.name, submit.call.key.uid
        is_there = self.alive(name) and self.uid_of[name] == uid
        if way == "failed" and is_there:
            self.take(self.world.finish(submit, Outcome(CallResult.FAILED, "forbidden", 403)))
            return
        self.evicted.add(uid)
        if is_there and way in ("leaving", "skipped"):
            self.show(name)
            self.take(self.world.pod(name, None, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
        elif is_there and way == "gone first":
            self.remove(name)
        result = CallResult.SKIPPED if way == "skipped" else CallResult.DONE
        self.take(self.world.finish(submit, Outcome(result)))
        if is_there and way == "gone later":
            self.remove(name)

    def remove(self, name: str) -> None:
        self.take(self.world.delete(name))
        self.bound.pop(name, None)
        self.shown.discard(name)

    def leaving(self) -> list[str]:
        return [name for name in PODS if self.alive(name) and self.uid_of[name] in self.evicted]

    @rule()
    def reap(self) -> None:
        for name in self.leaving():
            self.remove(name)

    @rule(name=st.sampled_from(PODS))
    def informer(self, name: str) -> None:
        self.show(name)

    @precondition(lambda self: self.steps)
    @rule(index=st.integers(0, 7), error=st.sampled_from(["", "", "broken"]))
    def answer_step(self, index: int, error: str) -> None:
        step = self.steps.pop(index % len(self.steps))
        self.take(self.world.send(StepFinished(step.step, SUCCESS, error)))

    @precondition(lambda self: self.asks)
    @rule(index=st.integers(0, 7), out=st.sets(st.sampled_from(NODES), max_size=2), fails=st.booleans())
    def answer_ask(self, index: int, out: set[str], fails: bool) -> None:
        ask = self.asks.pop(index % len(self.asks))
        event = AskFailed(ask.ask, "no") if fails else Answered(ask.ask, out)
        self.take(self.world.send(event))

    @rule(name=st.sampled_from(PODS), allowed=st.booleans())
    def resolve(self, name: str, allowed: bool) -> None:
        if name in self.uid_of:
            self.take(self.world.send(PermitResolved(self.uid_of[name], "Awkward", allowed, "not allowed")))

    @rule(name=st.sampled_from(PODS), node=st.sampled_from(NODES))
    def bind_by_hand(self, name: str, node: str) -> None:
        """Somebody else binds a pod; only where there is room, so that the room check means something."""
        if not self.alive(name) or name in self.bound or self.free(node) < self.cpu(name):
            return
        self.bound[name] = node
        self.show(name)

    @rule(seconds=st.sampled_from([0.3, 1.0, 3.0, 12.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.take(self.world.wait(seconds))

    # -- laws ------------------------------------------------------------------------------------

    def cpu(self, name: str) -> int:
        return int(self.world.trees[f"ns/{name}"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    def free(self, node: str) -> int:
        """As the engine will count it: bound pods, and those it assumed."""
        held = 0
        for name in PODS:
            if self.alive(name):
                counted = self.world.engine.cluster.node_of(self.uid_of[name])
                if node in (counted, self.bound.get(name)):
                    held += self.cpu(name)
        return ROOM[node] - held

    @invariant()
    def consistent(self) -> None:
        self.world.engine.check_invariants()
        for node in NODES:
            used = sum(self.cpu(name) for name, where in self.bound.items() if where == node)
            assert used <= ROOM[node], f"{node} holds {used} of {ROOM[node]}"
        assert all(count == 1 for count in self.successes.values()), self.successes

    @invariant()
    def reservations_have_owners(self) -> None:
        on_their_way = {uid for uid in self.plugin.reserved if uid in self.world.engine._bindings}
        assert set(self.plugin.reserved) == on_their_way

    def teardown(self) -> None:
        """Everything answered, gates open, room enough: each pod is bound once or says why not."""
        for node in NODES:
            self.node(node, False, False)
        for name in PODS:
            self.change(name, "ungate")
        for _ in range(20):  # less than the periodic flush takes: events alone have to do it
            self.settle()
        for name in self.waiting():
            if "Awkward" not in self.world.engine.waits_on(self.uid_of[name]):
                self.check_has_no_room(name)
        for _ in range(80):
            self.settle()
        self.consistent()
        stats = self.world.engine.statistics()
        assert (stats.in_flight, stats.binding, stats.asks, stats.active) == (0, 0, 0, 0), stats
        assert stats.in_flight_events == {}
        for name in self.waiting():
            position = self.world.position(name, self.uid_of[name])
            assert position in ("unschedulable", "error_backoff", "backoff")
            assert "attempt" in self.world.story(name, self.uid_of[name])
            self.check_has_no_room(name)
            self.check_nobody_would_give_way(name)
        assert not self.world.engine.cluster.evicted

    def waiting(self) -> list[str]:
        return [name for name in PODS if self.alive(name) and name not in self.bound]

    def check_has_no_room(self, name: str) -> None:
        for node in NODES:
            assert self.cpu(name) > self.free(node), f"{name} would fit {node}"

    def check_nobody_would_give_way(self, name: str) -> None:
        priority = self.priority(name)
        for node in NODES:
            lower = [n for n, where in self.bound.items() if where == node and self.priority(n) < priority]
            assert self.cpu(name) > self.free(node) + sum(map(self.cpu, lower)), f"{name} could preempt"

    def priority(self, name: str) -> int:
        return int(self.world.trees[f"ns/{name}"]["spec"]["priority"])

    def settle(self) -> None:
        self.schedule(20)
        while self.binds:
            self.answer_bind(0, "done")
        while self.evictions:
            self.answer_eviction(0, "leaving later")
        self.reap()
        for name in PODS:
            self.informer(name)
            self.resolve(name, True)
        while self.steps:
            self.answer_step(0, "")
        while self.asks:
            self.answer_ask(0, set(), False)
        while self.binds:
            self.answer_bind(0, "shown first")
        self.pass_time(12.0)


EngineMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestEngine = pytest.mark.slow(EngineMachine.TestCase)
