"""The random lives of test_engine_properties.py with resizes that wait: the same laws, and those of resizes.

A pod that wishes more keeps what it has until it is admitted; its wish counts for new pods, what it has for
other resizes. Nothing is ever written on it, and in the end nobody waits who could have been helped.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from enginekit import only
from pilotage.framework.calls import BindPod, PatchPodStatus
from pilotage.scheduling.messages import Effect, Submit
from properties.test_engine_properties import NODES, PODS, ROOM, EngineMachine
from resizekit import DEFERRED, DISABLED, INFEASIBLE, has


class ResizeMachine(EngineMachine):
    def __init__(self) -> None:
        super().__init__()
        self.has: dict[str, int] = {}  # CPU that a pod with a wish has; exactly those that wish
        self.waiting_resizes: set[str] = set()  # names whose condition says Deferred, and nothing else

    def take(self, effects: list[Effect]) -> None:
        for submit in only(effects, Submit):
            if submit.call.key.name in self.has and self.uid_of[submit.call.key.name] == submit.call.key.uid:
                assert not isinstance(submit.call, PatchPodStatus | BindPod), submit.call
        super().take(effects)

    def held(self, name: str) -> int:
        return self.has.get(name, self.cpu(name))

    def remove(self, name: str) -> None:
        self.has.pop(name, None)
        self.waiting_resizes.discard(name)
        super().remove(name)

    def is_going(self, name: str) -> bool:
        return "deletionTimestamp" in self.world.trees[f"ns/{name}"]["metadata"]

    def counts(self, name: str, node: str) -> bool:
        """Bound there, or about to be: a real kubelet would refuse a pod that comes too late."""
        return node in (self.world.engine.cluster.node_of(self.uid_of[name]), self.bound.get(name))

    # -- rules -----------------------------------------------------------------------------------

    @precondition(lambda self: self.shown)
    @rule(
        index=st.integers(0, 7),
        more=st.integers(1, 3),
        way=st.sampled_from(["deferred", "deferred", "deferred", "infeasible", "disabled"]),
    )
    def wish(self, index: int, more: int, way: str) -> None:
        name = sorted(self.shown)[index % len(self.shown)]
        if self.is_going(name):
            return
        own = self.has.setdefault(name, self.cpu(name))
        conditions = {"deferred": [DEFERRED], "infeasible": [INFEASIBLE], "disabled": [DEFERRED, DISABLED]}
        self.waiting_resizes.discard(name)
        if way == "deferred":
            self.waiting_resizes.add(name)
        self.take(self.world.pod(name, str(own + more), has(str(own), *conditions[way])))

    @precondition(lambda self: self.has)
    @rule(index=st.integers(0, 7), reverts=st.booleans())
    def kubelet_looks(self, index: int, reverts: bool) -> None:
        """The kubelet admits the wish where there is room for it; else the user takes it back."""
        name = sorted(self.has)[index % len(self.has)]
        node = self.bound[name]
        others = sum(self.held(n) for n in PODS if n != name and self.alive(n) and self.counts(n, node))
        if self.is_going(name):
            return
        has_room = others + self.cpu(name) <= ROOM[node] and not reverts
        wanted = self.cpu(name) if has_room else self.has[name]
        del self.has[name]
        self.waiting_resizes.discard(name)
        self.take(self.world.pod(name, str(wanted), has(str(wanted))))

    # -- laws ------------------------------------------------------------------------------------

    @invariant()
    def consistent(self) -> None:
        self.world.engine.check_invariants()
        for node in NODES:
            used = sum(self.held(name) for name, where in self.bound.items() if where == node)
            assert used <= ROOM[node], f"{node} holds {used} of {ROOM[node]}"
        assert all(count == 1 for count in self.successes.values()), self.successes

    def waiting(self) -> list[str]:
        """Asked at the end: the resizes are looked at too."""
        for name in sorted(self.waiting_resizes):
            if self.alive(name) and not self.is_going(name) and self.bound[name] in self.world.trees:
                self.check_resize(name)
        return super().waiting()

    def check_resize(self, name: str) -> None:
        node, own = self.bound[name], self.priority(name)
        there = [n for n, where in self.bound.items() if where == node and n != name]
        others = sum(self.held(n) for n in there)
        firm = sum(self.held(n) for n in there if self.priority(n) >= own)
        is_in_the_way = others + self.cpu(name) > ROOM[node]
        could_help = any(self.priority(n) < own for n in there) and firm + self.cpu(name) <= ROOM[node]
        assert not (is_in_the_way and could_help), f"{name} could be resized on {node}"


ResizeMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestResizes = pytest.mark.slow(ResizeMachine.TestCase)
