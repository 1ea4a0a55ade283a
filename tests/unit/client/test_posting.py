"""JSON by POST over loopback: connections kept, limits, TLS, and failures in words."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from pilotage.client import posting
from pilotage.client.kubeconfig import CredentialsError
from pilotage.client.posting import JsonPoster, PostError, PostTls, context_of
from pilotage.client.tls import VERIFIED, Tls
from pilotage.localcluster.tls import TlsMaterial, generate, server_context
from unit.client.raw_server import RawServer, answering, chunked, silent, writing_then_closing

pytestmark = pytest.mark.network


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> object:
    yield
    gc.collect()


@pytest.fixture(scope="module")
def material() -> TlsMaterial:
    return generate()


@contextlib.asynccontextmanager
async def poster(tls: PostTls) -> AsyncIterator[JsonPoster]:
    one = JsonPoster(tls)
    try:
        yield one
    finally:
        await one.close()


def talk(
    server: RawServer,
    use: Callable[[JsonPoster, str], Awaitable[Any]],
    tls: PostTls = PostTls(VERIFIED),  # noqa: B008  # frozen value
    context: ssl.SSLContext | None = None,
) -> Any:
    async def main() -> Any:
        async with server.serve(context), poster(tls) as one:
            scheme = "https" if context else "http"
            return await use(one, f"{scheme}://127.0.0.1:{server.port}/filter")

    return asyncio.run(main())


def failure(server: RawServer, timeout: float = 5.0, **more: Any) -> str:
    async def use(one: JsonPoster, url: str) -> str:
        with pytest.raises(PostError) as caught:
            await one.post(url, b"{}", timeout)
        return str(caught.value)

    return str(talk(server, use, **more))


def test_status_and_body_come_back_and_the_connection_is_kept() -> None:
    server = RawServer([answering(200, b"[1]"), answering(503, b"busy")])

    async def use(one: JsonPoster, url: str) -> list[tuple[int, bytes]]:
        return [await one.post(url, b'{"a": 1}', 5.0), await one.post(url, b"{}", 5.0)]

    assert talk(server, use) == [(200, b"[1]"), (503, b"busy")]
    first = server.asked[0]
    assert (first.line, first.body) == ("POST /filter HTTP/1.1", b'{"a": 1}')
    assert first.headers["content-type"] == "application/json"


def test_a_redirect_is_not_followed() -> None:
    async def use(one: JsonPoster, url: str) -> tuple[int, bytes]:
        return await one.post(url, b"{}", 5.0)

    assert talk(RawServer([answering(302, b"", "Location: /elsewhere")]), use)[0] == 302


def test_silence_ends_in_time() -> None:
    assert failure(RawServer([silent]), timeout=0.05) == "no answer within 0.05 s"


@pytest.mark.parametrize(
    "answer", [writing_then_closing(b""), writing_then_closing(b"garbage\r\n\r\n"), chunked(b"x", cut=True)]
)
def test_broken_answers_are_failures(answer: Any) -> None:
    assert failure(RawServer([answer]))


def test_nobody_listens() -> None:
    async def main() -> str:
        async with poster(PostTls(VERIFIED)) as one:
            with pytest.raises(PostError) as caught:
                await one.post("http://127.0.0.1:1/filter", b"{}", 5.0)
            return str(caught.value)

    assert "127.0.0.1:1" in asyncio.run(main())


@pytest.mark.parametrize("url", ["127.0.0.1:8888/filter", "ftp://x/filter", "/filter", "http:///filter"])
def test_addresses_that_are_none(url: str) -> None:
    async def main() -> None:
        async with poster(PostTls(VERIFIED)) as one:
            with pytest.raises(PostError):
                await one.post(url, b"{}", 5.0)

    asyncio.run(main())


def test_an_answer_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "MAX_ANSWER_BYTES", 2**20)
    assert failure(RawServer([chunked(*[b"x" * 2**18] * 5)])) == "the answer is larger than 1 MiB"


async def _ask(one: JsonPoster, url: str) -> int:
    return (await one.post(url, b"{}", 5.0))[0]


def test_tls_is_verified_by_the_given_authority_or_not_at_all(material: TlsMaterial) -> None:
    context = server_context(material)

    def status(tls: Tls) -> Any:
        return talk(RawServer([answering(200, b"{}")]), _ask, PostTls(tls), context)

    assert status(Tls(ca_data=material.ca.decode())) == 200
    assert status(Tls(verify=False)) == 200
    assert status(Tls(ca_data=material.ca.decode(), server_name="localhost")) == 200
    server = RawServer([answering(200, b"{}")])
    assert "certificate" in failure(server, context=context).lower()
    assert server.asked == []
    elsewhere = PostTls(Tls(ca_data=material.ca.decode(), server_name="elsewhere.example"))
    assert "elsewhere.example" in failure(server, tls=elsewhere, context=context)


def test_certificates_as_data(material: TlsMaterial) -> None:
    assert context_of(PostTls(VERIFIED, material.certificate, material.key))
    with pytest.raises(CredentialsError, match="certData"):
        context_of(PostTls(VERIFIED, b"no PEM", b"none"))
