"""Who we are to the API server: kubeconfig or in-cluster, kept fresh.

Why: `kubernetes_asyncio.config` knows exec plugins, OIDC, client certificates and token files; this is
the only module that imports it, and only when somebody needs it (the import takes about a second).

Laws: an `Access` is a value, complete for one request; it is loaded again when its token may be stale
(token files after a minute, exec plugins at their expiry) and once after a 401; one load at a time.
No token is ever part of a message or of a `repr`.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pilotage.client.kubeconfig import CredentialsError, Kubeconfig, find_files, load_kubeconfig
from pilotage.client.tls import VERIFIED, Tls

__all__ = [
    "Access",
    "Credentials",
    "CredentialsError",
    "LoadedCredentials",
    "StaticCredentials",
    "load",
]

TOKEN_FILE_SECONDS = 60.0
MIN_EXEC_SECONDS = 10.0
EXPIRY_MARGIN_SECONDS = 30.0
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """All that one request needs. `authorization` is the whole header value, "" for none."""

    server: str
    authorization: str = field(default="", repr=False)
    tls: Tls = VERIFIED
    proxy: str = ""


class Credentials(Protocol):
    @property
    def server(self) -> str: ...

    @property
    def namespace(self) -> str:
        """The namespace that the context names, for people's commands."""

    async def access(self) -> Access: ...

    async def refresh(self, stale: Access) -> Access:
        """After a 401 with `stale`: what to try next. Equal to `stale` when there is nothing newer."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Known beforehand: the embedded cluster's, and tests'."""

    server: str
    token: str = field(default="", repr=False)
    tls: Tls = VERIFIED
    namespace: str = "default"

    async def access(self) -> Access:
        return Access(self.server, f"Bearer {self.token}" if self.token else "", self.tls)

    async def refresh(self, stale: Access) -> Access:
        return await self.access()


@dataclass(frozen=True, slots=True)
class Loaded:
    """One result of the library: the access, and when it should be asked again (None: after a 401 only)."""

    access: Access
    valid_seconds: float | None


class LoadedCredentials:
    """Credentials behind a loader that may run programs or read files."""

    def __init__(self, server: str, namespace: str, load: Callable[[], Awaitable[Loaded]]) -> None:
        self.server = server
        self.namespace = namespace
        self._load = load
        self._lock = asyncio.Lock()
        self._current: Access | None = None
        self._stale_at: float | None = None  # loop time

    async def access(self) -> Access:
        now = asyncio.get_running_loop().time()
        current = self._current
        if current is not None and (self._stale_at is None or now < self._stale_at):
            return current
        return await self.refresh(current)

    async def refresh(self, stale: Access | None) -> Access:
        """Loads again, unless another task has done so since `stale` was handed out."""
        async with self._lock:
            if self._current is not None and self._current is not stale:
                return self._current
            loaded = await self._load()
            self._current = loaded.access
            self._stale_at = self._deadline(loaded.valid_seconds)
            return loaded.access

    def _deadline(self, seconds: float | None) -> float | None:
        return None if seconds is None else asyncio.get_running_loop().time() + seconds


def load(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> Credentials:
    """An explicit file, else the KUBECONFIG list, else ~/.kube/config, else the pod's service account.

    Reads and checks the file at once (CredentialsError); plugins run when the first request needs them.
    """
    environment = os.environ if environment is None else environment
    files = find_files(kubeconfig, environment, home or Path.home())
    if files:
        config = load_kubeconfig(files, context)
        return _plain(config) or LoadedCredentials(
            config.cluster["server"].rstrip("/"), config.namespace, lambda: _from_kubeconfig(config)
        )
    if environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"):
        return in_cluster(environment)
    raise CredentialsError(
        "no kubeconfig: give --kubeconfig FILE, set KUBECONFIG or create ~/.kube/config (and this is no pod)"
    )


def _plain(config: Kubeconfig) -> StaticCredentials | None:
    """A token and an authority inside the file need no library, whose import takes long for a `get`."""
    if config.user.keys() - {"token"} or config.cluster.keys() - {"server", "certificate-authority-data"}:
        return None
    authority = config.cluster.get("certificate-authority-data", "")
    try:
        tls = Tls(ca_data=base64.b64decode(authority).decode("ascii"))
    except UnicodeDecodeError:
        return None
    token = " ".join(config.user.get("token", "").split())
    return StaticCredentials(config.cluster["server"].rstrip("/"), token, tls, config.namespace)


def in_cluster(environment: Mapping[str, str], directory: Path = _SERVICE_ACCOUNT) -> Credentials:
    """The service account of the pod we run in."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace_file = directory / "namespace"
    namespace = namespace_file.read_text().strip() if namespace_file.is_file() else "default"
    return LoadedCredentials(server, namespace, lambda: _from_service_account(environment, directory))


async def _from_kubeconfig(config: Kubeconfig) -> Loaded:
    library, target = _library()
    try:
        loader = await library.load_kube_config_from_dict(config.document, client_configuration=target)
    except Exception as problem:  # the library's and its plugins' failures have no common base
        raise CredentialsError(f"kubeconfig {config.origin}: {_explain(config, problem)}") from None
    return Loaded(_access(target, config), _validity(config, loader))


def _explain(config: Kubeconfig, problem: Exception) -> str:
    text = " ".join(str(problem).split()) or type(problem).__name__
    plugin = config.user.get("exec")
    return f"exec.command: {plugin['command']!r}: {text}" if plugin else text


def _validity(config: Kubeconfig, loader: Any) -> float | None:
    expiry = getattr(loader, "exec_plugin_expiry", None)
    if isinstance(expiry, datetime):
        left = (expiry - datetime.now(expiry.tzinfo)).total_seconds() - EXPIRY_MARGIN_SECONDS
        return max(left, MIN_EXEC_SECONDS)
    return TOKEN_FILE_SECONDS if {"tokenFile", "auth-provider"} & config.user.keys() else None


async def _from_service_account(environment: Mapping[str, str], directory: Path) -> Loaded:
    library, target = _library()
    try:
        library.load_incluster_config(
            client_configuration=target,
            try_refresh_token=False,
            token_filename=str(directory / "token"),
            cert_filename=str(directory / "ca.crt"),
            environ=dict(environment),
        )
    except (library.ConfigException, OSError) as problem:
        raise CredentialsError(f"in-cluster credentials in {directory}: {problem}") from None
    return Loaded(_access(target, None), TOKEN_FILE_SECONDS)


def _library() -> tuple[Any, Any]:
    """`kubernetes_asyncio.config` and an empty bag of settings for it to fill."""
    # It uses calls that newer Pythons deprecate; that is not our user's business.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"kubernetes_asyncio\.")
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    # Every failure that it logs is also raised, and reported by us in one line.
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)
    return config, Configuration()


def _access(target: Any, config: Kubeconfig | None) -> Access:
    token = " ".join(str(target.api_key.get("BearerToken", "")).split())
    insecure = config is not None and config.cluster.get("insecure-skip-tls-verify") is True
    tls = Tls(
        ca_file=target.ssl_ca_cert or "",
        cert_file=target.cert_file or "",
        key_file=target.key_file or "",
        verify=not insecure,
        server_name=target.tls_server_name or "",
    )
    return Access(str(target.host).rstrip("/"), token, tls, target.proxy or "")
