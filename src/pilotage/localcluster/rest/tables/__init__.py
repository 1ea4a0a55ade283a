"""Tables as kubectl prints them: columns and cells per kind; without an entry: name and creation time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest.tables import events, nodes, others, pods, workloads
from pilotage.localcluster.rest.tables.layout import NAME, Layout, text
from pilotage.localcluster.store import Tree

_DEFAULT = Layout(
    (NAME, text("Created At", "When the object was created.")),
    lambda tree, _now: [tree["metadata"]["name"], tree["metadata"].get("creationTimestamp")],
)
_LAYOUTS: Mapping[str, Layout] = {
    "pods": pods.LAYOUT,
    "nodes": nodes.LAYOUT,
    "events": events.LAYOUT,
    "namespaces": others.NAMESPACES,
    "services": others.SERVICES,
    "configmaps": others.CONFIG_MAPS,
    "secrets": others.SECRETS,
    "serviceaccounts": others.AGED,
    "persistentvolumes": others.VOLUMES,
    "persistentvolumeclaims": others.CLAIMS,
    "replicationcontrollers": workloads.REPLICA_SETS,
    "deployments.apps": workloads.DEPLOYMENTS,
    "replicasets.apps": workloads.REPLICA_SETS,
    "statefulsets.apps": workloads.STATEFUL_SETS,
    "daemonsets.apps": workloads.DAEMON_SETS,
    "jobs.batch": workloads.JOBS,
    "poddisruptionbudgets.policy": others.BUDGETS,
    "priorityclasses.scheduling.k8s.io": others.PRIORITY_CLASSES,
    "leases.coordination.k8s.io": others.LEASES,
    "storageclasses.storage.k8s.io": others.STORAGE_CLASSES,
    "csinodes.storage.k8s.io": others.CSI_NODES,
}
"""By storage resource."""


@cache
def columns_of(kind: Kind) -> list[Tree]:
    """`columnDefinitions`: not to be changed."""
    return [column.definition() for column in _layout(kind).columns]


def row_cells(kind: Kind, tree: Tree, now: float) -> list[Any]:
    """The cells of one object in its stored form."""
    return _layout(kind).cells(tree, now)


def _layout(kind: Kind) -> Layout:
    return _LAYOUTS.get(kind.storage_resource, _DEFAULT)
