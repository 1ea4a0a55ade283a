"""What a dry run needs, and what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures, Origin
from pilotage.framework.status import Code
from pilotage.framework.trials import Trials
from pilotage.plugins.preemption.budgets import Budgets
from pilotage.state.importance import ImportanceIndex
from pilotage.state.nominations import Nominations
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

NO_VICTIMS = "No preemption victims found for incoming pod"


class Candidate(NamedTuple):
    """A node on which the pod would fit once the victims, most important first, are gone."""

    row: int
    victims: tuple[PodInfo, ...]
    violations: int  # victims whose budgets do not allow it


class _NoVictims:
    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (NO_VICTIMS,)


@dataclass(frozen=True, slots=True)
class DryRun:
    """One decision's preemption. `failures` takes why a row is no candidate."""

    trials: Trials
    cycle: CycleState
    pod: PodInfo
    view: NodeView
    nominations: Nominations
    budgets: Budgets
    index: ImportanceIndex
    failures: NodeFailures

    def record_no_victims(self, rows: Rows) -> None:
        if rows.size:
            origin = Origin("DefaultPreemption", _NoVictims(), self.cycle, self.view)
            codes = np.full(rows.size, Code.UNRESOLVABLE, np.int8)
            self.failures.record_bits(origin, rows, codes, np.ones(rows.size, np.uint64))

    def scratch(self) -> NodeFailures:
        """For filter runs whose reasons nobody reads."""
        return NodeFailures(self.view, self.pod)
