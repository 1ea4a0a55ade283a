"""Where a pod's claims can be had: for all nodes at once, and for each node which volume goes to which claim.

Laws
- A bound claim fits the nodes that its volume reaches. Reasons of bound and of unbound claims add up; of
  the bound ones, and of the ones to be provisioned, the first that fails decides.
- An unbound claim takes the volume that is reserved for it already, else the smallest one that fits, else
  it is provisioned. Smaller claims choose first; a volume is given once.
- A claim that is on its way to a node is provisioned there or nowhere. One sent to a node that is gone is
  free again.
- What a node offers does not depend on its pods, so one computation serves a cycle with all its what-ifs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from typing import Final

import numpy as np

from pilotage.api.others import PersistentVolumeClaim, StorageClass
from pilotage.api.selectors import Operator, Requirement
from pilotage.plugins.volumes.capacity import room_for
from pilotage.plugins.volumes.claims import PodClaims
from pilotage.state.node_match import matcher_mask, requirements_mask
from pilotage.state.view import Bool, Int32, Int64, NodeView
from pilotage.state.volume_values import (
    NO_PROVISIONER,
    Request,
    Volume,
    class_of,
    compile_request,
    is_choice,
    is_for,
    is_usable,
)
from pilotage.state.volumes import Volumes

NONE: Final = -1  # in `Matched.choice`: no volume on that node


class Misfit(IntFlag):
    """Why a node cannot have the claims; texts come in this order."""

    AFFINITY = 1
    NO_VOLUME = 2
    NO_SPACE = 4
    GONE = 8


TEXTS: Final = {
    Misfit.AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    Misfit.NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    Misfit.NO_SPACE: "node(s) did not have enough free storage",
    Misfit.GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


@dataclass(frozen=True, slots=True)
class Matched:
    """An unbound claim and the volume chosen for it by row: an index into `volumes`, or NONE."""

    request: Request
    volumes: tuple[Volume, ...]
    choice: Int32


@dataclass(slots=True)
class Provisioned:
    """A claim that is made for the node, on the rows of `rows`. `capacity`: bytes there, 0 for unknown."""

    request: Request
    rows: Bool
    capacity: Int64 | None = None


@dataclass(slots=True)
class Placement:
    """All of it for one pod. `misfits`: a set of `Misfit` per row, 0 where the pod can have its claims."""

    misfits: Int64
    matched: list[Matched] = field(default_factory=list)
    provisioned: list[Provisioned] = field(default_factory=list)

    def volumes_at(self, row: int) -> list[tuple[Volume, PersistentVolumeClaim]]:
        """What is bound when the pod goes to that row."""
        return [
            (one.volumes[index], one.request.view)
            for one in self.matched
            if (index := int(one.choice[row])) != NONE
        ]

    def provisioned_at(self, row: int) -> list[PersistentVolumeClaim]:
        return [one.request.view for one in self.provisioned if one.rows[row]]


def place(volumes: Volumes, view: NodeView, claims: PodClaims) -> Placement:
    """Raises ValueError for a claim that makes no sense, naming it."""
    placement = Placement(np.zeros(view.n_rows, np.int64))
    _place_bound(volumes, view, claims.bound, placement)
    if claims.delayed:
        _place_delayed(volumes, view, claims.delayed, placement)
    return placement


def _place_bound(
    volumes: Volumes, view: NodeView, claims: list[PersistentVolumeClaim], placement: Placement
) -> None:
    is_open = np.ones(view.n_rows, np.bool_)
    for claim in claims:
        volume = volumes.volume(claim.spec.volume_name)
        if volume is None:
            placement.misfits[is_open] |= Misfit.GONE
            return
        if volume.affinity is not None:
            out = is_open & ~matcher_mask(view, volume.affinity)
            placement.misfits[out] |= Misfit.AFFINITY
            is_open &= ~out


def _place_delayed(
    volumes: Volumes, view: NodeView, claims: list[PersistentVolumeClaim], placement: Placement
) -> None:
    sent: list[Request] = []
    free: list[Request] = []
    reachable = np.ones(view.n_rows, np.bool_)
    for claim in claims:
        request = compile_request(claim)
        if request.defect:
            raise ValueError(f'persistentvolumeclaim "{claim.metadata.name}": {request.defect}')
        row = view.row(volumes.selected_node(claim))
        if row is None:
            free.append(request)
            continue
        sent.append(request)
        reachable &= np.arange(view.n_rows) == row
    free.sort(key=lambda request: request.size)
    placement.matched = _match(volumes, view, free)
    needs = [Provisioned(request, reachable.copy()) for request in sent]
    needs += [Provisioned(one.request, reachable & (one.choice == NONE)) for one in placement.matched]
    placement.misfits[~reachable] |= Misfit.NO_VOLUME
    _provision(volumes, view, needs, placement)


def _match(volumes: Volumes, view: NodeView, requests: list[Request]) -> list[Matched]:
    # Volume name -> rows on which an earlier claim of the pod takes it.
    taken: dict[str, Bool] = {}
    return [_match_one(volumes, view, request, taken) for request in requests]


def _match_one(volumes: Volumes, view: NodeView, request: Request, taken: dict[str, Bool]) -> Matched:
    of_class = volumes.volumes_of_class(request.class_name)
    own = [one for one in of_class if is_for(one.view, request.view) and is_usable(one, request)]
    # A volume that is reserved for the claim is the only one it can have, also where it is out of reach.
    fitting = own[:1] or sorted((one for one in of_class if is_choice(one, request)), key=lambda v: v.size)
    choice = np.full(view.n_rows, NONE, np.int32)
    is_open = view.alive.copy()
    n_open = int(np.count_nonzero(is_open))
    for index, volume in enumerate(fitting):
        if not n_open:
            break
        here = is_open if volume.affinity is None else is_open & matcher_mask(view, volume.affinity)
        if volume.name in taken:
            here = here & ~taken[volume.name]
        rows = np.flatnonzero(here)
        if not rows.size:
            continue
        choice[rows] = index
        is_taken = taken.setdefault(volume.name, np.zeros(view.n_rows, np.bool_))
        is_taken[rows] = True
        is_open[rows] = False
        n_open -= rows.size
    return Matched(request, tuple(fitting), choice)


def _provision(volumes: Volumes, view: NodeView, needs: list[Provisioned], placement: Placement) -> None:
    for need in needs:
        storage_class = volumes.storage_class(class_of(need.request.view))
        undecided = need.rows & (placement.misfits & (Misfit.NO_VOLUME | Misfit.NO_SPACE) == 0)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            placement.misfits[undecided] |= Misfit.NO_VOLUME
            continue
        inside = topology_mask(view, storage_class)
        placement.misfits[undecided & ~inside] |= Misfit.NO_VOLUME
        has_room, need.capacity = room_for(volumes, view, need.request, storage_class)
        placement.misfits[undecided & inside & ~has_room] |= Misfit.NO_SPACE
    placement.provisioned = needs


def topology_mask(view: NodeView, storage_class: StorageClass) -> Bool:
    """[n_rows] nodes in one of the class's allowed topologies; all of them where it has none."""
    terms = storage_class.allowed_topologies
    if not terms:
        return np.ones(view.n_rows, np.bool_)
    mask = np.zeros(view.n_rows, np.bool_)
    for term in terms:
        expressions = term.match_label_expressions
        if expressions:
            needs = [Requirement(one.key, Operator.IN, one.values) for one in expressions]
            mask |= requirements_mask(view, needs)
    return mask
