"""NodeDeclaredFeatures: a pod that uses a feature of the node's agent goes only where that is declared.

What a pod needs is read from its spec. A need ends with the release in which every supported node has the
feature: nodes then no longer declare it, and it must not be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pilotage.api.nodes import Node
from pilotage.api.pods import PodSpec
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Handle, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status
from pilotage.framework.vector import reject
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

MISSING: Final = "node(s) didn't match Pod's required features"
GATE: Final = "NodeDeclaredFeatures"

Release = tuple[int, int]
TARGET: Final[Release] = (1, 37)
"""The release whose decisions are taken here."""


class Feature(NamedTuple):
    """`last_release`: the last one in which nodes declare it; None while no end is set."""

    name: str
    is_used: Callable[[PodSpec], bool]
    last_release: Release | None = None


def _restarts_all_containers(spec: PodSpec) -> bool:
    containers = (*(spec.init_containers or ()), *spec.containers)
    return any(
        rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules or ()
    )


def _maps_users_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


FEATURES: Final = (
    Feature("RestartAllContainersOnContainerExits", _restarts_all_containers),
    Feature("UserNamespacesHostNetworkSupport", _maps_users_on_host_network),
)
"""Features that a pod's spec alone can ask for; others concern updates of running pods."""


def needed_features(
    spec: PodSpec, features: Sequence[Feature] = FEATURES, target: Release = TARGET
) -> frozenset[str]:
    """Names of the features that a pod with this spec needs from its node in that release."""
    return frozenset(
        feature.name
        for feature in features
        if (feature.last_release is None or target <= feature.last_release) and feature.is_used(spec)
    )


class NodeDeclaredFeatures(Plugin):
    depends_on = DependsOn.ROW

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._is_on = handle is None or handle.gates.get(GATE, True)

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        needed = self._needed(pod)
        if not needed:
            return SKIP
        cycle.write(self.name, needed)
        return SUCCESS

    def filter_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        needed = cycle.read(self.name, frozenset)
        return reject(~view.declares(needed)[rows], Code.UNRESOLVABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (MISSING,)

    def _needed(self, pod: PodInfo) -> frozenset[str]:
        return needed_features(pod.pod.spec) if self._is_on else frozenset()

    # Requeueing

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        own = ClusterEvent(Resource.TARGET_POD, Action.UPDATE)
        return EventRegistration(node, self._node_has_them), EventRegistration(own, self._needs_changed)

    def _node_has_them(self, pod: PodInfo, _old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node):
            return Hint.SKIP
        return _queue_if(self._needed(pod) <= frozenset(new.status.declared_features or ()))

    def _needs_changed(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(old, PodInfo) or not isinstance(new, PodInfo) or new.uid != pod.uid:
            return Hint.SKIP
        return _queue_if(self._needed(old) != self._needed(new))


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
