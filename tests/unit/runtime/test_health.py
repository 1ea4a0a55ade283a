"""The health pages as a bare ASGI application, and once over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from pilotage.runtime.health import Checks, HealthApp, HealthServer, HealthServerError


def checks(*, ready: str | None = None, live: str | None = None) -> Checks:
    return Checks(
        live={"ping": lambda: live},
        ready={"sync": lambda: ready, "shutdown": lambda: None},
        metrics=lambda: b"a 1\n",
        calls=lambda: b"[]",
    )


def ask(path: str, query: bytes = b"", method: str = "GET", **state: Any) -> tuple[int, bytes, bytes]:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> Mapping[str, Any]:
        return {}

    scope = {"type": "http", "method": method, "path": path, "query_string": query}
    asyncio.run(HealthApp(checks(**state))(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], dict(sent[0]["headers"])[b"content-type"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/"])
def test_all_well(path: str) -> None:
    assert ask(path)[:2] == (200, b"ok")


def test_not_ready_is_alive() -> None:
    assert ask("/livez", ready="not synced")[0] == 200
    status, body, _ = ask("/readyz", ready="not synced")
    assert status == 500
    assert body == b"[+]ping ok\n[-]sync failed: not synced\n[+]shutdown ok\nreadyz check failed\n"


def test_not_alive_is_not_ready() -> None:
    assert ask("/healthz", live="stuck")[0] == 500
    assert ask("/readyz", live="stuck")[0] == 500


def test_verbose_lists_the_checks() -> None:
    assert ask("/livez", b"verbose")[1] == b"[+]ping ok\nlivez check passed\n"


def test_pages_and_what_is_no_page() -> None:
    assert ask("/metrics") == (200, b"a 1\n", b"text/plain; version=0.0.4; charset=utf-8")
    assert ask("/debug/calls") == (200, b"[]", b"application/json")
    assert ask("/")[0] == 404
    assert ask("/metrics", method="POST")[0] == 405
    assert ask("/metrics", method="HEAD")[:2] == (200, b"")


@pytest.mark.network
def test_over_a_socket_and_a_busy_port() -> None:
    async def main() -> str:
        server = HealthServer(checks(), "127.0.0.1", 0)
        server.start()
        with pytest.raises(HealthServerError, match=f"127.0.0.1:{server.port}: .*another port"):
            HealthServer(checks(), "127.0.0.1", server.port)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{server.port}/healthz") as answer,
        ):
            text = await answer.text()
        await server.close()
        return text

    assert asyncio.run(main()) == "ok"
