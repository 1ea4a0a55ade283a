"""HttpTransport against real sockets on loopback: what is sent, what a failure says, TLS, credentials."""

from __future__ import annotations

import asyncio
import datetime
import gc
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pilotage.api.wire import Request, Response
from pilotage.client.credentials import Access, StaticCredentials
from pilotage.client.http import HttpTransport
from pilotage.client.tls import Tls
from pilotage.client.transport import Stream, TransportError
from unit.client.raw_server import RawServer, answering, chunked, silent, writing_then_closing

pytestmark = pytest.mark.network


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> object:
    yield
    gc.collect()  # an unclosed session or socket warns here, and a warning is an error


def talk(server: RawServer, use: Callable[[HttpTransport], Awaitable[object]], token: str = "") -> object:
    async def main() -> object:
        async with server.serve():
            transport = HttpTransport(StaticCredentials(server.url, token))
            try:
                return await use(transport)
            finally:
                await transport.close()

    return asyncio.run(main())


def failure(server: RawServer, request: Request, timeout: float = 5.0) -> TransportError:
    async def use(transport: HttpTransport) -> TransportError:
        with pytest.raises(TransportError) as caught:
            await transport.request(request, timeout=timeout)
        return caught.value

    problem = talk(server, use)
    assert isinstance(problem, TransportError)
    return problem


def test_request_and_answer() -> None:
    server = RawServer([answering(201, b'{"a": 1}', "Content-Type: application/json", "Retry-After: 3")])
    request = Request(
        "PATCH",
        "/api/v1/namespaces/x/pods/a%20b",
        {"labelSelector": "a in (b,c),d!=e"},
        b"{}",
        "application/merge-patch+json",
        "application/json;as=Table",
    )
    answer = talk(server, lambda t: t.request(request), token="s3cret")
    assert isinstance(answer, Response)
    assert (answer.status, answer.body, answer.headers["retry-after"]) == (201, b'{"a": 1}', "3")
    assert answer.content_type == "application/json"
    asked = server.asked[0]
    assert asked.line == (
        "PATCH /api/v1/namespaces/x/pods/a%20b?labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De HTTP/1.1"
    )
    assert asked.body == b"{}"
    assert asked.headers["content-type"] == "application/merge-patch+json"
    assert asked.headers["accept"] == "application/json;as=Table"
    assert asked.headers["authorization"] == "Bearer s3cret"


def test_connections_are_used_again() -> None:
    server = RawServer([answering(200, b"{}")])

    async def use(transport: HttpTransport) -> int:
        for _ in range(5):
            await transport.request(Request("GET", "/version"))
        assert transport._requests is not None
        return len(transport._requests.connector._conns)  # type: ignore[union-attr]  # open above

    assert talk(server, use) == 1


def test_nobody_listens_nothing_was_sent() -> None:
    async def main() -> TransportError:
        server = RawServer([])
        async with server.serve():
            pass
        transport = HttpTransport(StaticCredentials(server.url))
        with pytest.raises(TransportError) as caught:
            await transport.request(Request("POST", "/api/v1/pods", {}, b"{}"))
        await transport.close()
        return caught.value

    problem = asyncio.run(main())
    assert not problem.sent
    assert "POST /api/v1/pods" in str(problem)


def test_no_such_host_nothing_was_sent() -> None:
    async def main() -> TransportError:
        transport = HttpTransport(StaticCredentials("http://no-such-host.invalid:1"))
        with pytest.raises(TransportError) as caught:
            await transport.request(Request("GET", "/version"), timeout=5)
        await transport.close()
        return caught.value

    assert not asyncio.run(main()).sent


@pytest.mark.parametrize(
    "answer",
    [
        writing_then_closing(b""),
        writing_then_closing(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        writing_then_closing(b"no http at all\r\n\r\n"),
    ],
)
def test_cut_after_sending(answer: object) -> None:
    assert failure(RawServer([answer]), Request("POST", "/x", {}, b"{}")).sent  # type: ignore[list-item]  # parametrized


def test_no_answer_in_time() -> None:
    problem = failure(RawServer([silent]), Request("POST", "/x", {}, b"{}"), timeout=0.1)
    assert problem.sent
    assert "in time" in str(problem)


def test_a_closed_transport_says_so() -> None:
    async def main() -> None:
        transport = HttpTransport(StaticCredentials("http://127.0.0.1:1"))
        await transport.close()
        with pytest.raises(TransportError):
            await transport.request(Request("GET", "/"))

    asyncio.run(main())


def test_stream_lines_across_chunks_and_huge_ones() -> None:
    huge = b"x" * 3_000_000
    data = b"first\nsecond\n" + huge + b"\nlast"
    chunks = [data[start : start + 65_537] for start in range(0, len(data), 65_537)]
    server = RawServer([chunked(*chunks)])

    async def use(transport: HttpTransport) -> list[int]:
        stream = await transport.stream(Request("GET", "/watch"))
        lines = [line async for line in stream.lines()]
        await stream.close()
        assert lines == [b"first", b"second", huge, b"last"]
        return [stream.status]

    assert talk(server, use) == [200]


async def _collect(stream: Stream, lines: list[bytes]) -> None:
    async for line in stream.lines():
        lines.append(line)


def test_a_cut_stream_gives_its_complete_lines_and_then_fails() -> None:
    server = RawServer([chunked(b"one\ntwo\nhal", cut=True)])

    async def use(transport: HttpTransport) -> list[bytes]:
        stream = await transport.stream(Request("GET", "/watch"))
        lines: list[bytes] = []
        with pytest.raises(TransportError):
            await _collect(stream, lines)
        await stream.close()
        return lines

    assert talk(server, use) == [b"one", b"two"]


def test_a_stream_that_is_refused_has_a_body() -> None:
    server = RawServer([answering(410, b"gone", "Retry-After: 2")])

    async def use(transport: HttpTransport) -> tuple[int, bytes, str]:
        stream = await transport.stream(Request("GET", "/watch"))
        body = await stream.read()
        await stream.close()
        return stream.status, body, stream.headers["retry-after"]

    assert talk(server, use) == (410, b"gone", "2")


def test_open_streams_do_not_take_connections_from_requests() -> None:
    server = RawServer([chunked(b"a\n", cut=False)] * 3 + [answering(200, b"{}")])

    async def main() -> int:
        async with server.serve():
            transport = HttpTransport(StaticCredentials(server.url), max_connections=1)
            streams = [await transport.stream(Request("GET", "/watch")) for _ in range(3)]
            answer = await transport.request(Request("GET", "/version"), timeout=5)
            for stream in streams:
                await stream.close()
            await transport.close()
            return answer.status

    assert asyncio.run(main()) == 200


@dataclass
class Rotating:
    """Credentials whose token is renewed by `refresh`, as far as `tokens` go."""

    server: str
    tokens: list[str]
    refreshed: int = 0
    namespace: str = "default"
    seen: list[str] = field(default_factory=list)

    async def access(self) -> Access:
        return Access(self.server, f"Bearer {self.tokens[0]}")

    async def refresh(self, stale: Access) -> Access:
        self.refreshed += 1
        self.seen.append(stale.authorization)
        if len(self.tokens) > 1:
            self.tokens.pop(0)
        return await self.access()


@pytest.mark.parametrize(
    ("tokens", "statuses", "expected", "sent"),
    [
        (["old", "new"], [401, 200], 200, ["Bearer old", "Bearer new"]),
        (["old", "new"], [401, 401], 401, ["Bearer old", "Bearer new"]),
        (["old"], [401], 401, ["Bearer old"]),
    ],
)
def test_401_refreshes_once(tokens: list[str], statuses: list[int], expected: int, sent: list[str]) -> None:
    server = RawServer([answering(status, b"{}") for status in statuses])

    async def main() -> int:
        async with server.serve():
            credentials = Rotating(server.url, list(tokens))
            transport = HttpTransport(credentials)
            answer = await transport.request(Request("POST", "/x", {}, b"{}"))
            await transport.close()
            assert credentials.refreshed == 1
            return answer.status

    assert asyncio.run(main()) == expected
    assert [asked.headers["authorization"] for asked in server.asked] == sent


class Certificates:
    """An authority and one certificate of it, good for 127.0.0.1 and as a client."""

    def __init__(self, directory: Path) -> None:
        self.ca, self.cert, self.key = (directory / n for n in ("ca.pem", "cert.pem", "key.pem"))
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority = _certificate("ca", ca_key, "ca", ca_key, is_ca=True)
        leaf = _certificate("leaf", key, "ca", ca_key, is_ca=False)
        pem = serialization.Encoding.PEM
        self.ca.write_bytes(authority.public_bytes(pem))
        self.cert.write_bytes(leaf.public_bytes(pem))
        no_password = serialization.NoEncryption()
        self.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, no_password))

    def server_context(self, *, ask_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.ca))
        context.load_cert_chain(self.cert, self.key)
        if ask_client:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if not is_ca:
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("kube.test")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def over_tls(
    certificates: Certificates, tls: Tls, *, ask_client: bool = False, host: str = "127.0.0.1"
) -> int | TransportError:
    server = RawServer([answering(200, b"{}")])

    async def main() -> int | TransportError:
        async with server.serve(certificates.server_context(ask_client=ask_client)):
            transport = HttpTransport(StaticCredentials(f"https://{host}:{server.port}", tls=tls))
            try:
                return (await transport.request(Request("GET", "/version"), timeout=5)).status
            except TransportError as problem:
                return problem
            finally:
                await transport.close()

    return asyncio.run(main())


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def test_tls_is_verified_against_the_given_authority(certificates: Certificates) -> None:
    assert over_tls(certificates, Tls(ca_file=str(certificates.ca))) == 200
    assert over_tls(certificates, Tls(ca_data=certificates.ca.read_text())) == 200


def test_tls_of_an_unknown_authority_is_refused_before_anything_is_sent(certificates: Certificates) -> None:
    problem = over_tls(certificates, Tls())
    assert isinstance(problem, TransportError)
    assert not problem.sent
    assert "certificate" in str(problem).lower()


def test_tls_of_another_host_is_refused_unless_the_name_is_given(certificates: Certificates) -> None:
    tls = Tls(ca_file=str(certificates.ca))
    assert isinstance(over_tls(certificates, tls, host="localhost"), TransportError)
    named = Tls(ca_file=str(certificates.ca), server_name="kube.test")
    assert over_tls(certificates, named, host="localhost") == 200


def test_tls_unverified_only_when_asked(certificates: Certificates) -> None:
    assert over_tls(certificates, Tls(verify=False)) == 200


def test_client_certificate(certificates: Certificates) -> None:
    tls = Tls(str(certificates.ca), "", str(certificates.cert), str(certificates.key))
    assert over_tls(certificates, tls, ask_client=True) == 200
    without = over_tls(certificates, Tls(ca_file=str(certificates.ca)), ask_client=True)
    assert isinstance(without, TransportError)


def test_a_certificate_file_that_is_none_is_named(certificates: Certificates) -> None:
    problem = over_tls(certificates, Tls(ca_file=str(certificates.key)))
    assert isinstance(problem, TransportError)
    assert str(certificates.key) in str(problem)
