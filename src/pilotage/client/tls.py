"""TLS of one connection as a value, and the one place that makes an `SSLContext` of it.

Law: certificates and host names are verified unless `verify` is False, and only a kubeconfig's
`insecure-skip-tls-verify: true` makes it so.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from pilotage.client.kubeconfig import CredentialsError


@dataclass(frozen=True, slots=True)
class Tls:
    """`ca_file` or `ca_data` (PEM text); neither means the system's authorities."""

    ca_file: str = ""
    ca_data: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify: bool = True
    server_name: str = ""


VERIFIED = Tls()  # by the system's authorities


def build_context(tls: Tls) -> ssl.SSLContext:
    """Raises CredentialsError naming the file that cannot be used."""
    context = _trusting(tls)
    # Go's clients do not ask for the key identifiers that this flag demands of cluster-made authorities.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file:
        try:
            context.load_cert_chain(tls.cert_file, tls.key_file or None, password=_no_password)
        except (OSError, ValueError) as problem:
            raise CredentialsError(
                f"client certificate {tls.cert_file}: cannot be used: {_reason(problem)}"
            ) from None
    return context


def _trusting(tls: Tls) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=tls.ca_file or None, cadata=tls.ca_data or None)
    except (OSError, ValueError) as problem:
        name = tls.ca_file or "certificate-authority-data"
        raise CredentialsError(f"{name}: not a usable CA certificate (PEM): {_reason(problem)}") from None


def _no_password() -> str:
    """Instead of a prompt on the terminal."""
    raise ValueError("the key is encrypted")


def _reason(problem: Exception) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
