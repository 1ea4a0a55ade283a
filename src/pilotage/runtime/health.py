"""The scheduler's own small HTTP server: /healthz /livez /readyz /metrics /debug/calls /debug/pods/NS/NAME.

A bare ASGI application (tested without a socket), served by uvicorn. Reads only; knows no secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import uvicorn

TEXT = "text/plain; charset=utf-8"
_PODS = "/debug/pods/"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class HealthServerError(Exception):
    """The server cannot start. One line that says what to do."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What the pages show. A check answers None when all is well, else why not."""

    live: Mapping[str, Callable[[], str | None]]
    ready: Mapping[str, Callable[[], str | None]]
    metrics: Callable[[], bytes]
    calls: Callable[[], bytes]
    pod: Callable[[str, str], bytes | None] = lambda _namespace, _name: None  # None: there is no such pod
    on_check: Callable[[str, str, bool], None] = lambda _name, _page, _is_good: None


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    body: bytes
    content_type: str = TEXT


class HealthApp:
    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        page = self._page(scope["method"], scope["path"].rstrip("/"), b"verbose" in scope["query_string"])
        headers = [
            (b"content-type", page.content_type.encode()),
            (b"content-length", str(len(page.body)).encode()),
        ]
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page.body})

    def _page(self, method: str, path: str, is_verbose: bool) -> Page:
        if method not in ("GET", "HEAD"):
            return Page(405, b"method not allowed\n")
        match path:
            case "/healthz" | "/livez":
                return self._verdict(path, self._checks.live, is_verbose)
            case "/readyz":
                return self._verdict(path, {**self._checks.live, **self._checks.ready}, is_verbose)
            case "/metrics":
                return Page(200, self._checks.metrics(), PROMETHEUS)
            case "/debug/calls":
                return Page(200, self._checks.calls(), "application/json")
        if path.startswith(_PODS):
            return self._pod(path.removeprefix(_PODS))
        return Page(
            404, b"not found: try /healthz /livez /readyz /metrics /debug/calls /debug/pods/NAMESPACE/NAME\n"
        )

    def _pod(self, key: str) -> Page:
        namespace, _, name = key.partition("/")
        body = self._checks.pod(namespace, name)
        if body is None:
            return Page(404, f"the scheduler knows no pod {key}\n".encode())
        return Page(200, body, "application/json")

    def _verdict(self, path: str, checks: Mapping[str, Callable[[], str | None]], is_verbose: bool) -> Page:
        """`ok`, or every check with its mark when one failed or the list was asked for."""
        results = {name: check() for name, check in checks.items()}
        for name, why in results.items():
            self._checks.on_check(name, path.lstrip("/"), not why)
        is_good = not any(results.values())
        if is_good and not is_verbose:
            return Page(200, b"ok")
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
        lines.append(f"{path.lstrip('/')} check {'passed' if is_good else 'failed'}")
        return Page(200 if is_good else 500, "\n".join(lines).encode() + b"\n")


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the scheduler."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HealthServer:
    """Port 0 picks a free one; `port` tells which."""

    def __init__(
        self,
        checks: Checks,
        host: str,
        port: int,
        *,
        app: App | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`app`: instead of all pages. `tls`: HTTPS."""
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app or HealthApp(checks),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        if tls is not None:
            config.load()
            config.ssl = tls
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(
            self._server.serve(sockets=[self._socket]), name="health server"
        )

    async def close(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        raise HealthServerError(
            f"health server: {host}:{port}: {problem.strerror or problem}: choose another port"
        ) from None
