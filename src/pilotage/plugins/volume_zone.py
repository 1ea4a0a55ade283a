"""VolumeZone: a pod whose bound volume names zones or regions goes to a node of one of them.

A node without any zone or region label takes every volume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pilotage.api.others import PersistentVolumeClaim
from pilotage.api.selectors import Operator, Requirement
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Resource
from pilotage.framework.plugin import DependsOn, FilterResult, Plugin
from pilotage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from pilotage.framework.vector import reject
from pilotage.plugins.volumes import hints
from pilotage.plugins.volumes.claims import UnusableClaimError, not_found
from pilotage.plugins.volumes.zones import KEYS, STABLE, topology_labels
from pilotage.state.cluster import ClusterState
from pilotage.state.node_match import requirements_mask
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import ABSENT_LABEL, Bool, NodeView, Rows
from pilotage.state.volume_values import WAIT_FOR_FIRST_CONSUMER, class_of

NO_ZONE: Final = "node(s) had no available volume zone"


class VolumeZone(Plugin):
    """Vector form."""

    depends_on = DependsOn.CLUSTER

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _view: NodeView) -> Status:
        """Skip when no volume of the pod names a zone."""
        if not pod.claims:
            return SKIP
        try:
            found = [self._topology(pod.namespace, use.name) for use in pod.claims]
        except UnusableClaimError as problem:
            return problem.status
        needed = tuple(item for topology in found for item in topology.items())
        if not needed:
            return SKIP
        cycle.write(f"{self.name}/needed", needed)
        return SUCCESS

    def _topology(self, namespace: str, name: str) -> Mapping[str, frozenset[str]]:
        """What the claim's volume demands. Raises UnusableClaimError."""
        if not name:
            raise _unusable("PersistentVolumeClaim had no name")
        volumes = self._cluster.volumes
        claim = volumes.claim(namespace, name)
        if claim is None:
            raise _unusable(not_found("persistentvolumeclaim", name))
        if not claim.spec.volume_name:
            self._check_delayed(claim)
            return {}
        volume = volumes.volume(claim.spec.volume_name)
        if volume is None:
            raise _unusable(not_found("persistentvolume", claim.spec.volume_name))
        return topology_labels(volume.view)

    def _check_delayed(self, claim: PersistentVolumeClaim) -> None:
        name = class_of(claim)
        if not name:
            raise _unusable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._cluster.volumes.storage_class(name)
        if found is None:
            raise _unusable(not_found("storageclass.storage.k8s.io", name))
        if found.volume_binding_mode is None:
            raise _unusable(f'VolumeBindingMode not set for StorageClass "{name}"')
        if found.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            raise _unusable("PersistentVolume had no name")

    def filter_nodes(self, cycle: CycleState, _pod: PodInfo, view: NodeView, rows: Rows) -> FilterResult:
        is_out = np.zeros(view.n_rows, np.bool_)
        for key, values in cycle.read(f"{self.name}/needed", tuple):
            is_out |= ~_inside(view, key, values)
        return reject((is_out & _is_zoned(view))[rows], Code.UNRESOLVABLE)

    def reason_texts(
        self, _cycle: CycleState, _pod: PodInfo, _view: NodeView, _row: int, _bits: int
    ) -> Sequence[str]:
        return (NO_ZONE,)

    def events_to_register(self) -> Sequence[EventRegistration]:
        changed = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), hints.delaying_class_came),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            EventRegistration(ClusterEvent(Resource.PVC, changed), hints.is_own_claim),
            EventRegistration(ClusterEvent(Resource.PV, changed), hints.volume_zone_changed),
        )

    @property
    def _cluster(self) -> ClusterState:
        cluster = self.handle.cluster
        assert isinstance(cluster, ClusterState)
        return cluster


def _unusable(text: str) -> UnusableClaimError:
    return UnusableClaimError(unresolvable(text))


def _is_zoned(view: NodeView) -> Bool:
    """[n_rows] nodes with any of the labels."""
    mask = np.zeros(view.n_rows, np.bool_)
    for key in KEYS:
        mask |= view.label_column(key) != ABSENT_LABEL
    return mask


def _inside(view: NodeView, key: str, values: frozenset[str]) -> Bool:
    """[n_rows] nodes whose label has one of the values; of a deprecated key they may lack, its successor."""
    inside = requirements_mask(view, (Requirement(key, Operator.IN, values),))
    stable = STABLE.get(key)
    if stable is not None:
        lacks = view.label_column(key) == ABSENT_LABEL
        inside |= lacks & requirements_mask(view, (Requirement(stable, Operator.IN, values),))
    return inside
