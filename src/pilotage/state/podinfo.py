"""A pod compiled once for all decisions: key, priority, requests, and lazily the rest."""

from __future__ import annotations

from pilotage.api.pods import Pod


class PodInfo:
    """A pod view plus what decisions read of it.

    Raises `QuantityError` on construction when a request is not a quantity (names field and value).
    """

    __slots__ = ("key", "nonzero", "pod", "priority", "requests", "uid", "usage")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        self.key = pod.key
        self.priority = pod.spec.priority or 0
        # Incoming pod's requests by resource: milli-CPU, bytes, units (spec only).
        self.requests: dict[str, int] = {}
        # What it occupies once on a node: max over spec, allocated, actual (1.37 rule).
        self.usage: dict[str, int] = {}
        # (milli-CPU, bytes) with kube-scheduler's scoring defaults.
        self.nonzero: tuple[int, int] = (0, 0)
