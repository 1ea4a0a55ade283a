"""JSON over HTTP POST to a server that is no API server, such as a scheduler extender.

Laws: connections are kept and used again; certificates are verified unless the settings say otherwise; no
answer is read beyond `MAX_ANSWER_BYTES`; a redirect is an answer like any other.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from pilotage.client.http import environment_proxy
from pilotage.client.kubeconfig import CredentialsError
from pilotage.client.tls import Tls, build_context

MAX_ANSWER_BYTES = 128 * 2**20
_KEEPALIVE_SECONDS = 30.0
_JSON: Mapping[str, str] = {"Content-Type": "application/json", "Accept": "application/json"}


class PostError(Exception):
    """No complete answer came."""


@dataclass(frozen=True, slots=True)
class PostTls:
    """As `Tls`, with PEM bytes for those who have no file; data goes before files."""

    tls: Tls
    cert_data: bytes = b""
    key_data: bytes = b""


class JsonPoster:
    """One server. The session opens with the first request, inside its event loop."""

    def __init__(self, tls: PostTls, *, max_connections: int = 100, user_agent: str = "pilotage") -> None:
        self._tls = tls
        self._max_connections = max_connections
        self._headers = {**_JSON, "User-Agent": user_agent}
        self._session: aiohttp.ClientSession | None = None
        self._context: ssl.SSLContext | None = None

    async def post(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        """Status and body. Raises PostError when there is none within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await self._post(url, body)
        except TimeoutError:
            raise PostError(f"no answer within {timeout:g} s") from None
        except (aiohttp.ClientError, CredentialsError, OSError, ValueError) as problem:
            raise PostError(" ".join(str(problem).split()) or type(problem).__name__) from problem

    async def _post(self, url: str, body: bytes) -> tuple[int, bytes]:
        request = self._opened().post(
            url,
            data=body,
            headers=self._headers,
            ssl=self._trust(url),
            server_hostname=self._tls.tls.server_name or None,
            proxy=environment_proxy(url),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        async with request as answer:
            return answer.status, await _read(answer)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._max_connections, keepalive_timeout=_KEEPALIVE_SECONDS
            )
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _trust(self, url: str) -> ssl.SSLContext | bool:
        if not url.startswith("https:"):
            return True
        if self._context is None:
            self._context = context_of(self._tls)
        return self._context

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._session = None


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            answer.close()
            raise PostError(f"the answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB")
    return bytes(body)


def context_of(tls: PostTls) -> ssl.SSLContext:
    """Raises CredentialsError."""
    context = build_context(tls.tls)
    if tls.cert_data:
        _load(context, tls.cert_data, tls.key_data)
    return context


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads certificates from files only: they exist for a moment, readable by us alone."""
    handle, path = tempfile.mkstemp(prefix="pilotage-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(path, password=_no_password)
    except (OSError, ValueError) as problem:
        raise CredentialsError(f"certData, keyData: cannot be used: {problem}") from None
    finally:
        os.unlink(path)


def _no_password() -> str:
    raise ValueError("the key is encrypted")
