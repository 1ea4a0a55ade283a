"""One deferred resize's decision: does it fit on its own node, and if not, who has to go.

Laws
- Only the pod's node is looked at, and only plugins that take part in resizes are asked; nothing is placed.
- The pod is judged as if it had to come to its node again: the view is the node without it, so neither its
  amounts nor its place among the pods count twice. Where queue and cache know different amounts, the larger
  ones count.
- The other pods count with what they have (the larger of allocated and actual), as the kubelet counts them;
  what they wish would cost victims that make room for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.plugin import Preemption
from pilotage.framework.profile import Profile
from pilotage.framework.status import SUCCESS, Code, Status, unresolvable
from pilotage.framework.trials import entitled, passes
from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView

FITS = "pod resize fits, waiting for Kubelet actuation"
OTHER_NODE = "pod assigned to different node"


class ResizeOutcome(StrEnum):
    """What a cycle found; the words are labels of metrics."""

    FITS = "fits"
    PREEMPTS = "preempts"
    WAITS = "waits"  # for pods that are leaving already
    REJECTED = "rejected"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ResizeVerdict:
    """`message` is for people. `rejectors`: the plugins whose events may help; none after an error.

    `preemption`: whom to remove; no units where terminating pods make room.
    """

    outcome: ResizeOutcome
    message: str
    rejectors: frozenset[str] = frozenset()
    preemption: Preemption | None = None
    has_tried_preemption: bool = False  # PostFilter ran


def resize_view(nodes: NodeView, row: int, pod: PodInfo) -> NodeOverlay:
    """The pod's node without it, with the other pods as the kubelet counts them."""
    view = NodeOverlay(nodes)
    for other in nodes.pods(row):
        if other.uid == pod.uid:
            view.remove_pod(row, other.uid)
        elif (held := other.as_held()) is not other:
            view.replace_pod(row, held)
    return view


def as_resized(cluster: ClusterState, pod: PodInfo) -> PodInfo:
    """The pod, asking for the larger of what the queue and the cache know."""
    cached = cluster.pod(pod.uid) or pod
    names = {*pod.usage, *cached.usage}
    return pod.asking_for({name: max(pod.usage.get(name, 0), cached.usage.get(name, 0)) for name in names})


def decide_resize(profile: Profile, cluster: ClusterState, pod: PodInfo) -> ResizeVerdict:
    """Never raises what a plugin raises: that is a verdict of its own."""
    try:
        return _Cycle(profile, cluster, pod).run()
    except PluginFailedError as exc:
        return _failed(exc.status)


def _failed(status: Status) -> ResizeVerdict:
    return ResizeVerdict(ResizeOutcome.ERROR, status.message)


class _Cycle:
    def __init__(self, profile: Profile, cluster: ClusterState, pod: PodInfo) -> None:
        self._profile = profile
        self._cluster = cluster
        self._node = pod.node_name
        self._pod = as_resized(cluster, pod)
        self._cycle: CycleState = profile.begin_cycle(pod)

    def run(self) -> ResizeVerdict:
        """Raises PluginFailedError."""
        if self._pod.defect:
            return self._rejected(unresolvable(self._pod.defect))
        row = self._cluster.nodes.row(self._node)
        if row is None:
            return self._rejected(unresolvable("node is not known"))
        view = resize_view(self._cluster.nodes, row, self._pod)
        outcome = self._profile.run_pre_filter(self._cycle, self._pod, view)
        if outcome.status.is_success and (outcome.node_names is None or self._node in outcome.node_names):
            return self._filter(view, row)
        status = outcome.absent if outcome.status.is_success else outcome.status
        return self._rejected(status) if status.is_rejection else _failed(status)

    def _filter(self, view: NodeOverlay, row: int) -> ResizeVerdict:
        failures = NodeFailures(view, self._pod)
        failures.absent = unresolvable(OTHER_NODE)
        beside = entitled(self._cluster.nominations, self._node, self._pod)
        if passes(self._profile, self._cycle, self._pod, view, row, beside, failures):
            return ResizeVerdict(ResizeOutcome.FITS, FITS, self._profile.resize_rejectors())
        status = failures.status(row)
        if not self._profile.post_filter:
            return self._rejected(status)
        result = self._profile.run_post_filter(self._cycle, self._pod, view, failures)
        verdict = self._after_post_filter(status, result.status, result.preemption)
        return replace(verdict, has_tried_preemption=True)

    def _after_post_filter(
        self, rejection: Status, status: Status, preemption: Preemption | None
    ) -> ResizeVerdict:
        if not status.is_success or preemption is None:
            is_error = not status.is_success and not status.is_rejection
            return _failed(status) if is_error else self._rejected(rejection, status)
        outcome = ResizeOutcome.PREEMPTS if preemption.units else ResizeOutcome.WAITS
        message = self._text(rejection, status)
        if preemption.units:
            names = ", ".join(victim.key for unit in preemption.units for victim in unit.pods)
            message = f"{message}; preempts {names}"
        return ResizeVerdict(outcome, message, self._profile.resize_rejectors(), preemption)

    def _rejected(self, rejection: Status, status: Status = SUCCESS) -> ResizeVerdict:
        """Who says that nothing helps is the only one to be asked whether it does by now."""
        rejectors = self._profile.resize_rejectors()
        if rejection.code is Code.UNRESOLVABLE and rejection.plugin:
            rejectors = frozenset({rejection.plugin})
        return ResizeVerdict(ResizeOutcome.REJECTED, self._text(rejection, status), rejectors)

    def _text(self, rejection: Status, status: Status) -> str:
        texts = (f"node {self._node}: {rejection.message}", *status.reasons)
        return "; ".join(text for text in texts if text)
