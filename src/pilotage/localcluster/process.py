"""The embedded cluster as a child process: started, found, and never left behind.

Laws: it listens on loopback only, behind TLS and a random token; it lives no longer than this process, even
when that is killed; failing to start is one `ServerStartError` with one clear line.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import yaml

_MARK = "# Written by pilotage for its embedded cluster; it is overwritten at the next start.\n"
_NAME = "pilotage"
_STOP_SECONDS = 6.0


class ServerStartError(RuntimeError):
    """The embedded server did not start; the message is one line that says why."""


class ServerProcess:
    """A running embedded API server. Close it with `stop`, or use it as a context manager."""

    def __init__(self, child: subprocess.Popen[bytes], url: str, token: str, ca: str) -> None:
        self._child = child
        self.url = url
        self.token = token
        self.ca_pem = ca

    @classmethod
    def start(
        cls,
        port: int = 0,
        *,
        services: bool = True,
        seed: int | None = None,
        token: str | None = None,
        history: int = 20_000,
        timeout: float = 30.0,
        stderr: IO[bytes] | int | None = None,
    ) -> ServerProcess:
        """Blocks until it serves; `timeout` in seconds. Raises ServerStartError.

        `port` 0 picks a free one; `services`: simulated kubelets and controllers run too; `seed` fixes the
        ids of objects; `token` None makes a random one; `history`: changes kept per resource for watches.
        """
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "pilotage.localcluster.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            process_group=0,  # Ctrl-C in a terminal is the parent's business, from the first instant on
        )
        settings = {"port": port, "services": services, "seed": seed, "token": token, "history": history}
        try:
            ready = _handshake(child, settings, timeout)
        except BaseException:
            _end(child)
            raise
        return cls(child, ready["url"], ready["token"], ready["ca"])

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def stop(self) -> None:
        """Ends the child and waits for it. May be called twice."""
        _end(self._child)

    def kubeconfig(self) -> dict[str, Any]:
        """A kubeconfig with one context, certificate authority and token inside."""
        authority = base64.b64encode(self.ca_pem.encode()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": {"token": self.token}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "current-context": _NAME,
        }

    def write_kubeconfig(self, path: str | Path) -> Path:
        """Readable by its owner only. Raises FileExistsError for a file that pilotage did not write."""
        target = Path(path)
        if target.exists() and not target.read_text(errors="replace").startswith(_MARK):
            raise FileExistsError(f"{target} exists and was not written by pilotage: choose another path")
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(_MARK + yaml.safe_dump(self.kubeconfig(), sort_keys=False))
        draft.replace(target)
        return target

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _handshake(child: subprocess.Popen[bytes], settings: dict[str, Any], timeout: float) -> dict[str, str]:
    """Sends the settings and reads the child's one line."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died already; what it said tells why
        child.stdin.write(json.dumps(settings).encode() + b"\n")
        child.stdin.flush()
    line = _read_line(child, time.monotonic() + timeout)
    try:
        message = json.loads(line)
    except ValueError:
        raise ServerStartError(f"the embedded server did not start (exit status {child.poll()})") from None
    if "error" in message:
        raise ServerStartError(message["error"])
    ready: dict[str, str] = message["ready"]
    return ready


def _read_line(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """What the child wrote up to its newline, or up to its end. Raises ServerStartError at the deadline."""
    assert child.stdout is not None
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while not text.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise ServerStartError("the embedded server did not become ready in time")
            chunk = os.read(child.stdout.fileno(), 65536)
            if not chunk:
                break
            text += chunk
    return text


def _end(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
