"""What is particular to a kind on the write path, as data. Defaults and validation are `admission`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pilotage.localcluster.store import Tree


@dataclass(frozen=True, slots=True)
class Strategy:
    has_generation: bool = False  # metadata.generation counts the changes of spec
    keeps_created_status: bool = False  # a status in a create is stored
    first_phase: str = ""  # status.phase of a new object
    needs_version: bool = False  # an update must carry a resourceVersion
    is_graceful: bool = False  # deletion waits for a grace period
    status_metadata: tuple[str, ...] = ()  # what a write to /status may change besides the status

    def set_first_status(self, tree: Tree) -> None:
        """What a status is before anybody wrote one."""
        if self.keeps_created_status:
            return
        if self.first_phase:
            tree["status"] = {"phase": self.first_phase}
        elif "status" in tree:
            del tree["status"]


_DEFAULT = Strategy()
_GENERATION = Strategy(has_generation=True)

_STRATEGIES: Mapping[str, Strategy] = {
    "pods": Strategy(
        has_generation=True,
        keeps_created_status=True,  # admission writes the first status itself
        is_graceful=True,
        status_metadata=("labels", "annotations", "finalizers"),
    ),
    "nodes": Strategy(keeps_created_status=True),
    "namespaces": Strategy(first_phase="Active"),
    "persistentvolumes": Strategy(first_phase="Pending"),
    "persistentvolumeclaims": Strategy(first_phase="Pending"),
    "poddisruptionbudgets.policy": Strategy(has_generation=True, needs_version=True),
    "leases.coordination.k8s.io": Strategy(needs_version=True),
    "priorityclasses.scheduling.k8s.io": _GENERATION,
    "replicationcontrollers": _GENERATION,
    "deployments.apps": _GENERATION,
    "replicasets.apps": _GENERATION,
    "statefulsets.apps": _GENERATION,
    "daemonsets.apps": _GENERATION,
    "jobs.batch": _GENERATION,
    "cronjobs.batch": _GENERATION,
    "ingresses.networking.k8s.io": _GENERATION,
    "networkpolicies.networking.k8s.io": _GENERATION,
    "horizontalpodautoscalers.autoscaling": _DEFAULT,
}


def strategy_of(resource: str) -> Strategy:
    """By storage resource."""
    return _STRATEGIES.get(resource, _DEFAULT)
