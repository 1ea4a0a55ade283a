"""Faults over real HTTP: a small proxy on loopback that stands before any API server.

    async with FaultProxy(HttpTransport(credentials)) as proxy:
        proxy.faults.lose_answer(path="/binding$", times=1)
        ...  # clients, kubectl too, talk to proxy.url

It speaks plain HTTP/1.1 without credentials (those towards the server are the transport's), so it belongs
on a test machine only.

Laws: a lost answer is a connection that breaks without one; `go_away` refuses connections and breaks the
open ones, `come_back` listens on the same port again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from pilotage.api.wire import Request, Response
from pilotage.client.lines import closed_at_end
from pilotage.client.transport import Stream, Transport, TransportError
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport

HOST = "127.0.0.1"
MAX_HEAD_BYTES = 256 * 1024
_PASSED_ON = ("retry-after", "etag", "warning", "location")


class FaultProxy:
    def __init__(self, transport: Transport, *, faults: Faults | None = None, client: str = "proxy") -> None:
        self.faults = faults or Faults()
        self._transport = FaultyTransport(transport, self.faults, client)
        self._server: asyncio.Server | None = None
        self._port = 0
        # Connections that are open now.
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    def kubeconfig(self) -> dict[str, object]:
        """A kubeconfig document for the proxy, as a tree."""
        name = "fault-proxy"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }

    async def __aenter__(self) -> Self:
        await self.come_back()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.clear()
        await self.go_away()
        await self._transport.close()

    async def come_back(self) -> None:
        """Listen; on the port that was used before, if any."""
        self._server = await asyncio.start_server(self._serve, HOST, self._port, limit=MAX_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]

    async def go_away(self) -> None:
        """Refuse connections and break the open ones."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await server.wait_closed()

    # -- one connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
        except (TransportError, ConnectionError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer. False when the connection is to be closed."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        request, headers = parse_head(head)
        body = await _read_body(reader, headers)
        request = Request(
            request.method, request.path, request.query, body, request.content_type, request.accept
        )
        if request.query.get("watch") in ("1", "true"):
            await self._watch(request, reader, writer)
            return False
        _write_response(writer, await self._transport.request(request))
        return True

    async def _watch(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        stream = await self._transport.stream(request)
        try:
            if stream.status != HTTPStatus.OK:
                _write_response(writer, Response(stream.status, await stream.read(), stream.headers))
                await writer.drain()
                return
            await _until_first(_relay(stream, writer), _hang_up(reader))
        finally:
            await stream.close()


async def _relay(stream: Stream, writer: asyncio.StreamWriter) -> None:
    content_type = stream.headers.get("content-type", "application/json")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    await writer.drain()
    async with closed_at_end(stream.lines()) as lines:
        async for line in lines:
            writer.write(b"%x\r\n%b\n\r\n" % (len(line) + 1, line))
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _hang_up(reader: asyncio.StreamReader) -> None:
    """Until the client is gone; whatever it says before is not listened to."""
    while await reader.read(4096):
        pass


async def _until_first(*works: Coroutine[Any, Any, None]) -> None:
    """Until one of them is done; raises what that one raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def parse_head(head: bytes) -> tuple[Request, Mapping[str, str]]:
    """The request without its body, and its headers under lower-case names."""
    first, *rest = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in rest if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    request = Request(
        method,
        parts.path,
        query,
        content_type=headers.get("content-type", "application/json"),
        accept=headers.get("accept", "application/json"),
    )
    return request, headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length") or 0))
    chunks = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
        if not size:
            return b"".join(chunks)


def _write_response(writer: asyncio.StreamWriter, response: Response) -> None:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = {
        "Content-Type": response.headers.get("content-type", response.content_type),
        "Content-Length": str(len(response.body)),
        **{name: response.headers[name] for name in _PASSED_ON if name in response.headers},
    }
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {text}" for name, text in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + response.body)
