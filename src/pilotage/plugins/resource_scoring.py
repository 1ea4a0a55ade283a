"""Scoring strategies of NodeResourcesFit as vectors.

Laws: whole numbers and integer division throughout; a resource that a node does not offer does not count
there; a scalar resource counts only for pods that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from pilotage.framework.plugin import MAX_NODE_SCORE
from pilotage.state.podinfo import PodInfo
from pilotage.state.resources import is_scalar
from pilotage.state.view import Int64, NodeView, Rows

MAX_UTILIZATION = 100
_SHAPE_FACTOR = 10  # shape scores are 0..10


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    weight: int = 1


class ShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    utilization: int = 0
    score: int = 0


DEFAULT_RESOURCES = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class Load(NamedTuple):
    """One resource on the asked rows: what nodes offer, and what would be requested with the pod there."""

    weight: int
    capacity: Int64
    requested: Int64


Combine: TypeAlias = Callable[[Sequence[Load]], Int64]


def loads(resources: Sequence[ResourceSpec], pod: PodInfo, view: NodeView, rows: Rows) -> Iterator[Load]:
    """cpu and memory count with the scoring defaults, everything else as it was asked for."""
    for resource in resources:
        column = view.column(resource.name)
        asked = pod.container_requests.get(resource.name, 0)
        if column is None or (is_scalar(resource.name) and not asked):
            continue
        capacity = view.allocatable[rows, column]
        if resource.name in ("cpu", "memory"):
            index = 0 if resource.name == "cpu" else 1
            requested = view.nonzero_requested[rows, index] + pod.nonzero[index]
        else:
            requested = view.requested[rows, column] + asked
        yield Load(resource.weight, capacity, requested)


def least_allocated(of: Sequence[Load]) -> Int64:
    return _weighted_mean(of, lambda load, capacity, used: (capacity - used) * MAX_NODE_SCORE // capacity)


def most_allocated(of: Sequence[Load]) -> Int64:
    return _weighted_mean(of, lambda load, capacity, used: used * MAX_NODE_SCORE // capacity)


def _weighted_mean(of: Sequence[Load], score: Callable[[Load, Int64, Int64], Int64]) -> Int64:
    """`score(load, capacity, used)`: capacity at least 1, used at most the capacity."""
    total: Int64 | int = 0
    weights: Int64 | int = 0
    for load in of:
        capacity = np.maximum(load.capacity, 1)
        used = np.minimum(load.requested, load.capacity)
        is_offered = load.capacity > 0
        total = total + np.where(is_offered, score(load, capacity, used) * load.weight, 0)
        weights = weights + is_offered * load.weight
    mean: Int64 = total // np.maximum(weights, 1)
    return mean


def requested_to_capacity_ratio(shape: Sequence[ShapePoint]) -> Combine:
    """Score by utilisation through the points of `shape`, flat outside; rounded mean of what is above 0."""
    scores = shape_scores(shape)

    def combine(of: Sequence[Load]) -> Int64:
        total: Int64 | int = 0
        weights: Int64 | int = 0
        for load in of:
            capacity = np.maximum(load.capacity, 1)
            used = np.minimum(load.requested, load.capacity)
            score = np.where(load.capacity > 0, scores[used * MAX_UTILIZATION // capacity], 0)
            total = total + score * load.weight
            weights = weights + (score > 0) * load.weight
        divisor = np.maximum(weights, 1)
        # Rounded half up: scores are not negative.
        mean: Int64 = (2 * total + divisor) // (2 * divisor)
        return mean

    return combine


def shape_scores(shape: Sequence[ShapePoint]) -> Int64:
    """[101] scores up to 100 by utilisation in percent."""
    return np.array([_interpolated(shape, u) for u in range(MAX_UTILIZATION + 1)], np.int64)


def _interpolated(shape: Sequence[ShapePoint], utilization: int) -> int:
    if utilization <= shape[0].utilization:
        return shape[0].score * _SHAPE_FACTOR
    for left, right in pairwise(shape):
        if utilization <= right.utilization:
            rise = (right.score - left.score) * _SHAPE_FACTOR * (utilization - left.utilization)
            run = right.utilization - left.utilization
            step = abs(rise) // run  # towards zero, also downhill
            return left.score * _SHAPE_FACTOR + (step if rise >= 0 else -step)
    return shape[-1].score * _SHAPE_FACTOR
