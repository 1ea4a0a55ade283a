"""Work that only the leader of several replicas does, and the door that shuts when its time is over.

Laws: a standby writes nothing; work begins after the lease is acquired and has ended before it is given
back; once the lease is lost, not one write more leaves through the `FencedTransport`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, Transport, TransportError
from pilotage.runtime.leader_election import Elector, LeadershipLostError

_READS = ("GET", "HEAD")


class FencedTransport:
    """`inner`, but writes are refused, unsent, while `is_open` says no."""

    def __init__(self, inner: Transport, is_open: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_open = is_open

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        if request.method not in _READS and not self._is_open():
            raise TransportError("this process does not lead any more", sent=False)
        return await self._inner.request(request, timeout=timeout)

    async def stream(self, request: Request) -> Stream:
        return await self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


async def lead(
    elector: Elector,
    stop: asyncio.Event,
    active: asyncio.Event,
    work: Callable[[asyncio.Event], Coroutine[object, object, None]],
    *,
    waits: bool,
) -> None:
    """Runs `work(end)` with the lease held; `active` is set when this process leads.

    `waits`: work begins only then; else it begins at once and waits for `active` by itself. Ends when
    `stop` is set or the work ends, and gives the lease back. Raises LeadershipLostError, after the work has
    ended, and whatever the work raises.
    """
    end = asyncio.Event()
    tasks = asyncio.get_running_loop()
    leading = tasks.create_task(_lead(elector, active), name="leader election")
    stopping = tasks.create_task(stop.wait(), name="waiting for the stop")
    working = None if waits else tasks.create_task(work(end), name="leader's work")
    try:
        if working is None:
            starting = tasks.create_task(active.wait(), name="waiting for the lease")
            await asyncio.wait((leading, stopping, starting), return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()
            if active.is_set():
                working = tasks.create_task(work(end), name="leader's work")
        parts = [part for part in (leading, stopping, working) if part is not None]
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if working is not None:
            working.cancel()
        raise
    finally:
        end.set()
        stopping.cancel()
        if working is not None:
            # The lease is renewed until the work is over: what it still sends must be the leader's.
            await asyncio.wait((working,))
        leading.cancel()
        await asyncio.gather(stopping, leading, return_exceptions=True)
        await elector.release()
    if working is not None:
        await working
    if not leading.cancelled():
        await leading


async def _lead(elector: Elector, active: asyncio.Event) -> None:
    await elector.acquire()
    active.set()
    await elector.hold()


__all__ = ["Elector", "FencedTransport", "LeadershipLostError", "lead"]
