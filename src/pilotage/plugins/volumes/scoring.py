"""Scores by storage: how full the chosen volumes, or the room told for a node, get with the pod's claims.

Law: per class requested against offered bytes through the shape; the node's score is the rounded mean over
the classes. A node that takes ready volumes is judged by those alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from pilotage.plugins.resource_scoring import MAX_UTILIZATION, ShapePoint
from pilotage.plugins.volumes.placement import Placement
from pilotage.state.view import Int64, Rows

DEFAULT_SHAPE: Final = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


def capacity_scores(placement: Placement, rows: Rows, shape: Int64) -> Int64:
    """Aligned with `rows`; 0 where nothing is known of what a node offers. `shape`: [101] by utilization."""
    return np.array([_score(placement, row, shape) for row in rows.tolist()], np.int64)


def _score(placement: Placement, row: int, shape: Int64) -> int:
    by_class: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, requested, offered in _amounts(placement, row):
        known = by_class[name]
        by_class[name] = (known[0] + requested, known[1] + offered)
    if not by_class:
        return 0
    scores = [int(shape[_utilization(*amounts)]) for amounts in by_class.values()]
    return int(np.floor(sum(scores) / len(scores) + 0.5))


def _utilization(requested: int, offered: int) -> int:
    return MAX_UTILIZATION if offered == 0 or requested > offered else requested * MAX_UTILIZATION // offered


def _amounts(placement: Placement, row: int) -> Iterator[tuple[str, int, int]]:
    """(class, bytes requested, bytes offered) of each claim that counts."""
    ready = [(one, int(one.choice[row])) for one in placement.matched if one.choice[row] >= 0]
    if ready:
        for one, index in ready:
            yield one.request.class_name, one.request.size, one.volumes[index].size
        return
    for need in placement.provisioned:
        if need.rows[row] and need.capacity is not None:
            yield need.request.class_name, need.request.size, int(need.capacity[row])
