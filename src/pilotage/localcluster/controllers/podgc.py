"""Removes pods whose node is gone for good.

Law: a node that comes back within `quarantine` seconds keeps its pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilotage.localcluster.controllers.plan import NOTHING, Delete, Plan, plan
from pilotage.localcluster.objects import Cache, Moved, node_of

QUARANTINE_SECONDS = 20.0


class LostPods:
    """Keys are node names."""

    name: ClassVar[str] = "pod-garbage-collector"
    settle: ClassVar[float] = 0.0

    def __init__(self, quarantine: float = QUARANTINE_SECONDS) -> None:
        self._quarantine = quarantine
        # node name -> when it was first seen missing while pods are on it.
        self._missing: dict[str, float] = {}

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == "nodes":
            return (moved.object.metadata.name,)
        if moved.resource == "pods" and moved.new is not None:
            node = node_of(moved.new)
            return (node,) if node and cache.get("nodes", node) is None else ()
        return ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        pods = cache.pods_on(key)
        if cache.get("nodes", key) is not None or not pods:
            self._missing.pop(key, None)
            return NOTHING
        left = self._missing.setdefault(key, now) + self._quarantine - now
        if left > 0:
            return plan([], left)
        return plan(
            [Delete("pods", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, 0) for pod in pods],
            self._quarantine,
        )
