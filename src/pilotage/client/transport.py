"""The one door to an API server. Real HTTP and the in-process store stand behind the same protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from pilotage.api.wire import Request, Response


class TransportError(Exception):
    """No answer. `sent`: the request may have reached the server, so its effect is unknown."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Stream(Protocol):
    """An open watch: status and headers first, then lines without their newline."""

    status: int
    headers: Mapping[str, str]

    def lines(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """The whole body, for a non-200 answer."""

    async def close(self) -> None: ...


class Transport(Protocol):
    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        """Raises TransportError when no complete answer came."""

    async def stream(self, request: Request) -> Stream: ...

    async def close(self) -> None: ...
