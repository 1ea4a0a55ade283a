"""Storage capacity: whether a driver has room on a node for a volume that is still to be made.

Law: asked only of drivers that say so (CSIDriver.spec.storageCapacity); everybody else has room. A
CSIStorageCapacity without a topology or without an amount offers nothing.
"""

from __future__ import annotations

import numpy as np

from pilotage.api.others import CSIStorageCapacity, StorageClass
from pilotage.api.quantity import QuantityError, RawQuantity, value
from pilotage.api.selectors import SelectorError, compile_label_selector
from pilotage.state.node_match import requirements_mask
from pilotage.state.view import Bool, Int64, NodeView
from pilotage.state.volume_values import Request
from pilotage.state.volumes import Volumes


def room_for(
    volumes: Volumes, view: NodeView, request: Request, storage_class: StorageClass
) -> tuple[Bool, Int64 | None]:
    """[n_rows] nodes with room, and the largest capacity told for each in bytes (None: nobody is asked)."""
    driver = volumes.csi_driver(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity or not request.has_size:
        return np.ones(view.n_rows, np.bool_), None
    has_room = np.zeros(view.n_rows, np.bool_)
    capacity = np.zeros(view.n_rows, np.int64)
    for offer in volumes.capacities():
        if offer.storage_class_name == storage_class.metadata.name and largest(offer) >= request.size:
            rows = _reached(view, offer)
            has_room |= rows
            capacity[rows] = np.maximum(capacity[rows], _bytes(offer.capacity))
    return has_room, capacity


def largest(offer: CSIStorageCapacity) -> int:
    """Bytes of the largest volume that can be made; -1 for none."""
    said = offer.maximum_volume_size if offer.maximum_volume_size is not None else offer.capacity
    return _bytes(said) if said is not None else -1


def _bytes(quantity: RawQuantity | None) -> int:
    try:
        return value(quantity) if quantity is not None else 0
    except QuantityError:
        return -1


def _reached(view: NodeView, offer: CSIStorageCapacity) -> Bool:
    try:
        matcher = compile_label_selector(offer.node_topology, "nodeTopology")
    except SelectorError:
        return np.zeros(view.n_rows, np.bool_)
    if matcher.is_nothing:
        return np.zeros(view.n_rows, np.bool_)
    return requirements_mask(view, matcher.requirements)
