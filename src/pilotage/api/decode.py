"""JSON of an API server into typed views, object by object.

Laws: an object that cannot be decoded never hides the others: it becomes a `DecodeFailure` that names the
object and the field. A whole list is tried in one go (the usual case, and fast); only when that fails is
it decoded item by item. A null where a value is expected counts as absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from pilotage.api import wire
from pilotage.api.kinds import Kind
from pilotage.api.meta import KubeObject, View
from pilotage.api.wire import Status

Raw: TypeAlias = bytes | bytearray | memoryview | msgspec.Raw
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DecodeFailure:
    """An object that cannot be read. Identity is as far as it could be made out; `error` names the field.

    `scheduler_name` and `node_name` matter for pods: whose it is, and whether it is bound.
    """

    resource: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    error: str
    scheduler_name: str = "default-scheduler"
    node_name: str = ""


class DecodeError(ValueError):
    """A single object could not be decoded; `failure` tells which and why."""

    def __init__(self, failure: DecodeFailure) -> None:
        self.failure = failure
        super().__init__(f"{failure.resource} {failure.namespace}/{failure.name}: {failure.error}")


class EnvelopeError(ValueError):
    """Not a list, not a watch line: the answer as a whole cannot be used."""


@dataclass(frozen=True, slots=True)
class ListPage:
    resource_version: str
    continue_token: str
    items: list[KubeObject | DecodeFailure]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`object` is a view for ADDED, MODIFIED, DELETED; KubeObject for BOOKMARK; Status for ERROR."""

    type: str
    object: KubeObject | DecodeFailure | Status


class _ListMeta(View, frozen=True):
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _List(View, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[T] | None = None


class _Line(View, frozen=True):
    type: str
    object: msgspec.Raw


_LINE: Final = msgspec.json.Decoder(_Line)
_RAW_LIST: Final = msgspec.json.Decoder(_List[msgspec.Raw])
_BOOKMARK: Final = msgspec.json.Decoder(KubeObject)


def decode_object(kind: Kind, raw: Raw) -> KubeObject:
    """The view of one object. Raises DecodeError."""
    decoded = _decode_one(kind, raw)
    if isinstance(decoded, DecodeFailure):
        raise DecodeError(decoded)
    return decoded


def convert_object(kind: Kind, tree: object) -> KubeObject:
    """The view of an object that was parsed already (dicts, from YAML). Raises DecodeError."""
    view = kind.view or KubeObject
    try:
        return msgspec.convert(tree, view)
    except msgspec.ValidationError:
        pass  # a null in the wrong place, or a real fault
    try:
        return msgspec.convert(_without_nulls(tree), view)
    except msgspec.ValidationError as error:
        raise DecodeError(_failure(kind, tree, error)) from None


def decode_list(kind: Kind, body: bytes) -> ListPage:
    """One page of a list. Raises EnvelopeError when the body is no list at all."""
    try:
        page: _List[Any] = _list_decoder(kind).decode(body)
        items = page.items or []
    except (msgspec.DecodeError, UnicodeDecodeError):
        page, items = _item_by_item(kind, body)
    return ListPage(page.metadata.resource_version, page.metadata.continue_token or "", items)


def decode_watch_line(kind: Kind, line: bytes) -> WatchEvent:
    """One event of a watch stream. Raises EnvelopeError when the line is no event."""
    try:
        envelope = _LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EnvelopeError(f"not a watch event: {error}") from None
    match envelope.type:
        case wire.ADDED | wire.MODIFIED | wire.DELETED:
            return WatchEvent(envelope.type, _decode_one(kind, envelope.object))
        case wire.BOOKMARK:
            return WatchEvent(envelope.type, _bookmark(envelope.object))
        case wire.ERROR:
            return WatchEvent(envelope.type, _error_status(envelope.object))
        case unknown:
            raise EnvelopeError(f"unknown watch event type {unknown!r}")


def _bookmark(raw: msgspec.Raw) -> KubeObject:
    try:
        return _BOOKMARK.decode(raw)
    except msgspec.DecodeError as error:
        raise EnvelopeError(f"not a bookmark: {error}") from None


def _error_status(raw: msgspec.Raw) -> Status:
    """An ERROR without a readable Status is still an error: an internal one."""
    text = bytes(raw)
    return wire.decode_status(text) or Status(
        status="Failure", code=500, reason="InternalError", message=text[:200].decode("utf-8", "replace")
    )


@cache
def _decoder(kind: Kind) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind.view or KubeObject)


@cache
def _list_decoder(kind: Kind) -> msgspec.json.Decoder[Any]:
    view: Any = kind.view or KubeObject
    return msgspec.json.Decoder(_List[view])


def _decode_one(kind: Kind, raw: Raw) -> KubeObject | DecodeFailure:
    try:
        decoded: KubeObject = _decoder(kind).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _decode_leniently(kind, bytes(raw), error)
    return decoded


def _decode_leniently(kind: Kind, raw: bytes, error: Exception) -> KubeObject | DecodeFailure:
    """A second look at what did not decode: without nulls, else what can be told of it."""
    try:
        tree: object = msgspec.json.decode(raw.decode("utf-8", "replace"))
    except msgspec.DecodeError:
        return _failure(kind, None, error)
    if isinstance(error, msgspec.ValidationError):
        try:
            return convert_object(kind, tree)
        except DecodeError as still:
            return still.failure
    return _failure(kind, tree, error)


def _item_by_item(kind: Kind, body: bytes) -> tuple[_List[Any], list[KubeObject | DecodeFailure]]:
    try:
        page = _RAW_LIST.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EnvelopeError(f"not a list of {kind.resource}: {_described(error)}") from None
    return page, [_decode_one(kind, raw) for raw in page.items or ()]


def _failure(kind: Kind, tree: object, error: Exception) -> DecodeFailure:
    metadata, spec = _part(tree, "metadata"), _part(tree, "spec")
    return DecodeFailure(
        resource=kind.resource,
        namespace=_text(metadata, "namespace"),
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        resource_version=_text(metadata, "resourceVersion"),
        error=_described(error),
        scheduler_name=_text(spec, "schedulerName") or "default-scheduler",
        node_name=_text(spec, "nodeName"),
    )


def _part(tree: object, name: str) -> dict[str, object]:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, dict) else {}


def _text(tree: dict[str, object], name: str) -> str:
    value = tree.get(name)
    return value if isinstance(value, str) else ""


def _described(error: Exception) -> str:
    """`spec.unschedulable: Expected bool, got str` from msgspec's text."""
    problem, marker, path = str(error).replace("`", "").partition(" - at ")
    path = path.removeprefix("$").removeprefix(".")
    return f"{path}: {problem}" if marker and path else problem


def _without_nulls(tree: object) -> object:
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(value) for value in tree]
    return tree
