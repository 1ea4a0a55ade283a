"""What was asked of the API server, by whom, when and with which answer.

Laws: every request that enters a `FaultyTransport` has one record, in the order of entering, also when a
fault kept it from the server. `text()` is the same for two runs with one seed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import msgspec

from pilotage.api.wire import Request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(request: Request) -> str:
    """The Kubernetes verb: get, list, watch, create, update, patch, delete, deletecollection."""
    named = _is_named(request.path)
    if request.method == "GET":
        if request.query.get("watch") in ("1", "true"):
            return "watch"
        return "get" if named else "list"
    if request.method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


def _is_named(path: str) -> bool:
    """Whether the path ends in an object (or its subresource) and not in a collection."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    return len(rest) != 1


@dataclass(slots=True)
class Record:
    """One request. Times are virtual seconds since the start; `status` is None while it is open."""

    number: int
    time: float
    client: str
    verb: str
    request: Request
    status: int | None = None
    finished: float | None = None
    error: str = ""
    faults: list[str] = field(default_factory=list)

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def path(self) -> str:
        return self.request.path

    def json(self) -> Any:
        """The body, decoded. Raises `msgspec.DecodeError` where it is not JSON."""
        return msgspec.json.decode(self.request.body)

    def line(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in sorted(self.request.query.items()))
        answer = f"{self.status or '-'} {self.finished:.6f}" if self.finished is not None else "open"
        body = f" body={crc32(self.request.body):08x}" if self.request.body else ""
        faults = f" faults={','.join(self.faults)}" if self.faults else ""
        target = f"{self.path}?{query}" if query else self.path
        return f"{self.time:.6f} {self.client} {self.method} {target}{body} -> {answer}{faults} {self.error}"


class RequestLog:
    def __init__(self) -> None:
        # Every request so far, in the order in which it entered.
        self.records: list[Record] = []

    def open(self, client: str, request: Request, now: float) -> Record:
        record = Record(len(self.records), now, client, verb_of(request), request)
        self.records.append(record)
        return record

    def select(
        self,
        *,
        method: str = "",
        verb: str = "",
        path: str = "",
        client: str = "",
        status: int | None = None,
        since: float = 0.0,
    ) -> list[Record]:
        """Records that match all that is given; `path` is a regular expression, searched for."""
        pattern = re.compile(path)
        return [
            record
            for record in self.records
            if (not method or record.method == method)
            and (not verb or record.verb == verb)
            and (not client or record.client == client)
            and (status is None or record.status == status)
            and record.time >= since
            and pattern.search(record.path)
        ]

    def text(self) -> str:
        return "\n".join(record.line().rstrip() for record in self.records) + "\n"
