"""A running embedded server for tests that talk to it over HTTP, and kubectl to talk with."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotage.localcluster.process import ServerProcess


class Http:
    """Plain requests to a server process."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=server.ca_pem)

    def call(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers with lower-case names, body)"""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server.url + path, data=raw, method=method)
        request.add_header("Authorization", f"Bearer {self._server.token if token is None else token}")
        request.add_header("Content-Type", headers.pop("content_type", "application/json"))
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=20) as answer:
                return answer.status, _lower(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _lower(error.headers), error.read()

    def get(self, path: str) -> Any:
        return json.loads(self.call("GET", path)[2])

    def bind_all(self, node: str) -> int:
        """Stands in for a scheduler: every waiting pod goes to `node`."""
        waiting = self.get("/api/v1/pods?fieldSelector=spec.nodeName%3D")["items"]
        for pod in waiting:
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
            self.call("POST", path, {"target": {"name": node}})
        return len(waiting)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class Kubectl:
    """kubectl against one kubeconfig; its cache and home are the test's own."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._program = kubectl_program()
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(home / "cache"),
        }

    def run(self, *arguments: str, stdin: str = "", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            input=stdin,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Its output; it must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Its complaint; it must fail."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} succeeded: {done.stdout}"
        return done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._program, *arguments], env=self._environment, stdout=subprocess.PIPE, text=True
        )


def kubectl_program() -> str:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip(
            "NO KUBECTL: the kubectl session was NOT run (put kubectl on PATH)", allow_module_level=True
        )
    return program


def eventually(check: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Until `check` holds. The other side is another process: there is no event to wait for."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"it did not come to pass: {what}"
        time.sleep(0.05)
