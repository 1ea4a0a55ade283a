"""The embedded API server behind the client's `Transport`, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from pilotage.api.wire import Request, Response
from pilotage.localcluster.host import ApiHost, Clock, OpenWatch
from pilotage.localcluster.rest.server import ApiServer


class _WatchStream:
    """An open watch as a Stream."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, watch: OpenWatch) -> None:
        self._watch = watch

    async def lines(self) -> AsyncIterator[bytes]:
        while batch := await self._watch.next_lines():
            for line in batch:
                yield line[:-1]

    async def read(self) -> bytes:
        return b"".join([line + b"\n" async for line in self.lines()])

    async def close(self) -> None:
        self._watch.close()
        self._watch.end()


class _RefusedStream:
    """The answer to a watch that was not opened."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = {**response.headers, "content-type": response.content_type}
        self._body = response.body

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._body.splitlines():
            yield line

    async def read(self) -> bytes:
        return self._body

    async def close(self) -> None:
        pass


class InProcessTransport:
    """One client's way in. Several over one server share its `ApiHost`: see `over`."""

    def __init__(self, server: ApiServer, clock: Clock) -> None:
        self.host = ApiHost(server, clock)

    @classmethod
    def over(cls, host: ApiHost) -> InProcessTransport:
        transport = cls.__new__(cls)
        transport.host = host
        return transport

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        """Never raises TransportError: the answer is always there, so `timeout` is not needed."""
        del timeout
        await asyncio.sleep(0)  # other tasks run between requests, as they do with sockets
        answer = self.host.call(request)
        if isinstance(answer, Response):
            return answer
        stream = _WatchStream(answer)
        return Response(200, await stream.read())

    async def stream(self, request: Request) -> _WatchStream | _RefusedStream:
        await asyncio.sleep(0)
        answer = self.host.call(request)
        return _RefusedStream(answer) if isinstance(answer, Response) else _WatchStream(answer)

    async def close(self) -> None:
        """Streams are closed by whoever reads them."""
