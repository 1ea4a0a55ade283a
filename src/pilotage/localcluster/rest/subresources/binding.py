"""POST pods/N/binding (and namespaces/x/bindings): a pod gets its node, once."""

from __future__ import annotations

import msgspec

from pilotage.api.kinds import Kind, by_resource
from pilotage.api.wire import Response
from pilotage.localcluster.rest.bodies import media_type, read_tree
from pilotage.localcluster.rest.call import Call, answer
from pilotage.localcluster.rest.conditions import set_condition
from pilotage.localcluster.rest.errors import (
    Cause,
    bad_request,
    conflict,
    invalid,
    not_found,
    required_value,
    success_status,
    unsupported_value,
)
from pilotage.localcluster.store import Record, Tree


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Target(msgspec.Struct, gc=False):
    kind: str | None = None
    name: str | None = None


class _Binding(msgspec.Struct, rename="camel", gc=False):
    kind: str | None = None
    api_version: str | None = None
    metadata: _Meta | None = None
    target: _Target | None = None


_decode = msgspec.json.Decoder(_Binding).decode
_KIND = by_resource("bindings")
_PODS = by_resource("pods")
assert _KIND is not None
assert _PODS is not None
BINDINGS: Kind = _KIND
PODS: Kind = _PODS


def bind(call: Call) -> Response:
    """POST pods/N/binding: the pod is the path's. Raises RestError 400, 404, 409 or 422."""
    binding = _read(call)
    meta = binding.metadata or _Meta()
    if (meta.name or call.name) != call.name:
        raise bad_request("name in URL does not match name in Binding object")
    if (meta.namespace or call.namespace) != call.namespace:
        raise bad_request("namespace in URL does not match namespace in Binding object")
    return _bind(call, call.name, binding, meta)


def create_binding(call: Call) -> Response:
    """POST namespaces/x/bindings: the pod is the one that the body names."""
    binding = _read(call)
    meta = binding.metadata or _Meta()
    if not meta.name:
        raise bad_request("Binding object needs metadata.name")
    return _bind(call, meta.name, binding, meta)


def _read(call: Call) -> _Binding:
    try:
        if media_type(call.request.content_type) == "application/json":
            return _decode(call.request.body)
        return msgspec.convert(read_tree(call.request), _Binding)
    except msgspec.DecodeError as error:
        raise bad_request(f'Binding in version "v1" cannot be handled as a Binding: {error}') from None


def _bind(call: Call, name: str, binding: _Binding, meta: _Meta) -> Response:
    if binding.kind not in (None, "", "Binding"):
        raise bad_request(
            f"the kind of the object ({binding.kind}) does not match the expected kind (Binding)"
        )
    node = _target(name, binding.target)
    record = call.store.get("pods", call.namespace, name)
    if record is None:
        raise not_found(PODS, name)
    _check_preconditions(record, meta)
    tree = record.tree()
    why = _refusal(tree, name)
    if why:
        raise conflict(PODS, name, why, subresource="binding")
    _assign(tree, node, meta, call.now)
    call.store.update("pods", tree, is_dry_run=call.is_dry_run)
    return answer(success_status(PODS, name, record.uid), 201)


def _target(name: str, target: _Target | None) -> str:
    causes: list[Cause] = []
    if target is not None and target.kind not in (None, "", "Node"):
        causes.append(unsupported_value("target.kind", target.kind, ["Node", "<empty>"]))
    if target is None or not target.name:
        causes.append(required_value("target.name"))
    if causes or target is None or target.name is None:
        raise invalid(BINDINGS, name, causes)
    return target.name


def _check_preconditions(record: Record, meta: _Meta) -> None:
    if meta.uid and meta.uid != record.uid:
        why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {record.uid}"
        raise conflict(PODS, record.name, why, subresource="binding")
    if meta.resource_version and meta.resource_version != str(record.version):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {meta.resource_version}, "
            f"ResourceVersion in object meta: {record.version}"
        )
        raise conflict(PODS, record.name, why, subresource="binding")


def _refusal(tree: Tree, name: str) -> str:
    spec = tree.get("spec") or {}
    if "deletionTimestamp" in tree["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assign(tree: Tree, node: str, meta: _Meta, now: float) -> None:
    tree.setdefault("spec", {})["nodeName"] = node
    status = tree.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status, "PodScheduled", "True", now)
    for field, extra in (("labels", meta.labels), ("annotations", meta.annotations)):
        if extra:
            tree["metadata"][field] = {**(tree["metadata"].get(field) or {}), **extra}
