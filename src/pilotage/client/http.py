"""HTTP to an API server over aiohttp: the real implementation of `Transport`.

Laws: `TransportError.sent` is False only when no byte of the request can have left (connecting, TLS,
waiting for a connection); after a 401 credentials are refreshed once and the request is sent again,
because a 401 has had no effect; watches do not take connections from requests.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from yarl import URL

from pilotage.api.wire import Request, Response
from pilotage.client.credentials import Access, Credentials, CredentialsError
from pilotage.client.lines import closed_at_end, split_lines
from pilotage.client.tls import Tls, build_context
from pilotage.client.transport import Stream, TransportError

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 10.0
# Under the 75 s that common servers and balancers keep an idle connection: they must not close it first.
KEEPALIVE_SECONDS = 30.0
READ_BUFFER_BYTES = 2**18
_UNAUTHORIZED = 401


@dataclass(slots=True)
class _Progress:
    """How far a request got, told by aiohttp's tracing."""

    sent: bool = False


class HttpTransport:
    """One server, one set of credentials. Sessions open with the first request, inside its event loop."""

    def __init__(
        self, credentials: Credentials, *, max_connections: int = 100, user_agent: str = "pilotage"
    ) -> None:
        self._credentials = credentials
        self._max_connections = max_connections
        self._user_agent = user_agent
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._contexts: dict[Tls, ssl.SSLContext] = {}
        self._proxies: dict[str, str | None] = {}  # by server; the environment is read once
        self.host = ""  # name and port of the server that was asked last
        self._closed = False

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        """Raises TransportError when no complete answer came within `timeout` seconds."""
        if self._requests is None:
            self._requests = self._session(self._max_connections)
        answer, progress = await self._send(self._requests, request, timeout)
        try:
            body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _failure(request, problem, sent=progress.sent) from problem
        finally:
            answer.release()
        return Response(answer.status, body, _headers(answer), answer.content_type)

    async def stream(self, request: Request) -> Stream:
        """An open answer, whatever its status. No timeout: the reader decides how long silence may last."""
        if self._streams is None:
            self._streams = self._session(0)
        answer, _ = await self._send(self._streams, request, None)
        return HttpStream(request, answer)

    async def close(self) -> None:
        self._closed = True
        for session in (self._requests, self._streams):
            if session is not None:
                await session.close()
        self._requests = self._streams = None

    async def _send(
        self, session: aiohttp.ClientSession, request: Request, timeout: float | None
    ) -> tuple[aiohttp.ClientResponse, _Progress]:
        access = await self._access()
        self.host = urlsplit(access.server).netloc
        answer, progress = await self._attempt(session, request, access, timeout)
        if answer.status == _UNAUTHORIZED:
            newer = await self._refreshed(access)
            if newer != access:
                answer.release()
                answer, progress = await self._attempt(session, request, newer, timeout)
        return answer, progress

    async def _attempt(
        self, session: aiohttp.ClientSession, request: Request, access: Access, timeout: float | None
    ) -> tuple[aiohttp.ClientResponse, _Progress]:
        progress = _Progress()
        try:
            answer = await session.request(
                request.method,
                _url(access.server, request),
                data=request.body or None,
                headers=_request_headers(request, access),
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS),
                ssl=self._context(access.tls),
                server_hostname=access.tls.server_name or None,
                proxy=access.proxy or self._proxy(access.server),
                allow_redirects=False,
                trace_request_ctx=progress,
            )
        except (aiohttp.ClientError, TimeoutError, ValueError) as problem:
            raise _failure(request, problem, sent=progress.sent) from problem
        return answer, progress

    async def _access(self) -> Access:
        try:
            return await self._credentials.access()
        except CredentialsError as problem:
            raise TransportError(str(problem), sent=False) from problem

    async def _refreshed(self, stale: Access) -> Access:
        try:
            return await self._credentials.refresh(stale)
        except CredentialsError as problem:
            raise TransportError(str(problem), sent=False) from problem

    def _proxy(self, server: str) -> str | None:
        if server not in self._proxies:
            self._proxies[server] = environment_proxy(server)
        return self._proxies[server]

    def _context(self, tls: Tls) -> ssl.SSLContext:
        context = self._contexts.get(tls)
        if context is None:
            try:
                context = build_context(tls)
            except CredentialsError as problem:
                raise TransportError(str(problem), sent=False) from problem
            self._contexts = {tls: context}  # an older one belonged to rotated certificates
        return context

    def _session(self, limit: int) -> aiohttp.ClientSession:
        if self._closed:
            raise TransportError("the connection to the API server was closed by us", sent=False)
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_sent)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=KEEPALIVE_SECONDS),
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "gzip"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            trace_configs=[tracing],
        )


class HttpStream:
    """An answer that is read line by line."""

    def __init__(self, request: Request, answer: aiohttp.ClientResponse) -> None:
        self._request = request
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = _headers(answer)

    async def lines(self) -> AsyncIterator[bytes]:
        """Complete lines without their newline. Raises TransportError where the stream was cut."""
        try:
            async with closed_at_end(split_lines(self._answer.content.iter_any())) as lines:
                async for line in lines:
                    yield line
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _failure(self._request, problem, sent=True) from problem

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._answer.read()
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _failure(self._request, problem, sent=True) from problem

    async def close(self) -> None:
        self._answer.close()


async def _note_sent(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    context.trace_request_ctx.sent = True


def _url(server: str, request: Request) -> URL:
    path = quote(request.path, safe="/%:@!$&'()*+,;=~")  # kinds have encoded their names already
    query = f"?{urlencode(request.query)}" if request.query else ""
    return URL(f"{server}{path}{query}", encoded=True)


def _request_headers(request: Request, access: Access) -> dict[str, str]:
    headers = {"Accept": request.accept}
    if request.body:
        headers["Content-Type"] = request.content_type
    if access.authorization:
        headers["Authorization"] = access.authorization
    return headers


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def environment_proxy(server: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; never for this machine itself."""
    proxies = getproxies_environment()
    if not proxies:
        return None
    parts = urlsplit(server)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _failure(request: Request, problem: BaseException, *, sent: bool) -> TransportError:
    text = " ".join(str(problem).split()) or type(problem).__name__
    if isinstance(problem, TimeoutError):
        text = f"no answer in time ({text})"
    return TransportError(f"{request.method} {request.path}: {text}", sent=sent)
