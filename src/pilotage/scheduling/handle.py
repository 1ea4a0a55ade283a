"""What plugins are given: the only way from a plugin to the queue and to the API.

Law: what a plugin asks for is collected and carried out after the plugin's step, never inside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pilotage.framework.calls import Call, ObjectKey
from pilotage.scheduling.messages import PermitResolved
from pilotage.scheduling.outbox import Outbox
from pilotage.state.cluster import ClusterState


class EngineHandle:
    """Implements `framework.plugin.Handle`."""

    def __init__(
        self, cluster: ClusterState, gates: Mapping[str, bool], outbox: Outbox, random: np.random.Generator
    ) -> None:
        self._cluster = cluster
        self._gates = gates
        self._outbox = outbox
        self._random = random
        self._to_activate: dict[str, None] = {}
        self._permits: list[PermitResolved] = []

    @property
    def gates(self) -> Mapping[str, bool]:
        return self._gates

    @property
    def cluster(self) -> ClusterState:
        return self._cluster

    @property
    def random(self) -> np.random.Generator:
        return self._random

    def now(self) -> float:
        return self._outbox.now

    def submit(self, call: Call) -> None:
        """Raises TypeError for what is no call, where the plugin that wants it can be named."""
        if not isinstance(call, Call) or not isinstance(call.key, ObjectKey):
            raise TypeError(f"{call!r:.60} is not a call on an object")
        self._outbox.submit(call)

    def activate(self, pods: Sequence[str]) -> None:
        self._to_activate.update(dict.fromkeys(pods))

    def resolve_permit(self, uid: str, plugin: str, allowed: bool, reason: str = "") -> None:
        """Allows or rejects a pod that `plugin` keeps waiting at Permit."""
        self._permits.append(PermitResolved(uid, plugin, allowed, reason))

    def take_activations(self) -> list[str]:
        uids, self._to_activate = list(self._to_activate), {}
        return uids

    def take_permits(self) -> list[PermitResolved]:
        permits, self._permits = self._permits, []
        return permits
