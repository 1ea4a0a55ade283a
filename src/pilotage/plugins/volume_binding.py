"""VolumeBinding: claims that wait for their first consumer are bound or provisioned for the node chosen.

Filter says where a pod can have its claims, Reserve promises the choice in memory, where the next decision
sees it; PreBind writes it and waits until the volume controller has bound the claims, and only then is the
pod bound. With the gate StorageCapacityScoring, nodes are scored by how full the pod's volumes get them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from pilotage.framework.args import PluginArgs, read_args
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import AwaitObjects, DependsOn, FilterResult, Handle, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable
from pilotage.plugins.resource_scoring import ShapePoint, shape_scores
from pilotage.plugins.volumes import hints
from pilotage.plugins.volumes.claims import PodClaims, UnusableClaimError, claims_of
from pilotage.plugins.volumes.fulfilment import Reserved
from pilotage.plugins.volumes.placement import TEXTS, Misfit, Placement, place
from pilotage.plugins.volumes.scoring import DEFAULT_SHAPE, capacity_scores
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, NodeView, Rows
from pilotage.state.volumes import Volumes

UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
_GATE: Final = "StorageCapacityScoring"


class VolumeBindingArgs(PluginArgs, frozen=True):
    """`shape`: score (0 to 10) by utilization (percent), only with the gate StorageCapacityScoring."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] | None = None


class _Cycle:
    """One pod's claims in one cycle; the placement is computed at the first Filter and shared by what-ifs."""

    __slots__ = ("claims", "placement")

    def __init__(self, claims: PodClaims) -> None:
        self.claims = claims
        self.placement: Placement | None = None

    def placed(self, volumes: Volumes, view: NodeView) -> Placement:
        if self.placement is None:
            self.placement = place(volumes, view, self.claims)
        return self.placement


class VolumeBinding(Plugin):
    """Vector form."""

    depends_on = DependsOn.CLUSTER
    args_type: ClassVar[type[PluginArgs]] = VolumeBindingArgs

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        settings = read_args(VolumeBindingArgs, args)
        self._timeout = float(settings.bind_timeout_seconds)
        self._shape = shape_scores(settings.shape or DEFAULT_SHAPE)

    # Filter

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        if not pod.claims:
            return SKIP
        try:
            claims = claims_of(self._cluster.volumes, pod)
        except UnusableClaimError as problem:
            return problem.status
        if claims.immediate:
            return unresolvable(UNBOUND_IMMEDIATE)
        cycle.write(self._key, _Cycle(claims))
        return SUCCESS

    def filter_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        placement = cycle.read(self._key, _Cycle).placed(self._cluster.volumes, view)
        misfits = placement.misfits[rows]
        codes = np.where(misfits != 0, np.int8(Code.UNRESOLVABLE), np.int8(Code.SUCCESS))
        return FilterResult(codes, misfits.astype(np.uint64))

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, bits: int
    ) -> Sequence[str]:
        return tuple(text for misfit, text in TEXTS.items() if misfit & Misfit(bits))

    # Score

    def pre_score(self, cycle: CycleState, _pod: PodInfo, _view: NodeView, _rows: Rows) -> Status:
        found = cycle.get(self._key)
        is_wanted = self.handle.gates.get(_GATE, False) and isinstance(found, _Cycle) and found.claims.delayed
        return SUCCESS if is_wanted else SKIP

    def score_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        placement = cycle.read(self._key, _Cycle).placed(self._cluster.volumes, view)
        return capacity_scores(placement, rows, self._shape)

    # Reserve

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        found = cycle.get(self._key)
        if not isinstance(found, _Cycle) or not found.claims.delayed:
            return SUCCESS
        nodes = self._cluster.nodes
        row = nodes.row(node_name)
        if row is None:
            return error(f'node "{node_name}" is gone')
        placement = found.placed(self._cluster.volumes, nodes)
        reserved = Reserved(node_name, placement.volumes_at(row), placement.provisioned_at(row))
        for volume, claim in reserved.given:
            self._cluster.volumes.give(pod.uid, volume.name, claim)
        for claim in reserved.sent:
            self._cluster.volumes.send(pod.uid, claim, node_name)
        cycle.write(self._reserved_key, reserved)
        return SUCCESS

    def unreserve(self, _cycle: CycleState, pod: PodInfo, _node_name: str) -> None:
        self._cluster.volumes.release(pod.uid)

    # PreBind

    def pre_bind_pre_flight(self, cycle: CycleState, _pod: PodInfo, _node_name: str) -> Status:
        reserved = cycle.get(self._reserved_key)
        return SUCCESS if isinstance(reserved, Reserved) and not reserved.is_empty else SKIP

    def pre_bind(self, cycle: CycleState, pod: PodInfo, _node_name: str) -> Status | AwaitObjects:
        """Every claim bound, or an error that names the first one that will not be."""
        reserved = cycle.get(self._reserved_key)
        if not isinstance(reserved, Reserved):
            return SUCCESS
        cluster = self._cluster

        def check(is_written: bool) -> Status | None:
            status = reserved.check(cluster, is_written)
            if status is not None and status.is_success:
                cluster.volumes.release(pod.uid)  # the objects themselves say so now
            return status

        def timed_out() -> Status:
            names = ", ".join(f'"{name}"' for name in reserved.unbound(cluster))
            return error(f"binding volumes: timed out after {self._timeout:g}s waiting for claims {names}")

        return AwaitObjects(
            reserved.calls(), lambda: reserved.watched(cluster), check, self._timeout, timed_out
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        def on(resource: Resource, action: Action, hint: Any = None) -> EventRegistration:
            return EventRegistration(ClusterEvent(resource, action), hint)

        changed = Action.ADD | Action.UPDATE
        return (
            on(Resource.STORAGE_CLASS, changed, hints.class_may_help),
            on(Resource.PVC, changed, hints.is_own_claim),
            on(Resource.PV, changed),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, changed, hints.csi_node_may_help),
            on(Resource.CSI_DRIVER, Action.UPDATE, hints.driver_stopped_counting),
            on(Resource.CSI_STORAGE_CAPACITY, changed, hints.capacity_grew),
        )

    @property
    def _key(self) -> str:
        return f"{self.name}/claims"

    @property
    def _reserved_key(self) -> str:
        return f"{self.name}/reserved"

    @property
    def _cluster(self) -> ClusterState:
        cluster = self.handle.cluster
        assert isinstance(cluster, ClusterState)
        return cluster
