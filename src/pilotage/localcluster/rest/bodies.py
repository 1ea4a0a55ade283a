"""Request bodies: JSON, YAML or protobuf to one tree, with the API's words for what is wrong with them."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from pilotage.api.kinds import Kind
from pilotage.api.wire import JSON, PROTOBUF, YAML, Request
from pilotage.localcluster.rest import protobuf
from pilotage.localcluster.rest.errors import RestError, bad_request, unsupported_media
from pilotage.localcluster.store import Tree

_ACCEPTED = (JSON, YAML, PROTOBUF)
_decode_json = msgspec.json.Decoder().decode
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _JsonLikeLoader(_Loader):  # type: ignore[misc]  # the base is chosen at run time
    """YAML with JSON's types only: dates stay strings, as they do in Kubernetes."""


_JsonLikeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def parse_json(body: bytes) -> object:
    """Raises RestError 400."""
    try:
        return _decode_json(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def parse_yaml(body: bytes) -> object:
    """Raises RestError 400 for bad YAML and for values that JSON cannot hold."""
    try:
        return msgspec.to_builtins(yaml.load(body, _JsonLikeLoader), str_keys=True)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None


def _parse_protobuf(body: bytes) -> Tree:
    try:
        return protobuf.decode(body)
    except protobuf.ProtobufError as error:
        raise bad_request(f"couldn't read the protobuf body: {error}") from None


def read_tree(request: Request) -> Tree:
    """The body as one object. Raises RestError 400 or 415."""
    media = media_type(request.content_type)
    if media in (JSON, ""):
        tree = parse_json(request.body) if request.body else None
    elif media == YAML:
        tree = parse_yaml(request.body)
    elif media == PROTOBUF:
        tree = _parse_protobuf(request.body)
    else:
        raise unsupported_media(media, _ACCEPTED)
    if not isinstance(tree, dict):
        raise bad_request("the body of the request must be one object")
    return tree


def check_type(tree: Tree, kind: Kind, api_version: str, kind_name: str = "") -> None:
    """The body's apiVersion and kind must be the path's; absent ones are filled in. Raises RestError 400."""
    expected = kind_name or kind.kind
    if tree.setdefault("kind", expected) != expected:
        raise bad_request(
            f"{tree['kind']} in version {tree.get('apiVersion', '')!r} cannot be handled as a {expected}: "
            f"kind {tree['kind']!r} is not the one of this path"
        )
    if tree.setdefault("apiVersion", api_version) != api_version:
        raise bad_request(
            f"the API version in the data ({tree['apiVersion']}) "
            f"does not match the expected API version ({api_version})"
        )


def metadata_of(tree: Tree) -> Tree:
    """`metadata`, made when absent. Raises RestError 400 when it is no object or has fields of wrong type."""
    meta = tree.get("metadata")
    if meta is None:
        meta = tree["metadata"] = {}
    if not isinstance(meta, dict):
        raise bad_request("json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta")
    for name in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        value = meta.get(name)
        if value is None:
            meta.pop(name, None)
        elif not isinstance(value, str):
            raise _wrong_type(name, value, "string")
    for name in ("labels", "annotations"):
        _check_string_map(meta, name)
    return meta


def _check_string_map(meta: Tree, name: str) -> None:
    value = meta.get(name)
    if value is None:
        meta.pop(name, None)
        return
    if not isinstance(value, dict):
        raise _wrong_type(name, value, "map[string]string")
    for item in value.values():
        if not isinstance(item, str):
            raise _wrong_type(name, item, "string")


def _wrong_type(name: str, value: object, expected: str) -> RestError:
    return bad_request(
        f"json: cannot unmarshal {_json_type(value)} into Go struct field ObjectMeta.metadata.{name} "
        f"of type {expected}"
    )


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")
