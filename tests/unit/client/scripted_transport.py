"""A Transport that plays a script: answers in order, and notes what was asked and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotage.api.wire import Request, Response
from pilotage.client.transport import TransportError


def pod(name: str, version: str, uid: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [], **spec}}


def page(version: str, *items: dict[str, Any], token: str = "") -> Response:
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    return Response(200, json.dumps({"kind": "PodList", "metadata": metadata, "items": items}).encode())


def status(code: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason.lower()}
    return Response(code, json.dumps(body).encode(), headers or {})


def event(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode()


def bookmark(version: str) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


def error_event(code: int, reason: str) -> bytes:
    return event("ERROR", {"kind": "Status", "status": "Failure", "code": code, "reason": reason})


CUT = object()  # the stream breaks here
HANG = object()  # the stream says nothing more


@dataclass
class ScriptedStream:
    script: Sequence[Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    closed: bool = False

    async def lines(self) -> AsyncIterator[bytes]:
        for item in self.script:
            if item is CUT:
                raise TransportError("cut", sent=True)
            if item is HANG:
                await asyncio.Event().wait()
            yield item

    async def read(self) -> bytes:
        return self.body

    async def close(self) -> None:
        self.closed = True


def refused(response: Response) -> ScriptedStream:
    return ScriptedStream([], response.status, response.headers, response.body)


@dataclass
class ScriptedTransport:
    """`lists` and `streams` are used up in order; a further watch hangs, a further list fails the test."""

    lists: list[Response | TransportError]
    streams: list[ScriptedStream | TransportError] = field(default_factory=list)
    asked: list[tuple[float, str, dict[str, str]]] = field(default_factory=list)
    opened: list[ScriptedStream] = field(default_factory=list)

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        del timeout
        self._note("list", request)
        assert self.lists, f"one list too many: {self.asked}"
        return _play(self.lists.pop(0))

    async def stream(self, request: Request) -> ScriptedStream:
        self._note("watch", request)
        stream = _play(self.streams.pop(0) if self.streams else ScriptedStream([HANG]))
        self.opened.append(stream)
        return stream

    async def close(self) -> None:
        pass

    def _note(self, what: str, request: Request) -> None:
        self.asked.append((asyncio.get_running_loop().time(), what, dict(request.query)))

    def queries(self, what: str) -> list[dict[str, str]]:
        return [query for _, kind, query in self.asked if kind == what]

    def times(self, what: str) -> list[float]:
        return [at for at, kind, _ in self.asked if kind == what]

    def resumed_at(self) -> list[str | None]:
        return [query.get("resourceVersion") for query in self.queries("watch")]


def _play(item: Any) -> Any:
    if isinstance(item, TransportError):
        raise item
    return item
