"""Pods nominated to nodes, in memory: ahead of what the API server shows.

Law: a UID is nominated to one node at most; kept in order of nomination.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.state.importance import amounts_of
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, NodeView


class Nominations:
    """node name -> pods, UID -> node name."""

    __slots__ = ("_amounts", "_by_node", "_n_columns", "_node_of", "_repelling")

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._repelling: set[str] = set()
        # UID -> what the pod would count on a row, for the columns that the table had when it was asked.
        self._amounts: dict[str, Int64] = {}
        self._n_columns = -1

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, info: PodInfo, node: str) -> None:
        """Nominates the pod, instead of where it was nominated before; an empty name only clears."""
        self.remove(info.uid)
        if node:
            self._by_node.setdefault(node, {})[info.uid] = info
            self._node_of[info.uid] = node
            if _repels(info):
                self._repelling.add(info.uid)

    def remove(self, uid: str) -> str:
        """Returns the node that the pod was nominated to, or an empty string."""
        node = self._node_of.pop(uid, "")
        self._repelling.discard(uid)
        self._amounts.pop(uid, None)
        if node:
            del self._by_node[node][uid]
            if not self._by_node[node]:
                del self._by_node[node]
        return node

    @property
    def has_repelling(self) -> bool:
        """Whether a nominated pod has required anti-affinity: only such pods keep others away."""
        return bool(self._repelling)

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def on_node(self, node: str) -> Sequence[PodInfo]:
        return tuple(self._by_node.get(node, {}).values())

    def entitled_beside(self, pod: PodInfo) -> Sequence[tuple[str, PodInfo]]:
        """(node, pod) of the others whose room `pod` must respect: equal or higher priority."""
        return [
            (node, other)
            for node, pods in self._by_node.items()
            for other in pods.values()
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def amounts(self, view: NodeView, pods: Sequence[PodInfo]) -> Int64:
        """[pods, resources + 3] of nominated pods, see importance.amounts_of; kept while nominated."""
        if self._n_columns != len(view.resources):
            self._n_columns = len(view.resources)
            self._amounts.clear()
        new = [info for info in pods if info.uid not in self._amounts]
        if new:
            self._amounts.update(zip((info.uid for info in new), amounts_of(view, new), strict=True))
        return np.array([self._amounts[info.uid] for info in pods])

    def nodes(self) -> Sequence[str]:
        """Names of the nodes that somebody is nominated to."""
        return tuple(self._by_node)

    def check_invariants(self) -> None:
        pairs = {uid: node for node, pods in self._by_node.items() for uid in pods}
        assert pairs == self._node_of, "nominations disagree"
        assert all(self._by_node.values()), "empty nomination list kept"
        repelling = {uid for pods in self._by_node.values() for uid, info in pods.items() if _repels(info)}
        assert repelling == self._repelling, "nominated pods with anti-affinity disagree"


def _repels(info: PodInfo) -> bool:
    affinity = info.pod.spec.affinity
    anti = affinity.pod_anti_affinity if affinity is not None else None
    return anti is not None and bool(anti.required)
