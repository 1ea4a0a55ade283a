"""Events in their two forms: core `v1` (as stored) and `events.k8s.io/v1`.

The same object is read and written through both; a field that the other form names differently is renamed,
never dropped.
"""

from __future__ import annotations

from pilotage.localcluster.store import Tree

RESOURCE = "events.events.k8s.io"
_RENAMED = (  # (core, events.k8s.io)
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
_TO_EVENTS = dict(_RENAMED)
_TO_CORE = {new: old for old, new in _RENAMED}


def from_core(tree: Tree) -> Tree:
    """A stored event as events.k8s.io/v1 shows it."""
    renamed = {_TO_EVENTS.get(name, name): value for name, value in tree.items()}
    renamed["apiVersion"] = "events.k8s.io/v1"
    return renamed


def to_core(tree: Tree) -> Tree:
    """An events.k8s.io/v1 event as it is stored."""
    renamed = {_TO_CORE.get(name, name): value for name, value in tree.items()}
    renamed["apiVersion"] = "v1"
    return renamed
