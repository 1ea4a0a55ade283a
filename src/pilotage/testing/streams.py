"""Watch streams that a test can hold, delay and cut, and ones that were never a server's.

Law: lines leave in the order in which they came, whatever the delay; after a cut nothing that was
delayed or held is delivered any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from enum import Enum

from pilotage.client.lines import closed_at_end
from pilotage.client.transport import Stream, TransportError


class End(Enum):
    CLOSED = "closed"  # the server ended the answer properly
    CUT = "cut"  # the connection broke


class StaticStream:
    """An answer without a server: a status with a body, or a few lines and then the end."""

    def __init__(self, status: int, body: bytes = b"", lines: Iterable[bytes] = ()) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self._body = body
        self._lines = tuple(lines)

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line

    async def read(self) -> bytes:
        return self._body

    async def close(self) -> None:
        pass


class ControlledStream:
    """Relays an open watch under the orders of a test."""

    def __init__(self, inner: Stream, *, delay: float = 0.0, cut_after: int | None = None) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self.is_open = True
        self._loop = asyncio.get_running_loop()  # kept: tests call in between runs of the loop
        self._inner = inner
        self._delay = delay
        self._cut_after = cut_after
        # Lines on their way with the loop time at which each is due; times never fall.
        self._late: deque[tuple[float, bytes | End]] = deque()
        self._timer: asyncio.TimerHandle | None = None  # set exactly while `_late` holds something
        self._held: list[bytes] | None = None  # lines kept back, None when nothing is held
        self._queue: asyncio.Queue[bytes | End] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    async def lines(self) -> AsyncIterator[bytes]:
        if self._pump is None and self.is_open:
            self._pump = self._loop.create_task(self._relay(), name="watch-pump")
        while True:
            item = await self._queue.get()
            if item is End.CUT:
                raise TransportError("connection reset during the watch", sent=True)
            if item is End.CLOSED or not isinstance(item, bytes):
                return
            yield item

    async def read(self) -> bytes:
        return await self._inner.read()

    async def close(self) -> None:
        self.is_open = False
        if self._pump is not None:
            self._pump.cancel()
            # An inner stream may not be closed while the pump still reads it.
            await asyncio.gather(self._pump, return_exceptions=True)
        await self._inner.close()

    def hold(self) -> None:
        """Keep lines back until `release`."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        for line in held or ():
            self._deliver(line)

    def set_delay(self, seconds: float) -> None:
        self._delay = seconds

    def cut(self, end: End = End.CUT) -> None:
        """Break the stream now; lines on their way are lost."""
        self.is_open = False
        self._held = None
        self._late.clear()
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(end)
        if self._pump is not None:
            self._pump.cancel()

    async def _relay(self) -> None:
        end = End.CLOSED
        try:
            async with closed_at_end(self._inner.lines()) as lines:
                async for line in lines:
                    self._deliver(line)
                    if not self._count_down():
                        end = End.CUT
                        break
        except TransportError:
            end = End.CUT
        finally:
            await self._inner.close()
        self._at_due(end)

    def _count_down(self) -> bool:
        if self._cut_after is None:
            return True
        self._cut_after -= 1
        return self._cut_after > 0

    def _deliver(self, line: bytes) -> None:
        if self._held is not None:
            self._held.append(line)
        else:
            self._at_due(line)

    def _at_due(self, item: bytes | End) -> None:
        now = self._loop.time()
        due = max(self._late[-1][0] if self._late else now, now + self._delay)
        if due <= now and not self._late:
            self._put(item)
            return
        self._late.append((due, item))
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._arrive)

    def _arrive(self) -> None:
        """One timer for all: timers of equal times would not keep the order."""
        self._timer = None
        while self._late and self._late[0][0] <= self._loop.time():
            self._put(self._late.popleft()[1])
        if self._late:
            self._timer = self._loop.call_at(self._late[0][0], self._arrive)

    def _put(self, item: bytes | End) -> None:
        if self.is_open:
            self._queue.put_nowait(item)
