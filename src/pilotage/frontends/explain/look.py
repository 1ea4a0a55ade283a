"""What the explanation of a rejection may look at: the survey, and the node as the filter saw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.profile import Profile
from pilotage.framework.trials import entitled
from pilotage.scheduling.decide import Survey
from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


class Place(NamedTuple):
    """Cycle state and nodes as the filters saw them for a row; `beside`: nominated pods in the way."""

    cycle: CycleState
    view: NodeView
    beside: tuple[PodInfo, ...] = ()


@dataclass(frozen=True)
class Look:
    """One survey of one pod."""

    profile: Profile
    cluster: ClusterState
    pod: PodInfo
    cycle: CycleState
    view: NodeView
    survey: Survey
    # What explanations found out for one node and may use for the next one.
    memo: dict[object, Any] = field(default_factory=dict, compare=False)

    def place(self, row: int) -> Place:
        """The node as the filters saw it when they rejected it: pods nominated to it are counted first."""
        beside = tuple(entitled(self.cluster.nominations, self.view.name(row), self.pod))
        if not beside:
            return Place(self.cycle, self.view)
        key = ("place", row)
        if key not in self.memo:
            self.memo[key] = self._beside(row, beside)
        found: Place = self.memo[key]
        return found

    def _beside(self, row: int, beside: tuple[PodInfo, ...]) -> Place:
        """`beside` of the answer is empty where the node has no room even without them."""
        overlay, cycle = NodeOverlay(self.view), self.cycle.clone()
        for other in beside:
            overlay.add_pod(row, other)
            self.profile.run_add_pod(cycle, self.pod, other, row, overlay)
        if self._passes(cycle, overlay, row):
            return Place(self.cycle, self.view)
        return Place(cycle, overlay, beside if self._passes(self.cycle, self.view, row) else ())

    def _passes(self, cycle: CycleState, view: NodeView, row: int) -> bool:
        only, scratch = np.array([row], np.intp), NodeFailures(view, self.pod)
        try:
            return bool(self.profile.run_trial(cycle, self.pod, view, only, scratch).size)
        except PluginFailedError:
            return False
