"""One pod on its way from the chosen node to its bind: its stage and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotage.framework.cycle import CycleState
from pilotage.framework.profile import Profile
from pilotage.framework.status import Status
from pilotage.scheduling.bindingtimes import BindingTimes
from pilotage.scheduling.queue_record import Record
from pilotage.scheduling.transitions import Stage, Step, next_stage
from pilotage.state.podinfo import PodInfo

_FINAL = (Stage.ENDED, Stage.FAILED)


@dataclass(slots=True, eq=False)
class Binding:
    record: Record
    pod: PodInfo  # the object that was decided on
    node: str
    profile: Profile
    cycle: CycleState
    stage: Stage = Stage.ASSUMED
    # Number of the next plugin at the present point.
    position: int = 0
    # Plugins that said Wait at Permit -> their timeout in seconds, until they allow the pod.
    waits: dict[str, float] = field(default_factory=dict)
    # What is outstanding: a plugin's step or the bind call's ticket, at most one of them; 0 for none.
    step: int = 0
    ticket: int = 0
    waiting_plugin: str = ""
    # PreBind waits for objects to change, not for a step or a ticket.
    awaits_objects: bool = False
    # Other pods were or may have been decided while this one was assumed, or nominated before.
    was_seen: bool = False
    # How long its points took, for metrics; None until it is taken over.
    times: BindingTimes | None = None
    # Bind plugins that go before those of the profile.
    binders: Sequence[Any] = ()
    # The outstanding call only reads what an extender did: cancelling it would undo nothing.
    is_confirming: bool = False
    # It is to end: a pod of higher priority needs the room.
    is_preempted: bool = False

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def is_running(self) -> bool:
        """Nothing is waited for: the next plugin may run."""
        return not self.waiting_plugin and self.stage not in (Stage.WAITING, *_FINAL)

    def move(self, step: Step, failure: Status | None = None) -> None:
        """To the next stage. Raises IllegalMoveError and changes nothing where the table has none."""
        before, self.stage = self.stage, next_stage(self.stage, step)
        if self.times is not None:
            self.times.moved(before, step, failure)
        if step in (Step.PRE_BIND, Step.BIND):
            self.position = 0
        if step is Step.WAIT:
            self.was_seen = True

    def report_times(self) -> None:
        if self.times is not None:
            self.times.report(self.uid, self.profile.name)

    def next_plugin(self) -> Any | None:
        """The next plugin to run at the present point; None when all have run."""
        plugins = {
            Stage.RESERVED: self.profile.permit,
            Stage.PERMITTING: self.profile.permit,
            Stage.PRE_BINDING: self.profile.pre_bind,
            Stage.BINDING: (*self.binders, *self.profile.bind),
        }[self.stage]
        while self.position < len(plugins):
            plugin = plugins[self.position]
            self.position += 1
            if self.stage is Stage.PRE_BINDING and plugin.name in self.cycle.skip_pre_bind:
                continue
            return plugin
        return None

    def waiting_for(self, plugin: str) -> None:
        self.waiting_plugin = plugin
        self.was_seen = True

    def resume(self) -> str:
        """What was waited for has come; returns the plugin whose step or call it was."""
        plugin, self.waiting_plugin = self.waiting_plugin, ""
        self.step = self.ticket = 0
        self.awaits_objects = False
        return plugin

    def check_invariants(self) -> None:
        assert self.stage not in _FINAL, self.stage
        assert not (self.step and self.ticket)
        assert bool(self.waiting_plugin) == bool(self.step or self.ticket or self.awaits_objects)
        assert self.waiting_plugin or self.waits, f"{self.pod.key} waits for nothing in {self.stage}"
        assert self.was_seen
        if self.stage is Stage.WAITING:
            assert self.waits
            assert not self.waiting_plugin
