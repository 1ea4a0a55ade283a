"""OpenAPI documents from the schema: for kubectl's explain, patches and question about field validation.

They hold names, types, required fields and merge keys; descriptions they do not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from pilotage.api.kinds import KINDS, Kind
from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest import schema
from pilotage.localcluster.rest.errors import not_acceptable, unknown_path
from pilotage.localcluster.rest.negotiation import media_ranges
from pilotage.localcluster.rest.schema import Field, Shape
from pilotage.localcluster.store import Tree, encode_tree

_TITLE = {"title": "Kubernetes", "version": "v1.37.0"}
_V3 = "/openapi/v3"
_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
_FIELD_VALIDATION = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What to do about unknown fields: Ignore, Warn or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}
_PREFIXED = re.compile(r"((?:[A-Z][a-z]+)?V\d+(?:alpha\d+|beta\d+)?)([A-Z].*)")
_SCALARS: dict[str, Tree] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "datetime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
}


def answer(request: Request) -> Response:
    """GET /openapi/... Raises RestError 404 or 406."""
    path = request.path.rstrip("/")
    if path == "/openapi/v2":
        if not any(media in ("application/json", "*/*") for media, _ in media_ranges(request.accept)):
            raise not_acceptable()
        return Response(200, _v2())
    if path == _V3:
        return Response(200, _index())
    kinds = [kind for kind in KINDS if kind.root == path.removeprefix(_V3)]
    if not path.startswith(_V3) or not kinds:
        raise unknown_path()
    return Response(200, _document(kinds[0].root))


@cache
def _index() -> bytes:
    roots = sorted({kind.root for kind in KINDS})
    urls = {
        root.strip("/"): {"serverRelativeURL": f"{_V3}{root}?hash=pilotage-{len(KINDS)}"} for root in roots
    }
    return encode_tree({"paths": urls})


@cache
def _document(root: str) -> bytes:
    kinds = [kind for kind in KINDS if kind.root == root]
    return encode_tree(
        {
            "openapi": "3.0.0",
            "info": _TITLE,
            "paths": _paths(kinds),
            "components": {"schemas": _definitions(kinds, "#/components/schemas/")},
        }
    )


@cache
def _v2() -> bytes:
    definitions = _definitions(KINDS, "#/definitions/")
    return encode_tree({"swagger": "2.0", "info": _TITLE, "paths": _paths(KINDS), "definitions": definitions})


def _paths(kinds: Iterable[Kind]) -> Tree:
    paths: Tree = {}
    for kind in kinds:
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        collection = f"{kind.root}{scope}/{kind.plural}"
        for method, verb, path in (
            ("post", "create", collection),
            ("get", "list", collection),
            ("put", "update", f"{collection}/{{name}}"),
            ("patch", "patch", f"{collection}/{{name}}"),
            ("delete", "delete", f"{collection}/{{name}}"),
        ):
            if verb in kind.verbs:
                paths.setdefault(path, {})[method] = _operation(kind, verb)
    return paths


def _operation(kind: Kind, verb: str) -> Tree:
    operation: Tree = {
        "operationId": f"{verb}{kind.kind}{kind.version}{kind.group}",
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": verb,
        _GROUP_VERSION_KIND: _identity(kind),
    }
    if verb in ("create", "update", "patch"):
        operation["parameters"] = [_FIELD_VALIDATION]
    return operation


def _identity(kind: Kind) -> Tree:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _definitions(kinds: Iterable[Kind], prefix: str) -> Tree:
    """The types of these kinds and all that they refer to."""
    roots = {schema.type_of(kind): kind for kind in kinds}
    todo, definitions = [name for name in roots if name], {}
    while todo:
        name = todo.pop()
        shown = _shown(name)
        if shown in definitions:
            continue
        definitions[shown] = _definition(name, prefix)
        if name in roots:
            definitions[shown][_GROUP_VERSION_KIND] = [_identity(roots[name])]
        todo += [field.type for field in schema.fields_of(name).values() if schema.fields_of(field.type)]
    return definitions


def _shown(name: str) -> str:
    """`V1PodSpec` as `io.k8s.v1.PodSpec`: clients show what follows the last dot."""
    match = _PREFIXED.fullmatch(name)
    return f"io.k8s.{match[1].lower()}.{match[2]}" if match else f"io.k8s.{name}"


def _definition(name: str, prefix: str) -> Tree:
    fields = schema.fields_of(name)
    required = [key for key, field in fields.items() if field.is_required]
    definition: Tree = {
        "type": "object",
        "properties": {key: _property(name, key, field, prefix) for key, field in fields.items()},
    }
    if required:
        definition["required"] = required
    return definition


def _property(owner: str, key: str, field: Field, prefix: str) -> Tree:
    value = _value(field, prefix)
    if field.shape is Shape.MAP:
        return {"type": "object", "additionalProperties": value}
    if field.shape is not Shape.LIST:
        retains = (owner, key) in schema.RETAIN_KEYS
        return value | {"x-kubernetes-patch-strategy": "retainKeys"} if retains else value
    rule = schema.list_rule(owner, key)
    items: Tree = {"type": "array", "items": value}
    if rule is None:
        return items | {"x-kubernetes-list-type": "atomic"}
    items["x-kubernetes-patch-strategy"] = rule.strategy
    if not rule.merge_key:
        return items | {"x-kubernetes-list-type": "set"}
    return items | {
        "x-kubernetes-patch-merge-key": rule.merge_key,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(rule.map_keys),
    }


def _value(field: Field, prefix: str) -> Tree:
    if schema.fields_of(field.type):
        return {"$ref": prefix + _shown(field.type)}
    return dict(_SCALARS.get(field.type, {"x-kubernetes-preserve-unknown-fields": True}))
