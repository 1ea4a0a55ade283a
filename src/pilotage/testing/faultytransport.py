"""A transport that obeys `Faults` and writes every request into their log.

Laws: without a matching rule a request costs one record and goes straight through; a client's timeout
holds also while a fault keeps its request; one transport stands for one client, named in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, Transport, TransportError
from pilotage.testing.faults import Faults, Rule
from pilotage.testing.requestlog import Record
from pilotage.testing.streams import ControlledStream


class FaultyTransport:
    def __init__(self, inner: Transport, faults: Faults, client: str = "client") -> None:
        self.client = client
        self._inner = inner
        self._faults = faults

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        record = self._faults.log.open(self.client, request, self._faults.time())
        rules = self._faults.candidates(record)
        try:
            if not rules:
                response = await self._inner.request(request, timeout=timeout)
            else:
                response = await self._through(rules, record, timeout)
        except BaseException as error:
            self._end(record, None, error)
            raise
        self._end(record, response.status)
        return response

    async def stream(self, request: Request) -> Stream:
        record = self._faults.log.open(self.client, request, self._faults.time())
        try:
            stream = await self._open(self._faults.candidates(record), record)
        except BaseException as error:
            self._end(record, None, error)
            raise
        self._end(record, stream.status)
        if stream.status != 200:
            return stream
        controlled = stream if isinstance(stream, ControlledStream) else ControlledStream(stream)
        self._faults.opened(record, controlled)
        return controlled

    async def close(self) -> None:
        await self._inner.close()

    async def _through(self, rules: Sequence[Rule], record: Record, timeout: float) -> Response:
        request = record.request

        async def send(index: int) -> Response:
            for number in range(index, len(rules)):
                if rules[number].take(record):
                    return await rules[number].fault.request(request, partial(send, number + 1))
            return await self._inner.request(request, timeout=timeout)

        try:
            async with asyncio.timeout(timeout):
                return await send(0)
        except TimeoutError:
            raise TransportError(f"no answer within {timeout:g} s", sent=True) from None

    async def _open(self, rules: Sequence[Rule], record: Record) -> Stream:
        request = record.request

        async def open_(index: int) -> Stream:
            for number in range(index, len(rules)):
                if rules[number].take(record):
                    return await rules[number].fault.stream(request, partial(open_, number + 1))
            return await self._inner.stream(request)

        return await open_(0)

    def _end(self, record: Record, status: int | None, error: BaseException | None = None) -> None:
        record.status = status
        record.finished = self._faults.time()
        if error is not None:
            record.error = str(error) or type(error).__name__
