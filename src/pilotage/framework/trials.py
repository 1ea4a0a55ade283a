"""What-ifs for PostFilter plugins: would the pod fit if other pods came or went.

Preemption asks the profile's own filters, so a plugin that wants to try gets them from the profile that it
serves in. Laws: a trial never touches live state (views are overlays, cycle states clones) and is never
kept in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.filtering import PreFilterOutcome
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.status import Status
from pilotage.state.nominations import Nominations
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows


class Trials(Protocol):
    """The profile, as a plugin that tries may use it."""

    def run_trial(
        self,
        cycle: CycleState,
        pod: PodInfo,
        view: NodeView,
        rows: Rows,
        failures: NodeFailures,
        leading_only: bool = False,
    ) -> Rows:
        """The rows that pass the filters. `leading_only`: only the first filters, as far as each depends on
        the row alone. Raises PluginFailedError."""

    def begin_cycle(self, pod: PodInfo) -> CycleState:
        """A state to run PreFilter with."""

    def run_pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterOutcome: ...

    def is_row_bound(self, cycle: CycleState) -> bool:
        """Whether answers in this cycle depend on each row alone, so that rows may change together."""

    def run_add_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status: ...

    def run_remove_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status: ...


@runtime_checkable
class TrialPlugin(Protocol):
    def use_trials(self, trials: Trials) -> None:
        """Called once, when the profile is built."""


def entitled(nominations: Nominations, node: str, pod: PodInfo) -> Sequence[PodInfo]:
    """Other pods nominated to the node whose room `pod` must respect: equal or higher priority."""
    found = nominations.on_node(node) if len(nominations) else ()
    return [other for other in found if other.priority >= pod.priority and other.uid != pod.uid]


def passes(
    trials: Trials,
    cycle: CycleState,
    pod: PodInfo,
    view: NodeView,
    row: int,
    beside: Sequence[PodInfo],
    failures: NodeFailures,
) -> bool:
    """Whether the pod passes on the row with the pods of `beside` there, and without them.

    Raises PluginFailedError.
    """
    only = np.array([row], np.intp)
    if beside and not _passes_beside(trials, cycle, pod, view, row, beside, failures):
        return False
    return bool(trials.run_trial(cycle, pod, view, only, failures).size)


def _passes_beside(
    trials: Trials,
    cycle: CycleState,
    pod: PodInfo,
    view: NodeView,
    row: int,
    beside: Sequence[PodInfo],
    failures: NodeFailures,
) -> bool:
    overlay, changed = NodeOverlay(view), cycle.clone()
    for other in beside:
        overlay.add_pod(row, other)
        succeed(trials.run_add_pod(changed, pod, other, row, overlay))
    return bool(trials.run_trial(changed, pod, overlay, np.array([row], np.intp), failures).size)


def succeed(status: Status) -> None:
    """Raises PluginFailedError where AddPod or RemovePod did not succeed."""
    if not status.is_success:
        raise PluginFailedError(status)
