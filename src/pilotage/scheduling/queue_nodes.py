"""Which node an event is about: what decides whether bound pods in the queue (resizes) are told of it.

Law: a bound pod hears only of its own node and of itself, so that an event costs what waits on its node and
not what waits in the cluster.
"""

from __future__ import annotations

from pilotage.api.nodes import Node
from pilotage.state.podinfo import PodInfo


def nodes_of(old: object | None, new: object | None) -> frozenset[str]:
    """Names of the nodes that an object was or is about; none where it is neither a node nor on one."""
    return frozenset(filter(None, (*_names(old), *_names(new))))


def _names(thing: object | None) -> tuple[str, ...]:
    if isinstance(thing, Node):
        return (thing.metadata.name,)
    if isinstance(thing, PodInfo):
        return (thing.node_name or thing.pod.status.nominated_node_name,)
    return ()
