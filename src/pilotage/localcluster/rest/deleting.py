"""DELETE of one object and of collections: grace periods, finalizers, preconditions.

Laws: an object with finalizers stays, marked, until they are gone; a pod on a node stays until its kubelet
deletes it with grace 0; a repeated deletion can only shorten the grace. Namespaces stay, Terminating, until
somebody empties `spec.finalizers` through /finalize.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.kinds import Kind
from pilotage.api.wire import Response
from pilotage.localcluster.rest.bodies import read_tree
from pilotage.localcluster.rest.call import Call, answer
from pilotage.localcluster.rest.errors import bad_request, conflict, success_status
from pilotage.localcluster.rest.preconditions import check_uid, check_version_precondition
from pilotage.localcluster.rest.rendering import list_bytes
from pilotage.localcluster.rest.selection import selection_of
from pilotage.localcluster.rest.strategies import strategy_of
from pilotage.localcluster.rest.timestamps import parse_time, time_text
from pilotage.localcluster.rest.writing import answer_object, current
from pilotage.localcluster.store import Record, Tree

_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_POLICIES = ("Background", *_FINALIZERS)
_DEFAULT_GRACE = 30
_BODY_KINDS = ("DeleteOptions", None)


@dataclass(frozen=True, slots=True)
class Options:
    """What a deletion asks; None where it says nothing."""

    grace: int | None = None
    policy: str | None = None
    uid: str | None = None
    version: str | None = None


def read_options(call: Call) -> Options:
    """From the body, else from the query. Raises RestError 400 or 422."""
    body = read_tree(call.request) if call.request.body.strip() else {}
    if body.get("kind") not in _BODY_KINDS:
        raise bad_request(f"expected DeleteOptions, not {body['kind']}")
    return options_from(body, call)


def options_from(body: Tree, call: Call) -> Options:
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = _query_grace(call)
    if isinstance(grace, bool) or not isinstance(grace, int | None):
        raise bad_request("json: cannot unmarshal DeleteOptions.gracePeriodSeconds: it must be an integer")
    policy = body.get("propagationPolicy") or call.query.get("propagationPolicy") or None
    if policy is None and (body.get("orphanDependents") or call.query.get("orphanDependents") == "true"):
        policy = "Orphan"
    if policy is not None and policy not in _POLICIES:
        why = f"needs to be one of {', '.join(_POLICIES)}"
        raise call.invalid_option("propagationPolicy", str(policy), why)
    preconditions = body.get("preconditions") or {}
    return Options(grace, policy, preconditions.get("uid"), preconditions.get("resourceVersion"))


def _query_grace(call: Call) -> int | None:
    text = call.query.get("gracePeriodSeconds", "")
    try:
        return int(text) if text else None
    except ValueError:
        raise bad_request(
            f'strconv.ParseInt: parsing "{text}": invalid syntax (gracePeriodSeconds)'
        ) from None


def delete(call: Call) -> Response:
    options = read_options(call)
    record = current(call)
    stored, is_gone = delete_record(call, record, options)
    if is_gone and not strategy_of(call.kind.storage_resource).is_graceful:
        return answer(success_status(call.kind, stored.name, stored.uid))
    return answer_object(call, stored)


def delete_record(call: Call, record: Record, options: Options) -> tuple[Record, bool]:
    """Delete, or mark as deleted. Returns the last record and whether the object is gone."""
    kind = call.kind
    check_uid(kind, record, options.uid)
    check_version_precondition(kind, record, options.version)
    tree = record.tree()
    grace = _grace(kind, tree, options.grace)
    _add_finalizer(tree, options.policy)
    if not grace and not _must_stay(tree):
        if call.is_dry_run:
            return record, True
        return call.store.delete(kind.storage_resource, record.namespace, record.name), True
    if _mark(tree, grace, call.now):
        if kind.resource == "namespaces":
            tree.setdefault("status", {})["phase"] = "Terminating"
        record = call.store.update(kind.storage_resource, tree, is_dry_run=call.is_dry_run)
    return record, False


def _must_stay(tree: Tree) -> bool:
    return bool(tree["metadata"].get("finalizers") or (tree.get("spec") or {}).get("finalizers"))


def _grace(kind: Kind, tree: Tree, asked: int | None) -> int:
    """Seconds that the object may take to go."""
    if not strategy_of(kind.storage_resource).is_graceful:
        return 0
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = asked
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return 1 if grace < 0 else grace


def _add_finalizer(tree: Tree, policy: str | None) -> None:
    """The policy becomes the matching finalizer, as long as the object was not deleted before."""
    meta = tree["metadata"]
    if policy is None or "deletionTimestamp" in meta:
        return
    kept = [name for name in meta.get("finalizers") or () if name not in _FINALIZERS.values()]
    if policy in _FINALIZERS:
        kept.append(_FINALIZERS[policy])
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)


def _mark(tree: Tree, grace: int, now: float) -> bool:
    """Write the deletion into the metadata; False when it stood there already and is not shortened."""
    meta = tree["metadata"]
    before = meta.get("deletionTimestamp")
    if before is None:
        meta["deletionTimestamp"] = time_text(now + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if "generation" in meta:
            meta["generation"] += 1
        return True
    if grace >= meta.get("deletionGracePeriodSeconds", 0):
        return False
    started = (parse_time(before) or now) - meta.get("deletionGracePeriodSeconds", 0)
    meta["deletionTimestamp"] = time_text(max(now, started + grace) if grace else now)
    meta["deletionGracePeriodSeconds"] = grace
    return True


def delete_collection(call: Call) -> Response:
    options = read_options(call)
    selection = selection_of(call)
    kind = call.kind
    if options.uid:
        raise conflict(kind, "", "Precondition failed: UID in precondition does not fit a collection")
    chosen = [
        record
        for record in call.store.list(kind.storage_resource, call.namespace).records
        if selection.matches(record)
    ]
    done = [delete_record(call, record, options)[0] for record in chosen]
    return Response(200, list_bytes(kind, done, call.form, call.now, str(call.store.version), {}))
