"""Create and replace, and the one path by which every change of an object goes.

Laws: what the server owns (uid, times, generation, deletion marks) never comes from a body; a write to an
object leaves its status alone and a write to its status leaves the rest alone; a dry run does all of it
but the storing.
"""

from __future__ import annotations

from functools import lru_cache

from pilotage.api.kinds import Kind, by_resource
from pilotage.api.wire import APPLY_PATCH, Response
from pilotage.localcluster.rest import (
    admission,
    default_storage_class,
    event_forms,
    managed_fields,
    services,
)
from pilotage.localcluster.rest.bodies import check_type, media_type, metadata_of, read_tree
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import (
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    not_found,
    quoted,
    required_value,
)
from pilotage.localcluster.rest.field_validation import check_fields
from pilotage.localcluster.rest.pod_resize import prepare_resize
from pilotage.localcluster.rest.pod_status import keep_omitted
from pilotage.localcluster.rest.preconditions import check_uid, check_version
from pilotage.localcluster.rest.rendering import object_bytes
from pilotage.localcluster.rest.strategies import strategy_of
from pilotage.localcluster.rest.timestamps import time_text
from pilotage.localcluster.store import AlreadyExistsError, ConflictError, Record, Tree, decode_tree

_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_NAME_ATTEMPTS = 8
_GENERATED_BASE = 58


def answer_object(call: Call, record: Record, code: int = 200) -> Response:
    headers = (
        {"warning": ", ".join(f"299 - {quoted(text)}" for text in call.warnings)} if call.warnings else {}
    )
    return Response(code, object_bytes(call.kind, record, call.form, call.now), headers)


def current(call: Call) -> Record:
    """The object that the path names. Raises RestError 404."""
    record = call.store.get(call.kind.storage_resource, call.namespace, call.name)
    if record is None:
        raise not_found(call.kind, call.name)
    return record


def read_object(call: Call) -> Tree:
    """The body as an object of the path's kind, in its stored form, metadata checked for type."""
    tree = read_tree(call.request)
    check_type(tree, call.kind, call.kind.api_version)
    metadata_of(tree)
    check_fields(call, tree)
    return to_stored(call, tree)


def to_stored(call: Call, tree: Tree) -> Tree:
    return event_forms.to_core(tree) if call.kind.resource == event_forms.RESOURCE else tree


# create


def create(call: Call) -> Response:
    return answer_object(call, create_tree(call, read_object(call)), 201)


def create_tree(call: Call, tree: Tree) -> Record:
    """Store a new object. Raises RestError."""
    kind, meta = call.kind, tree["metadata"]
    if meta.pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    _place(call, meta)
    check_namespace(call, meta.get("name") or meta.get("generateName", ""))
    strategy = strategy_of(kind.storage_resource)
    strategy.set_first_status(tree)
    _stamp(call, meta, has_generation=strategy.has_generation)
    _set_name(call, meta)
    if kind.resource == default_storage_class.CLAIMS:
        default_storage_class.assign(tree, _stored(call, default_storage_class.CLASSES))
    admission.prepare_create(kind, tree, priority_classes(call))
    services.allocate(call, tree)
    if call.request.method == "POST":
        managed_fields.track_create(call, tree)
    try:
        return call.store.create(kind.storage_resource, tree, is_dry_run=call.is_dry_run)
    except AlreadyExistsError:
        raise already_exists(kind, meta["name"]) from None


def priority_classes(call: Call) -> list[Tree]:
    """What admission needs to know of the stored classes; only for the kinds that it asks them for."""
    if call.kind.resource not in ("pods", _PRIORITY_CLASSES):
        return []
    return _stored(call, _PRIORITY_CLASSES)


def _stored(call: Call, resource: str) -> list[Tree]:
    """Not to be changed."""
    return [_decoded(record.body) for record in call.store.list(resource).records]


@lru_cache(maxsize=256)
def _decoded(body: bytes) -> Tree:
    """Not to be changed."""
    return decode_tree(body)


def _namespaces() -> Kind:
    kind = by_resource("namespaces")
    assert kind is not None
    return kind


def _place(call: Call, meta: Tree) -> None:
    """The namespace of the path holds. Raises RestError 400."""
    if not call.kind.namespaced:
        if meta.get("namespace"):
            raise bad_request("namespace is not allowed on this type")
        meta.pop("namespace", None)
        return
    if not call.namespace:
        raise bad_request("an empty namespace may not be set during creation")
    if meta.setdefault("namespace", call.namespace) not in ("", call.namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = call.namespace


def check_namespace(call: Call, name: str) -> None:
    """Creating needs a namespace that exists and stays. Raises RestError 404 or 403."""
    if not call.namespace:
        return
    record = call.store.get("namespaces", "", call.namespace)
    if record is None:
        raise not_found(_namespaces(), call.namespace)
    if record.fields.get("status.phase") == "Terminating":
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        error = forbidden(call.kind, name, why)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {call.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details["causes"] = [cause]
        raise error


def _stamp(call: Call, meta: Tree, *, has_generation: bool) -> None:
    for name in _OWNED:
        meta.pop(name, None)
    meta["uid"] = call.ids.uid()
    meta["creationTimestamp"] = time_text(call.now)
    if has_generation:
        meta["generation"] = 1


def _set_name(call: Call, meta: Tree) -> None:
    """A name from `generateName` when there is none. Raises RestError 422 without both."""
    if meta.get("name"):
        return
    base = meta.get("generateName")
    if not base:
        causes = [required_value("metadata.name", "name or generateName is required")]
        raise invalid(call.kind, "", causes)
    for _ in range(_NAME_ATTEMPTS):
        meta["name"] = base[:_GENERATED_BASE] + call.ids.suffix()
        if call.store.get(call.kind.storage_resource, meta.get("namespace", ""), meta["name"]) is None:
            return


# change


def replace(call: Call) -> Response:
    tree = read_object(call)
    check_name(call, tree["metadata"])
    return answer_object(call, change(call, current(call), tree))


def check_name(call: Call, meta: Tree) -> None:
    """The body's name and namespace must be the path's. Raises RestError 400."""
    name = meta.setdefault("name", call.name)
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    namespace = meta.get("namespace") or call.namespace
    if namespace != call.namespace:
        raise bad_request(
            f"the namespace of the object ({namespace}) "
            f"does not match the namespace on the URL ({call.namespace})"
        )
    if call.namespace:
        meta["namespace"] = namespace


def change(call: Call, record: Record, new: Tree, old: Tree | None = None) -> Record:
    """Replace an object by `new` as a write to it (or, by the call's subresource, to its status).

    `old`: the record's tree when the caller has it (not changed). Raises RestError.
    """
    kind, meta = call.kind, new["metadata"]
    strategy = strategy_of(kind.storage_resource)
    if strategy.needs_version and not meta.get("resourceVersion") and call.request.method == "PUT":
        why = "must be specified for an update"
        raise invalid(kind, record.name, [invalid_value("metadata.resourceVersion", 0, why)])
    check_uid(kind, record, meta.get("uid"))
    check_version(kind, record, meta.get("resourceVersion"))
    old = old if old is not None else record.tree()
    if call.subresource == "status":
        new = _with_status(old, new, strategy.status_metadata)
        admission.prepare_status(kind, new)
        if kind.resource == "pods":
            keep_omitted(old, new)
        _track(call, old, new)
        return store_change(call, record, new)
    if call.subresource == "resize":
        new = prepare_resize(kind, old, new)
    else:
        _keep_status(call, old, new)
        keep_owned(old, new)
        admission.prepare_update(kind, old, new)
    if strategy.has_generation and old.get("spec") != new.get("spec"):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    services.allocate(call, new)
    _track(call, old, new)
    return store_change(call, record, new)


def _track(call: Call, old: Tree, new: Tree) -> None:
    """Server-side apply has written its own entries."""
    if media_type(call.request.content_type) != APPLY_PATCH:
        managed_fields.track_change(call, old, new)


def keep_owned(old: Tree, new: Tree) -> None:
    """What the server owns stays as it was."""
    old_meta, meta = old["metadata"], new["metadata"]
    for name in (*_OWNED, "generateName"):
        if name in old_meta:
            meta[name] = old_meta[name]
        else:
            meta.pop(name, None)


def _keep_status(call: Call, old: Tree, new: Tree) -> None:
    if call.kind.subresource("status") is None:
        return
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def _with_status(old: Tree, new: Tree, metadata: tuple[str, ...]) -> Tree:
    """The old object with the status (and the named metadata) of the new one."""
    merged = {**old, "metadata": dict(old["metadata"])}
    if "status" in new:
        merged["status"] = new["status"]
    else:
        merged.pop("status", None)
    for name in metadata:
        if name in new["metadata"]:
            merged["metadata"][name] = new["metadata"][name]
        else:
            merged["metadata"].pop(name, None)
    return merged


def store_change(call: Call, record: Record, new: Tree) -> Record:
    """Store a changed object; one that only waited for its last finalizer goes now."""
    resource = call.kind.storage_resource
    try:
        stored = call.store.update(resource, new, expected=record.version, is_dry_run=call.is_dry_run)
        if is_finished(new) and not call.is_dry_run:
            return call.store.delete(resource, record.namespace, record.name)
    except ConflictError:
        raise conflict(call.kind, record.name) from None
    return stored


def is_finished(tree: Tree) -> bool:
    """Whether a deleted object has nothing left to wait for."""
    meta = tree["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds") and not (tree.get("spec") or {}).get("finalizers")
