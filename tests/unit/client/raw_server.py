"""A loopback HTTP server that answers with exactly the bytes a test wants, and notes what came in."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

Answer = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Asked:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RawServer:
    """`answers` are used in order, the last one again and again."""

    answers: Sequence[Answer]
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    @contextlib.asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while not writer.is_closing():
                asked = await _read(reader)
                answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
                self.asked.append(asked)
                await answer(asked, writer)
                if not writer.is_closing():
                    await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(head[0], headers, body)


def answering(status: int, body: bytes, *headers: str) -> Answer:
    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return answer


def chunked(*chunks: bytes, cut: bool = False) -> Answer:
    """A stream of chunks, ended properly, or cut."""

    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        if cut:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")

    return answer


def writing_then_closing(data: bytes) -> Answer:
    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.close()

    return answer


async def silent(_asked: Asked, _writer: asyncio.StreamWriter) -> None:
    """Takes the request and never answers it."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
