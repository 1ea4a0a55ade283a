"""How a watcher reads bytes: as typed views (the scheduler) or as whole dicts (controllers).

Law: one bad object never spoils a list or a stream; it becomes a `Seen` with `is_failure`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from pilotage.api import decode
from pilotage.api.decode import DecodeFailure, EnvelopeError
from pilotage.api.kinds import Kind
from pilotage.api.lean import Sharing
from pilotage.api.meta import KubeObject, ObjectMeta
from pilotage.api.wire import Status
from pilotage.client.errors import ApiError, error_of_status, error_of_view
from pilotage.client.known import Identity, Seen


class BrokenFrameError(Exception):
    """Bytes that are no list or no watch event at all: the stream cannot be trusted any more."""


class FrameType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class Page(NamedTuple):
    version: str
    continue_token: str
    items: list[Seen]


class Frame(NamedTuple):
    """One watch event. `version`: where to resume after it, "" when it does not tell."""

    type: FrameType
    version: str
    seen: Seen | None = None
    error: ApiError | None = None


class Decoder(Protocol):
    def page(self, body: bytes) -> Page:
        """Raises BrokenFrameError."""

    def frame(self, line: bytes) -> Frame:
        """Raises BrokenFrameError."""

    def placeholder(self, identity: Identity) -> Any:
        """The last known state of an object that never could be decoded."""


class TypedDecoder:
    """Views of the kind; an undecodable object is an `api.decode.DecodeFailure`."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def page(self, body: bytes) -> Page:
        try:
            page = decode.decode_list(self._kind, body)
        except EnvelopeError as problem:
            raise BrokenFrameError(f"no list of {self._kind.resource}: {problem}") from None
        return Page(page.resource_version, page.continue_token, [self._typed(item) for item in page.items])

    def frame(self, line: bytes) -> Frame:
        try:
            event = decode.decode_watch_line(self._kind, line)
        except EnvelopeError as problem:
            raise BrokenFrameError(f"no watch event of {self._kind.resource}: {problem}") from None
        if isinstance(event.object, Status):
            return Frame(FrameType.ERROR, "", error=error_of_view(event.object))
        seen = self._typed(event.object)
        return Frame(FrameType(event.type), seen.identity.version, seen)

    def _typed(self, item: KubeObject | DecodeFailure) -> Seen:
        return _typed(item)

    def placeholder(self, identity: Identity) -> KubeObject:
        view = self._kind.view or KubeObject
        return view(metadata=ObjectMeta(name=identity.name, namespace=identity.namespace, uid=identity.uid))


class LeanDecoder(TypedDecoder):
    """For the scheduler alone: views in little memory, without what it does not read (`api.lean`)."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self._sharing = Sharing()

    def _typed(self, item: KubeObject | DecodeFailure) -> Seen:
        return _typed(item if isinstance(item, DecodeFailure) else self._sharing.slim(item))


class DictDecoder:
    """Whole objects as dicts, with apiVersion and kind filled in where list items lack them."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def page(self, body: bytes) -> Page:
        try:
            document = msgspec.json.decode(body, type=dict[str, Any])
            metadata, items = document.get("metadata") or {}, document.get("items") or []
            seen = [self._seen(item) for item in items]
        except (msgspec.MsgspecError, AttributeError, TypeError, ValueError) as problem:
            raise BrokenFrameError(f"no list of {self._kind.resource}: {problem}") from None
        return Page(metadata.get("resourceVersion") or "", metadata.get("continue") or "", seen)

    def frame(self, line: bytes) -> Frame:
        try:
            document = msgspec.json.decode(line, type=dict[str, Any])
            kind, item = FrameType(document.get("type")), document["object"]
            if kind is FrameType.ERROR:
                return Frame(kind, "", error=error_of_status(item))
            seen = self._seen(item)
        except (msgspec.MsgspecError, AttributeError, KeyError, TypeError, ValueError) as problem:
            raise BrokenFrameError(f"no watch event of {self._kind.resource}: {problem}") from None
        return Frame(kind, seen.identity.version, seen)

    def placeholder(self, identity: Identity) -> dict[str, Any]:
        return {"metadata": {"name": identity.name, "namespace": identity.namespace, "uid": identity.uid}}

    def _seen(self, item: dict[str, Any]) -> Seen:
        meta = item.get("metadata") or {}
        names = (meta.get(key) or "" for key in ("namespace", "name", "uid", "resourceVersion"))
        item.setdefault("apiVersion", self._kind.api_version)
        item.setdefault("kind", self._kind.kind)
        return Seen(Identity(*names), item)


def _typed(item: KubeObject | DecodeFailure) -> Seen:
    if isinstance(item, DecodeFailure):
        identity = Identity(item.namespace, item.name, item.uid, item.resource_version)
        return Seen(identity, item, is_failure=True)
    meta = item.metadata
    return Seen(Identity(meta.namespace, meta.name, meta.uid, meta.resource_version), item)
