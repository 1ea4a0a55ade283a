"""Health over HTTPS, where kube-scheduler has it (`--secure-port`): what probes of a cluster ask for.

The certificate is made at each start and signed by itself: probes do not check it. Who asks is not checked
either, so there are only the pages that kube-scheduler shows to everybody; metrics are on the plain port.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilotage.runtime.health import Checks, HealthApp, HealthServer, Receive, Scope, Send

OPEN_PATHS = ("/healthz", "/livez", "/readyz")
_LIFE, _SKEW = timedelta(days=365), timedelta(minutes=5)
_REFUSAL = b"here are only /healthz /livez /readyz: metrics are at --health-host:--health-port\n"


class ProbeApp:
    """The pages of `inner` that everybody may see."""

    def __init__(self, inner: HealthApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].rstrip("/") in OPEN_PATHS:
            await self._inner(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSAL})


def secure_server(checks: Checks, host: str, port: int) -> HealthServer:
    """Raises HealthServerError when the port cannot be had."""
    return HealthServer(checks, host, port, app=ProbeApp(HealthApp(checks)), tls=self_signed())


def self_signed() -> ssl.SSLContext:
    """TLS 1.2 or newer. The key touches the disk only while it is loaded, readable by its owner alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pilotage")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    chain = certificate.public_bytes(pem) + key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="pilotage-") as folder:  # mode 0700
        path = Path(folder) / "server.pem"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(chain)
        context.load_cert_chain(path)
    return context
