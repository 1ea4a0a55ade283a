"""What the explanation of a rejection may look at: the survey, and the node as the filter saw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.profile import Profile
from pilotage.framework.trials import entitled
from pilotage.scheduling.decide import Survey
from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


class Place(NamedTuple):
    """Cycle state and nodes as the filters saw them for one row; `beside`: nominated pods counted there."""

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
        """The node as it is, or with the pods nominated to it when it is they that leave no room."""
        name = self.view.name(row)
        beside = tuple(entitled(self.cluster.nominations, name, self.pod))
        if not beside or not self._passes_alone(row):
            return Place(self.cycle, self.view)
        overlay, cycle = NodeOverlay(self.view), self.cycle.clone()
        for other in beside:
            overlay.add_pod(row, other)
            self.profile.run_add_pod(cycle, self.pod, other, row, overlay)
        return Place(cycle, overlay, beside)

    def _passes_alone(self, row: int) -> bool:
        only, scratch = np.array([row], np.intp), NodeFailures(self.view, self.pod)
        return bool(self.profile.run_trial(self.cycle, self.pod, self.view, only, scratch).size)
