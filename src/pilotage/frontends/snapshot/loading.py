"""A snapshot inside an engine of its own, which decides as a running scheduler would and writes nothing.

Law: the engine only takes facts in; what it wants written is dropped here, so there is nothing to undo.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

import msgspec

from pilotage.api.decode import DecodeFailure
from pilotage.api.kinds import Kind
from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.snapshot.objects import Snapshot
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import Event, Undecodable, Upserted

_SEED = 0


def load(
    snapshot: Snapshot, settings: Settings, registry: Registry, now: float, lifted: Container[str] = ()
) -> Engine:
    """`now`: seconds since the epoch. `lifted`: UIDs of pods that are taken off their nodes first.

    All nodes are looked at, whatever percentageOfNodesToScore says. Raises ProfileError.
    """
    engine = Engine(_looking_at_all(settings), registry, _SEED)
    for event in _events(snapshot, lifted):
        engine.handle(event, now)
    return engine


def _looking_at_all(settings: Settings) -> Settings:
    profiles = tuple(replace(p, percentage_of_nodes_to_score=None) for p in settings.profiles)
    return replace(settings, profiles=profiles, percentage_of_nodes_to_score=0)


def _events(snapshot: Snapshot, lifted: Container[str]) -> Iterable[Event]:
    for kind, view in snapshot.items:
        if isinstance(view, DecodeFailure):
            yield _undecodable(kind, view)
        else:
            yield Upserted(kind.resource, _lifted(view) if view.metadata.uid in lifted else view)


def _undecodable(kind: Kind, failure: DecodeFailure) -> Undecodable:
    return Undecodable(
        kind.resource,
        failure.namespace,
        failure.name,
        failure.uid,
        failure.error,
        failure.scheduler_name,
        failure.node_name,
    )


def _lifted(view: KubeObject) -> KubeObject:
    return unbound(view) if isinstance(view, Pod) else view


def unbound(pod: Pod) -> Pod:
    """The pod as it was before it came to its node."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = msgspec.structs.replace(pod.status, nominated_node_name="", phase="Pending")
    return msgspec.structs.replace(pod, spec=spec, status=status)
