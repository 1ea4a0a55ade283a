"""ImageLocality: nodes that have the pod's images already, weighed by size and by how many nodes do."""

from __future__ import annotations

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import MAX_NODE_SCORE, DependsOn, Plugin
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, NodeView, Rows

_MIB = 1024 * 1024
MIN_BYTES = 23 * _MIB
MAX_BYTES_PER_CONTAINER = 1000 * _MIB


class ImageLocality(Plugin):
    depends_on = DependsOn.CLUSTER

    def score_nodes(self, _cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Int64:
        """0..100. An image used twice counts twice; an image that few nodes have counts less."""
        sums = _image_bytes(pod, view)
        if sums is None:
            return np.zeros(rows.size, np.int64)
        spec = pod.pod.spec
        ceiling = MAX_BYTES_PER_CONTAINER * (len(spec.containers) + len(spec.init_containers or ()))
        clamped = np.minimum(np.maximum(sums[rows], MIN_BYTES), ceiling)
        scores: Int64 = MAX_NODE_SCORE * (clamped - MIN_BYTES) // (ceiling - MIN_BYTES)
        return scores


def _image_bytes(pod: PodInfo, view: NodeView) -> Int64 | None:
    """[n_rows] scaled bytes of the pod's images on each node; None when no node has any."""
    sums: Int64 | None = None
    for name in pod.images:
        image = view.image(name)
        if image is None:
            continue
        if sums is None:
            sums = np.zeros(view.n_rows, np.int64)
        sums[image.rows] += int(image.size * (len(image.rows) / view.n_nodes))
    return sums
