"""NodeVolumeLimits: a driver attaches no more volumes to a node than its CSINode says it can.

Counted is each volume once per node: those of the pods there, and those that VolumeAttachments name. With
the gate VolumeLimitScaling, a driver may ask (CSIDriver.spec.preventPodSchedulingIfMissing) that its volumes
go only where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status
from pilotage.plugins.volumes import hints
from pilotage.plugins.volumes.attaching import (
    Attached,
    attached_by,
    attachments_of,
    has_attachable,
    of_claim,
)
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, NodeView, Rows

MAX_VOLUMES: Final = "node(s) exceed max volume count"
_GATE: Final = "VolumeLimitScaling"
_UNLIMITED: Final = np.iinfo(np.int64).max
_FULL: Final = 1  # bit; driver number n that is missing has bit 2 << n
_MAX_DRIVERS: Final = 62


class _Wanted:
    """What the pod brings, by driver in order of name, and what nodes can take."""

    __slots__ = ("attached", "by_driver", "is_missing", "limits", "memo")

    def __init__(self, by_driver: dict[str, frozenset[Attached]], n_rows: int) -> None:
        self.by_driver = by_driver
        # Driver -> [n_rows] its limit there.
        self.limits: dict[str, Int64] = {name: np.full(n_rows, _UNLIMITED, np.int64) for name in by_driver}
        # [n_rows] bits of drivers that are needed and not installed.
        self.is_missing = np.zeros(n_rows, np.uint64)
        # Node name -> what VolumeAttachments say.
        self.attached: dict[str, set[Attached]] = {}
        # Claim key -> its volume, for claims of pods on nodes.
        self.memo: dict[str, tuple[Attached, ...]] = {}


class NodeVolumeLimits(Plugin):
    """Vector form; the few nodes with a limit for one of the pod's drivers are counted one by one."""

    depends_on = DependsOn.CLUSTER

    def pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Status:
        if not has_attachable(pod):
            return SKIP
        volumes = self._cluster.volumes
        by_driver: dict[str, set[Attached]] = {}
        for one in attached_by(volumes, pod):
            by_driver.setdefault(one.driver, set()).add(one)
        names = sorted(by_driver)[:_MAX_DRIVERS]
        wanted = _Wanted({name: frozenset(by_driver[name]) for name in names}, view.n_rows)
        if by_driver:
            self._read_nodes(view, wanted)
            wanted.attached = attachments_of(volumes, by_driver)
        cycle.write(self._key, wanted)
        return SUCCESS

    def _read_nodes(self, view: NodeView, wanted: _Wanted) -> None:
        for number, name in enumerate(wanted.by_driver):
            is_installed = np.zeros(view.n_rows, np.bool_)
            for node, limit in self._cluster.volumes.nodes_with(name).items():
                row = view.row(node)
                if row is None:
                    continue
                is_installed[row] = True
                if limit is not None:
                    wanted.limits[name][row] = limit
            if self._must_be_installed(name):
                wanted.is_missing[~is_installed] |= np.uint64(2 << number)

    def _must_be_installed(self, name: str) -> bool:
        if not self.handle.gates.get(_GATE, False):
            return False
        driver = self._cluster.volumes.csi_driver(name)
        return driver is not None and bool(driver.spec.prevent_pod_scheduling_if_missing)

    def filter_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        wanted = cycle.read(self._key, _Wanted)
        reasons = _first_bit(wanted.is_missing[rows])
        is_limited = np.zeros(rows.size, np.bool_)
        for limits in wanted.limits.values():
            is_limited |= limits[rows] != _UNLIMITED
        for index in np.flatnonzero(is_limited & (reasons == 0)).tolist():
            if self._exceeds(wanted, view, int(rows[index])):
                reasons[index] = _FULL
        codes = np.where(reasons != 0, np.int8(Code.UNSCHEDULABLE), np.int8(Code.SUCCESS))
        return FilterResult(codes, reasons)

    def _exceeds(self, wanted: _Wanted, view: NodeView, row: int) -> bool:
        node = view.name(row)
        attached = wanted.attached.get(node, set())
        at_most = self._cluster.volumes.attachable_on(node) + len(attached)
        is_live = view.revision[row] >= 0  # no what-if, of which nobody keeps a number
        limits = {name: wanted.limits[name][row] for name in wanted.by_driver}
        if is_live and all(at_most + len(new) <= limits[name] for name, new in wanted.by_driver.items()):
            return False
        used = attached.union(self._attached_on(wanted, view, row))
        for name, new in wanted.by_driver.items():
            limit, added = limits[name], len(new - used)
            if limit != _UNLIMITED and added and sum(one.driver == name for one in used) + added > limit:
                return True
        return False

    def _attached_on(self, wanted: _Wanted, view: NodeView, row: int) -> Iterable[Attached]:
        for info in view.pods(row):
            if not info.pod.spec.volumes:
                continue
            for use in info.claims:
                key = f"{info.namespace}/{use.name}"
                if key not in wanted.memo:
                    claim = self._cluster.volumes.claim(info.namespace, use.name)
                    known = () if claim is None else of_claim(self._cluster.volumes, claim)
                    wanted.memo[key] = known
                yield from wanted.memo[key]
            if len(info.claims) < len(info.pod.spec.volumes):
                yield from attached_by(self._cluster.volumes, info)

    def reason_texts(
        self, cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, bits: int
    ) -> Sequence[str]:
        if bits == _FULL:
            return (MAX_VOLUMES,)
        names = list(cycle.read(self._key, _Wanted).by_driver)
        return (f"{names[bits.bit_length() - 2]} CSI driver is not installed on the node",)

    def events_to_register(self) -> Sequence[EventRegistration]:
        changed = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(Resource.CSI_NODE, changed), hints.limit_grew),
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _gave_up_a_volume),
            EventRegistration(ClusterEvent(Resource.PVC, Action.ADD), hints.is_own_claim),
            EventRegistration(ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE)),
        )

    @property
    def _key(self) -> str:
        return f"{self.name}/wanted"

    @property
    def _cluster(self) -> ClusterState:
        cluster = self.handle.cluster
        assert isinstance(cluster, ClusterState)
        return cluster


def _first_bit(bits: np.typing.NDArray[np.uint64]) -> np.typing.NDArray[np.uint64]:
    """The lowest set bit of each: one missing driver is told, the first by name."""
    lowest: np.typing.NDArray[np.uint64] = bits & (~bits + np.uint64(1))
    return lowest


def _gave_up_a_volume(_pod: PodInfo, old: object | None, _new: object | None) -> Hint:
    if not isinstance(old, PodInfo):
        return Hint.QUEUE
    return Hint.QUEUE if has_attachable(old) and old.node_name else Hint.SKIP
