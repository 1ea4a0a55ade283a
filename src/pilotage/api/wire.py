"""HTTP as values, shared by client and embedded server: neither knows which side it plays.

Requests and responses, the Status body of every error, watch frames, content types, selector queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pilotage.api.meta import View

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Request:
    """`path` without query; `query` values are not yet URL-encoded."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)  # lower-case names
    content_type: str = JSON


class StatusCause(View, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(View, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: int = 0


class Status(View, frozen=True):
    """What a server says of a failure (or of a success without an object)."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


_STATUS: Final = msgspec.json.Decoder(Status)


def status_body(code: int, reason: str, message: str, **details: object) -> bytes:
    """JSON of a Status; `details` by their JSON names (name, kind, causes, ...), None is left out."""
    return msgspec.json.encode(status_tree(code, reason, message, **details))


def status_tree(code: int, reason: str, message: str, **details: object) -> dict[str, object]:
    """The Status as a dict: a Failure from 400 on, else a Success."""
    tree: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure" if code >= 400 else "Success",
    }
    if message:
        tree["message"] = message
    if reason:
        tree["reason"] = reason
    given = {name: value for name, value in details.items() if value is not None}
    if given:
        tree["details"] = given
    tree["code"] = code
    return tree


def decode_status(body: bytes) -> Status | None:
    """The Status in a body, None when it holds none (a proxy's page, an object, nothing)."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.status or status.code else None


def watch_frame(event_type: str, object_json: bytes) -> bytes:
    """One line of a watch stream, newline included."""
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), object_json)


def bookmark_frame(
    kind: str, api_version: str, resource_version: str, annotations: Mapping[str, str] | None = None
) -> bytes:
    """A BOOKMARK line: an object of the kind that holds nothing but its resourceVersion."""
    metadata: dict[str, object] = {"resourceVersion": resource_version, "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = dict(annotations)
    tree = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return watch_frame(BOOKMARK, msgspec.json.encode(tree))


def selector_query(
    labels: Mapping[str, str] | str | None = None, fields: Mapping[str, str] | str | None = None
) -> dict[str, str]:
    """Query parameters that select by labels and fields; maps mean equality, texts are taken as they are."""
    query = {}
    if labels:
        query["labelSelector"] = labels if isinstance(labels, str) else _equalities(labels)
    if fields:
        escaped = (
            fields if isinstance(fields, str) else _equalities({k: _escaped(v) for k, v in fields.items()})
        )
        query["fieldSelector"] = escaped
    return query


def _equalities(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in pairs.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
