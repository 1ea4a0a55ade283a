"""Drives the pure API server: gives it the time, waits for what its watches have to say.

HTTP and the in-process transport both stand on this, so that a watch behaves the same behind either.
Nothing here blocks: a watch sleeps on an event that is set when the store reported news for it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest.server import ApiServer
from pilotage.localcluster.rest.watching import WatchResponse


class Clock(Protocol):
    def time(self) -> float:
        """Epoch seconds."""


class OpenWatch:
    """One client's watch. `close` ends it from any side, also while somebody waits for its lines."""

    def __init__(self, host: ApiHost, response: WatchResponse) -> None:
        self.response = response
        self.news = asyncio.Event()
        self._host = host
        self._is_closed = False

    async def next_lines(self) -> list[bytes]:
        """The next lines, as soon as there are some; empty: the watch has ended."""
        while not self._is_closed:
            self.news.clear()
            lines = self.response.poll(self._host.clock.time())
            if lines:
                return lines
            if self.response.is_closed:
                break
            await self._wait()
        self.end()
        return []

    def end(self) -> None:
        """Forget the watch. May be called twice."""
        self._host.end(self)

    async def _wait(self) -> None:
        """Until there is news or the watch's own deadline has come."""
        seconds = max(0.0, self.response.next_deadline() - self._host.clock.time())
        timer = asyncio.get_running_loop().call_later(seconds, self.news.set)
        try:
            await self.news.wait()
        finally:
            timer.cancel()

    def close(self) -> None:
        self._is_closed = True
        self.news.set()


class ApiHost:
    """One API server and the watches that are open on it."""

    def __init__(self, server: ApiServer, clock: Clock) -> None:
        self.server = server
        self.clock = clock
        self._open: dict[WatchResponse, OpenWatch] = {}  # watches that were answered and not ended

    def call(self, request: Request) -> Response | OpenWatch:
        answer = self.server.handle(request, self.clock.time())
        self._wake()
        if isinstance(answer, Response):
            return answer
        watch = self._open[answer] = OpenWatch(self, answer)
        return watch

    def drop_watches(self, resource: str | None = None) -> None:
        """End open watches without a word, as a broken connection does; all, or those of one resource."""
        for watch in list(self._open.values()):
            if resource in (None, watch.response.kind.resource):
                watch.close()

    def end(self, watch: OpenWatch) -> None:
        self.server.end_watch(watch.response)
        self._open.pop(watch.response, None)

    def _wake(self) -> None:
        for response in self.server.take_ready():
            watch = self._open.get(response)
            if watch is not None:
                watch.news.set()
