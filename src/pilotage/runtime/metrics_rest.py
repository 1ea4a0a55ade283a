"""Figures of the HTTP client, taken where a transport is used: one more transport around it.

Law: it adds a measurement and nothing else; what the inner one raises goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, Transport
from pilotage.runtime.figures import Counter, Figures, Histogram

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = tuple(float(size) for size in (64, 256, 512, *(4**n for n in range(5, 13))))
_NO_ANSWER = "<error>"


class RestFigures(Figures):
    def __init__(self) -> None:
        self.requests = Counter("rest_client_requests", "HTTP requests sent.", "code", "method", "host")
        self.seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Until the whole answer is there.",
            _SECONDS,
            "verb",
            "host",
        )
        self.request_bytes = Histogram(
            "rest_client_request_size_bytes", "Bodies sent.", _BYTES, "verb", "host"
        )
        self.response_bytes = Histogram(
            "rest_client_response_size_bytes", "Bodies received.", _BYTES, "verb", "host"
        )

    def transport(self, inner: Transport, host: Callable[[], str] = lambda: "") -> Transport:
        """`inner`, measured. `host`: name and port of the server, once they are known."""
        return _MeasuredTransport(inner, self, host)


class _MeasuredTransport:
    def __init__(self, inner: Transport, figures: RestFigures, host: Callable[[], str]) -> None:
        self._inner = inner
        self._figures = figures
        self._host = host

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        begin = perf_counter()
        code = _NO_ANSWER
        try:
            response = await self._inner.request(request, timeout=timeout)
            code = str(response.status)
            self._figures.response_bytes.observe(float(len(response.body)), request.method, self._host())
            return response
        finally:
            self._sent(request, code)
            self._figures.seconds.observe(perf_counter() - begin, request.method, self._host())
            self._figures.request_bytes.observe(float(len(request.body)), request.method, self._host())

    async def stream(self, request: Request) -> Stream:
        """An answer that is open has no duration."""
        code = _NO_ANSWER
        try:
            stream = await self._inner.stream(request)
            code = str(stream.status)
            return stream
        finally:
            self._sent(request, code)

    async def close(self) -> None:
        await self._inner.close()

    def _sent(self, request: Request, code: str) -> None:
        self._figures.requests.add(code, request.method, self._host())
