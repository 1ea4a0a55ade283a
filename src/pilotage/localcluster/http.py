"""The API server on a socket: a bare ASGI application between uvicorn and the pure server.

It knows bytes, headers and connections, and who may ask: everybody with the token; without one only the
health and version paths. A client that does not read is cut off after a while; what it missed it will learn
from a new list.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from pilotage.api.wire import Request, Response
from pilotage.localcluster.host import ApiHost, OpenWatch
from pilotage.localcluster.rest.errors import RestError, internal_error, too_large, unauthorized

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

BODY_LIMIT: Final = 3 * 1024 * 1024  # bytes, as in a real API server
_OPEN_PATHS: Final = frozenset(("healthz", "livez", "readyz", "version"))
_SEND_LIMIT: Final = 30.0  # seconds that a watch waits for a client that does not read

_log = logging.getLogger(__name__)


class _Disconnected(Exception):  # noqa: N818  # no error: the client left in the middle of its request
    pass


class HttpApp:
    """ASGI application. `token`: what clients send as `Authorization: Bearer`."""

    def __init__(self, host: ApiHost, token: str) -> None:
        self._host = host
        self._authorization = f"Bearer {token}".encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        try:
            answer = await self._answer(scope, headers, receive)
        except RestError as error:
            answer = error.response()
        except _Disconnected:
            return
        if isinstance(answer, OpenWatch):
            await _stream(answer, receive, send)
        else:
            await _reply(_not_modified(answer, headers), scope["method"], send)

    async def _answer(
        self, scope: Message, headers: dict[bytes, bytes], receive: Receive
    ) -> Response | OpenWatch:
        path: str = scope["raw_path"].decode("ascii", "replace")
        self._authorize(path, headers)
        request = Request(
            method=scope["method"],
            path=path,
            query=dict(parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)),
            body=await _read_body(headers, receive),
            content_type=headers.get(b"content-type", b"").decode("latin-1"),
            accept=headers.get(b"accept", b"*/*").decode("latin-1"),
        )
        try:
            return self._host.call(request)
        except Exception:  # a bug costs one answer, not the server
            _log.exception("%s %s failed", request.method, request.path)
            return internal_error("the server failed on this request; its log says more").response()

    def _authorize(self, path: str, headers: dict[bytes, bytes]) -> None:
        if path.split("/", 2)[1:2] and path.split("/", 2)[1] in _OPEN_PATHS:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._authorization):
            raise unauthorized()


async def _read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks) if len(chunks) > 1 else chunk


def _not_modified(response: Response, headers: dict[bytes, bytes]) -> Response:
    tag = response.headers.get("etag")
    if tag and headers.get(b"if-none-match", b"").decode("latin-1") == tag:
        return Response(304, b"", {"etag": tag}, response.content_type)
    return response


async def _reply(response: Response, method: str, send: Send) -> None:
    headers = [
        (b"content-type", response.content_type.encode()),
        (b"content-length", str(len(response.body)).encode()),
        *((name.encode(), value.encode()) for name, value in response.headers.items()),
    ]
    if response.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})


async def _stream(watch: OpenWatch, receive: Receive, send: Send) -> None:
    """Sends a watch's lines as they come; ends when the client leaves or does not read."""
    leaving = asyncio.create_task(_close_on_leave(watch, receive))
    try:
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while lines := await watch.next_lines():
            async with asyncio.timeout(_SEND_LIMIT):
                await send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        _log.warning("a watch of %s was cut off: its client does not read", watch.response.kind.resource)
    finally:
        watch.end()
        leaving.cancel()


async def _close_on_leave(watch: OpenWatch, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.close()
