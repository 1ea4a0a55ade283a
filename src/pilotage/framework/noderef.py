"""One row of a view as the per-node form of plugins sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilotage.api.nodes import Node
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


class RowRef:
    """Implements `framework.plugin.NodeRef`; valid for the call it is passed to."""

    __slots__ = ("_row", "_view")

    def __init__(self, view: NodeView, row: int) -> None:
        self._view = view
        self._row = row

    @property
    def name(self) -> str:
        return self._view.name(self._row)

    @property
    def node(self) -> Node:
        return self._view.node(self._row)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels or {}

    @property
    def pods(self) -> Sequence[PodInfo]:
        return self._view.pods(self._row)

    @property
    def allocatable(self) -> Mapping[str, int]:
        """milli-CPU, bytes, units; `pods` included."""
        amounts = zip(self._view.resources, self._view.allocatable[self._row].tolist(), strict=True)
        return {**dict(amounts), "pods": int(self._view.allowed_pods[self._row])}

    @property
    def requested(self) -> Mapping[str, int]:
        """milli-CPU, bytes, units; `pods` is the number of pods."""
        amounts = zip(self._view.resources, self._view.requested[self._row].tolist(), strict=True)
        return {**dict(amounts), "pods": int(self._view.pod_count[self._row])}
