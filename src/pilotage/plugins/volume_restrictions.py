"""VolumeRestrictions: disks that cannot be mounted twice on a node, claims that only one pod may use.

A ReadWriteOncePod claim in use rejects the pod on every node, but not for good: its user may be preempted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from pilotage.plugins.volumes import hints
from pilotage.plugins.volumes.claims import not_found
from pilotage.plugins.volumes.disks import Disk, collide, disks_of
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, NodeView, Rows
from pilotage.state.volume_values import READ_WRITE_ONCE_POD

_DISK, _CLAIM = 1, 2
TEXTS: Final = {
    _DISK: "node(s) had no available disk",
    _CLAIM: (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
        "by another pod"
    ),
}


class _Needs:
    """What may conflict: the pod's own disks and its ReadWriteOncePod claims, `in_use` of them by others."""

    __slots__ = ("claims", "disks", "in_use")

    def __init__(self, disks: tuple[Disk, ...], claims: frozenset[str], in_use: int) -> None:
        self.disks = disks
        self.claims = claims
        self.in_use = in_use

    def clone(self) -> _Needs:
        return _Needs(self.disks, self.claims, self.in_use)

    def count(self, pod: PodInfo, other: PodInfo) -> int:
        """How many of the claims `other` uses."""
        if pod.namespace != other.namespace:
            return 0
        return len(self.claims.intersection(_named(other)))


class VolumeRestrictions(Plugin):
    """Vector form."""

    depends_on = DependsOn.CLUSTER

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        if not pod.pod.spec.volumes:
            return SKIP
        volumes = self._cluster.volumes
        exclusive = set()
        for name in _named(pod):
            claim = volumes.claim(pod.namespace, name)
            if claim is None:
                return unresolvable(not_found("persistentvolumeclaim", name))
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.add(name)
        in_use = sum(volumes.is_used(pod.namespace, name) for name in exclusive)
        disks = disks_of(pod.pod)
        if not disks and not in_use:
            return SKIP
        cycle.write(self._key, _Needs(disks, frozenset(exclusive), in_use))
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodInfo, other: PodInfo, _row: int, _view: NodeView) -> Status:
        needs = cycle.read(self._key, _Needs)
        needs.in_use += needs.count(pod, other)
        return SUCCESS

    def remove_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, _row: int, _view: NodeView
    ) -> Status:
        needs = cycle.read(self._key, _Needs)
        needs.in_use -= needs.count(pod, other)
        return SUCCESS

    def filter_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        needs = cycle.read(self._key, _Needs)
        bits = np.full(rows.size, _CLAIM if needs.in_use > 0 else 0, np.uint64)
        if needs.disks:
            bits[_has_conflict(needs.disks, view, rows)] = _DISK
        codes = np.where(bits != 0, np.int8(Code.UNSCHEDULABLE), np.int8(Code.SUCCESS))
        return FilterResult(codes, bits)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, bits: int
    ) -> Sequence[str]:
        return (TEXTS[bits],)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _gave_up_a_volume),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),
            EventRegistration(ClusterEvent(Resource.PVC, Action.ADD), hints.is_named_claim),
        )

    @property
    def _key(self) -> str:
        return f"{self.name}/needs"

    @property
    def _cluster(self) -> ClusterState:
        cluster = self.handle.cluster
        assert isinstance(cluster, ClusterState)
        return cluster


def _named(pod: PodInfo) -> list[str]:
    return [use.name for use in pod.claims if not use.is_generated]


def _has_conflict(disks: tuple[Disk, ...], view: NodeView, rows: Rows) -> Bool:
    """Aligned with `rows`. Few pods mount disks by themselves, so pods are looked at one by one."""
    found = (
        any(
            collide(own, other)
            for info in view.pods(row)
            if info.pod.spec.volumes
            for other in disks_of(info.pod)
            for own in disks
        )
        for row in rows.tolist()
    )
    return np.fromiter(found, np.bool_, rows.size)


def _gave_up_a_volume(pod: PodInfo, old: object | None, _new: object | None) -> Hint:
    """A claim that both name (whether it is exclusive is not looked up), or a disk that cannot be shared."""
    if not isinstance(old, PodInfo):
        return Hint.QUEUE
    if pod.namespace == old.namespace and set(_named(pod)).intersection(_named(old)):
        return Hint.QUEUE
    others = disks_of(old.pod)
    return Hint.QUEUE if any(collide(own, one) for own in disks_of(pod.pod) for one in others) else Hint.SKIP
