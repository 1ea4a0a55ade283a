from __future__ import annotations

import asyncio

import aiohttp
import pytest

from pilotage.runtime.health import Checks
from pilotage.runtime.secure_pages import secure_server

pytestmark = pytest.mark.network


def test_probes_over_https() -> None:
    checks = Checks(
        live={"ping": lambda: None},
        ready={"informers": lambda: "not yet"},
        metrics=lambda: b"secret",
        calls=lambda: b"secret",
    )

    async def main() -> None:
        server = secure_server(checks, "127.0.0.1", 0)
        server.start()
        try:
            async with aiohttp.ClientSession() as session:
                base = f"https://127.0.0.1:{server.port}"
                async with session.get(f"{base}/livez", ssl=False) as answer:
                    assert (answer.status, await answer.text()) == (200, "ok")
                async with session.get(f"{base}/readyz", ssl=False) as answer:
                    assert answer.status == 500
                for path in ("/metrics", "/debug/calls", "/"):
                    async with session.get(base + path, ssl=False) as answer:
                        assert answer.status == 403
                        assert "secret" not in await answer.text()
        finally:
            await server.close()

    asyncio.run(main())
