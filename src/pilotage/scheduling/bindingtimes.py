"""How long a pod was at each extension point between its node and its bind, for metrics.

Law: measured by the times of stimuli, thus only what was waited for; a point is counted where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotage.framework.status import SUCCESS, Status, wait
from pilotage.scheduling.outbox import Outbox
from pilotage.scheduling.transitions import Stage, Step

_POINTS = {
    Stage.RESERVED: "Permit",
    Stage.PERMITTING: "Permit",
    Stage.WAITING: "WaitOnPermit",
    Stage.PRE_BINDING: "PreBind",
    Stage.BINDING: "Bind",
}
_GOES_ON = (Step.RESERVE, Step.PERMIT_STEP, Step.PRE_BIND)  # no point ends with these


@dataclass(slots=True)
class BindingTimes:
    outbox: Outbox
    since: float  # when the present point began
    # Extension point, word of its status, seconds.
    points: list[tuple[str, str, float]] = field(default_factory=list)

    def moved(self, stage: Stage, step: Step, status: Status | None) -> None:
        """`stage` was left by `step`. `status`: why it failed; None where the pod went away or was bound."""
        now = self.outbox.now
        if step is not Step.FAIL:
            status = wait() if step is Step.WAIT else SUCCESS
        if step not in _GOES_ON and stage in _POINTS and status is not None:
            self.points.append((_POINTS[stage], status.code.word, now - self.since))
        self.since = now

    def report(self, uid: str, profile: str) -> None:
        self.outbox.binding_ended(uid, profile, self.points)
