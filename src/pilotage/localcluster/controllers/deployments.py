"""Deployment: one ReplicaSet per pod template, rolled over as its strategy says.

Laws: a ReplicaSet belongs to the template whose hash it carries, so that going back to an old template
finds its ReplicaSet again; revisions only grow; old ReplicaSets beyond the history limit are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec

from pilotage.localcluster.controllers.plan import (
    NOTHING,
    Create,
    Delete,
    Patch,
    Plan,
    Write,
    owner_reference,
    plan,
)
from pilotage.localcluster.controllers.pods import as_pods, replicas_of
from pilotage.localcluster.controllers.rollout import Share, limits, next_scales, recreate
from pilotage.localcluster.objects import Cache, Moved, Whole, controller_of, labels_of
from pilotage.localcluster.rest.timestamps import time_text

RESOURCE = "deployments.apps"
REPLICA_SETS = "replicasets.apps"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Mapping[str, Any]) -> str:
    """Ten letters and digits that stand for the template, whatever the order of its keys."""
    digest = blake2b(msgspec.json.encode(template, order="sorted"), digest_size=10).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


class Deployments:
    name: ClassVar[str] = "deployment-controller"
    settle: ClassVar[float] = 0.05

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == RESOURCE:
            return (moved.object.key,)
        if moved.resource == REPLICA_SETS:
            owner = controller_of(moved.object)
            if owner is not None and owner.kind == "Deployment":
                return (f"{moved.object.metadata.namespace}/{owner.name}",)
        if moved.resource == "pods" and moved.new is None:
            return self._of_gone_pod(moved, cache)
        return ()

    def _of_gone_pod(self, moved: Moved, cache: Cache) -> Iterable[str]:
        """Recreate waits for the last old pod to vanish."""
        owner = controller_of(moved.object)
        if owner is None:
            return ()
        replica_set = cache.get(REPLICA_SETS, f"{moved.object.metadata.namespace}/{owner.name}")
        above = controller_of(replica_set) if replica_set is not None else None
        return (f"{moved.object.metadata.namespace}/{above.name}",) if above is not None else ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        owner = cache.get(RESOURCE, key)
        if not isinstance(owner, Whole) or owner.metadata.deletion_timestamp:
            return NOTHING
        found = [view for _, view in cache.owned_by(owner.metadata.uid, REPLICA_SETS)]
        owned = sorted((view for view in found if isinstance(view, Whole)), key=_revision)
        hashed = template_hash(owner.spec.get("template") or {})
        new = next((view for view in owned if labels_of(view).get(HASH_LABEL) == hashed), None)
        old = [view for view in owned if view is not new]
        if owner.spec.get("paused"):
            return plan([*_paused(owner, owned), _status(owner, owned, new, now)])
        if new is None:
            return plan([_first(owner, old, hashed), _status(owner, owned, new, now)])
        writes: list[Write | None] = [*_scales(owner, new, old, cache)]
        writes += _revisions(owner, new, old)
        if not any(replicas_of(view) for view in old):
            writes += _history(owner, old)
        return plan([*writes, _status(owner, owned, new, now)])


def _first(owner: Whole, old: list[Whole], hashed: str) -> Write:
    """The ReplicaSet of a new template; it starts empty unless it is the only one."""
    template = dict(owner.spec.get("template") or {})
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: hashed}
    template["metadata"] = {**metadata, "labels": labels}
    selector = dict(owner.spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed}
    spec = {"replicas": 0 if old else replicas_of(owner), "selector": selector, "template": template}
    if owner.spec.get("minReadySeconds"):
        spec["minReadySeconds"] = owner.spec["minReadySeconds"]
    body = {
        "metadata": {
            "name": f"{owner.metadata.name}-{hashed}",
            "namespace": owner.metadata.namespace,
            "labels": labels,
            "annotations": {REVISION: str(_next_revision(old))},
            "ownerReferences": [owner_reference("apps/v1", "Deployment", owner)],
        },
        "spec": spec,
    }
    return Create(REPLICA_SETS, owner.metadata.namespace, body)


def _paused(owner: Whole, owned: list[Whole]) -> list[Write]:
    """Nothing is rolled out, but a Deployment that runs one ReplicaSet can still be scaled."""
    active = [view for view in owned if replicas_of(view)]
    if len(active) != 1 or replicas_of(active[0]) == replicas_of(owner):
        return []
    body = {"spec": {"replicas": replicas_of(owner)}}
    return [Patch(REPLICA_SETS, owner.metadata.namespace, active[0].metadata.name, body)]


def _scales(owner: Whole, new: Whole, old: list[Whole], cache: Cache) -> list[Write]:
    desired = replicas_of(owner)
    strategy = owner.spec.get("strategy") or {}
    shares = [_share(view) for view in old]
    if strategy.get("type") == "Recreate":
        pods = sum(len(as_pods(cache.owned_by(view.metadata.uid, "pods"))) for view in old)
        targets = recreate(_share(new), shares, pods, desired)
    else:
        targets = next_scales(_share(new), shares, desired, *limits(strategy, desired))
    namespace = owner.metadata.namespace
    return [
        Patch(REPLICA_SETS, namespace, name, {"spec": {"replicas": replicas}})
        for name, replicas in targets.items()
    ]


def _share(view: Whole) -> Share:
    return Share(view.metadata.name, replicas_of(view), view.status.get("availableReplicas") or 0)


def _revision(view: Whole) -> int:
    text = (view.metadata.annotations or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _next_revision(old: list[Whole]) -> int:
    return max((_revision(view) for view in old), default=0) + 1


def _revisions(owner: Whole, new: Whole, old: list[Whole]) -> list[Write]:
    """The current ReplicaSet has the highest revision, and the Deployment shows it."""
    revision = max(_revision(new), _next_revision(old))
    annotation = {"metadata": {"annotations": {REVISION: str(revision)}}}
    namespace = owner.metadata.namespace
    writes: list[Write] = []
    if _revision(new) != revision:
        writes.append(Patch(REPLICA_SETS, namespace, new.metadata.name, annotation))
    if _revision(owner) != revision:
        writes.append(Patch(RESOURCE, namespace, owner.metadata.name, annotation))
    return writes


def _history(owner: Whole, old: list[Whole]) -> list[Write]:
    limit = owner.spec.get("revisionHistoryLimit")
    kept = 10 if limit is None else int(limit)
    idle = [view for view in old if not view.status.get("replicas")]
    surplus = idle[: max(0, len(idle) - kept)]
    meta = owner.metadata
    return [Delete(REPLICA_SETS, meta.namespace, view.metadata.name, view.metadata.uid) for view in surplus]


def _status(owner: Whole, owned: list[Whole], new: Whole | None, now: float) -> Write | None:
    def total(field: str) -> int:
        return sum(view.status.get(field) or 0 for view in owned)

    available = total("availableReplicas")
    asked = sum(replicas_of(view) for view in owned)
    wanted: dict[str, Any] = {
        "replicas": total("replicas"),
        "updatedReplicas": (new.status.get("replicas") or 0) if new is not None else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, asked - available),
        "observedGeneration": owner.metadata.generation,
    }
    wanted["conditions"] = _conditions(owner, wanted, now)
    current = owner.status
    if all((current.get(name) or 0) == (value or 0) for name, value in wanted.items()):
        return None
    meta = owner.metadata
    return Patch(RESOURCE, meta.namespace, meta.name, {"status": wanted}, "status")


def _conditions(owner: Whole, counts: Mapping[str, int], now: float) -> list[dict[str, str]]:
    desired = replicas_of(owner)
    _, unavailable = limits(owner.spec.get("strategy") or {}, desired)
    has_enough = counts["availableReplicas"] >= desired - unavailable
    is_complete = counts["updatedReplicas"] == counts["availableReplicas"] == counts["replicas"] == desired
    before = {entry["type"]: entry for entry in owner.status.get("conditions") or ()}
    available = (
        ("True", "MinimumReplicasAvailable", "enough replicas are available")
        if has_enough
        else ("False", "MinimumReplicasUnavailable", "too few replicas are available")
    )
    progressing = (
        ("True", "NewReplicaSetAvailable", "all replicas are up to date and available")
        if is_complete
        else ("True", "ReplicaSetUpdated", "the newest ReplicaSet is being rolled out")
    )
    return [
        _condition("Available", available, before.get("Available"), now),
        _condition("Progressing", progressing, before.get("Progressing"), now),
    ]


def _condition(
    kind: str, wanted: tuple[str, str, str], before: Mapping[str, str] | None, now: float
) -> dict[str, str]:
    """Times stay as they were while nothing changed."""
    status, reason, message = wanted
    same = before is not None and before.get("status") == status
    text = {"type": kind, "status": status, "reason": reason, "message": message}
    if same and before is not None and before.get("reason") == reason and before.get("message") == message:
        return dict(before)
    flipped = (before or {}).get("lastTransitionTime") if same else None
    return {**text, "lastUpdateTime": time_text(now), "lastTransitionTime": flipped or time_text(now)}
