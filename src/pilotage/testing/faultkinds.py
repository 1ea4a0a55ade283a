"""Each way in which an API server or the network may misbehave, one class each.

A fault stands between a client and the rest of the way (`send`, `open`), which may hold further faults;
so they compose in the order in which they were added. A new fault is a new class here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, TransportError
from pilotage.testing.streams import ControlledStream, StaticStream

Send: TypeAlias = Callable[[], Awaitable[Response]]
Open: TypeAlias = Callable[[], Awaitable[Stream]]


class Fault:
    """The base does nothing."""

    async def request(self, request: Request, send: Send) -> Response:
        return await send()

    async def stream(self, request: Request, open_: Open) -> Stream:
        return await open_()


def failure(code: int, reason: str, message: str, **details: object) -> bytes:
    """A Kubernetes Status, as any server would phrase it."""
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details:
        status["details"] = details
    return msgspec.json.encode(status)


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Answer(Fault):
    """The server answers an error without doing anything."""

    def __init__(self, status: int, message: str = "", retry_after: int | None = None) -> None:
        details: dict[str, object] = {} if retry_after is None else {"retryAfterSeconds": retry_after}
        text = message or f"injected fault: {status}"
        self.status = status
        self.body = failure(status, REASONS.get(status, "Unknown"), text, **details)
        self.headers: Mapping[str, str] = {} if retry_after is None else {"retry-after": str(retry_after)}

    async def request(self, request: Request, send: Send) -> Response:
        del request, send
        return Response(self.status, self.body, self.headers)

    async def stream(self, request: Request, open_: Open) -> Stream:
        del request, open_
        stream = StaticStream(self.status, self.body)
        stream.headers = self.headers
        return stream


class Latency(Fault):
    """Waits before the server sees the request, and again before the client sees the answer."""

    def __init__(self, before: float = 0.0, after: float = 0.0) -> None:
        self.before = before
        self.after = after

    async def request(self, request: Request, send: Send) -> Response:
        del request
        await asyncio.sleep(self.before)
        response = await send()
        await asyncio.sleep(self.after)
        return response

    async def stream(self, request: Request, open_: Open) -> Stream:
        del request
        await asyncio.sleep(self.before)
        return await open_()


class Hold(Fault):
    """Keeps matching calls until the test releases them.

    `after_write`: the server acts at once and the answer is what is held. `lands_anyway`: a call whose
    client gave up meanwhile still reaches the server on release.
    """

    def __init__(self, *, after_write: bool = False, lands_anyway: bool = False) -> None:
        self.after_write = after_write
        self.lands_anyway = lands_anyway
        self.waiting: list[Request] = []  # calls held right now, oldest first
        self._gates: list[asyncio.Event] = []
        self._is_open = False
        self._background: set[asyncio.Task[Response]] = set()

    def release(self, count: int | None = None) -> None:
        """Let the oldest `count` calls go on; without a number all, and later ones at once."""
        if count is None:
            self._is_open = True
        for gate in [gate for gate in self._gates if not gate.is_set()][:count]:
            gate.set()

    async def request(self, request: Request, send: Send) -> Response:
        if not self.lands_anyway:
            return await self._held(request, send)
        task = asyncio.get_running_loop().create_task(self._background_send(request, send), name="held-call")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return await asyncio.shield(task)

    async def stream(self, request: Request, open_: Open) -> Stream:
        await self._pass(request)
        return await open_()

    async def _background_send(self, request: Request, send: Send) -> Response:
        return await self._held(request, send)

    async def _held(self, request: Request, send: Send) -> Response:
        if self.after_write:
            response = await send()
            await self._pass(request)
            return response
        await self._pass(request)
        return await send()

    async def _pass(self, request: Request) -> None:
        if self._is_open:
            return
        gate = asyncio.Event()
        self.waiting.append(request)
        self._gates.append(gate)
        try:
            await gate.wait()
        finally:
            self.waiting.remove(request)
            self._gates.remove(gate)


class LoseAnswer(Fault):
    """The connection breaks without an answer, after the server acted or before."""

    def __init__(self, *, after_write: bool = True) -> None:
        self.after_write = after_write

    async def request(self, request: Request, send: Send) -> Response:
        if self.after_write:
            await send()
        raise TransportError(f"connection reset: no answer to {request.method} {request.path}", sent=True)

    async def stream(self, request: Request, open_: Open) -> Stream:
        del open_
        raise TransportError(f"connection reset: no answer to watch of {request.path}", sent=True)


class Unreachable(Fault):
    """Nobody listens."""

    async def request(self, request: Request, send: Send) -> Response:
        del send
        raise TransportError(f"connection refused: {request.method} {request.path}", sent=False)

    async def stream(self, request: Request, open_: Open) -> Stream:
        del open_
        raise TransportError(f"connection refused: watch of {request.path}", sent=False)


class GoneInStream(Fault):
    """The watch opens with 200 and its only line is an ERROR event that holds a 410."""

    async def stream(self, request: Request, open_: Open) -> Stream:
        del open_
        version = request.query.get("resourceVersion", "")
        status = failure(410, "Expired", f"too old resource version: {version} (999999999)")
        return StaticStream(200, lines=[b'{"type":"ERROR","object":' + status + b"}"])


class StaleWatch(Fault):
    """Events arrive late."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    async def stream(self, request: Request, open_: Open) -> Stream:
        del request
        return _controlled(await open_(), delay=self.delay)


class CutWatch(Fault):
    """The watch breaks after some events."""

    def __init__(self, after_events: int) -> None:
        self.after_events = after_events

    async def stream(self, request: Request, open_: Open) -> Stream:
        del request
        return _controlled(await open_(), cut_after=self.after_events)


def _controlled(stream: Stream, *, delay: float = 0.0, cut_after: int | None = None) -> Stream:
    return ControlledStream(stream, delay=delay, cut_after=cut_after) if stream.status == 200 else stream
