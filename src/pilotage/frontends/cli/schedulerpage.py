"""What a running scheduler says of a pod on its health server."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import quote

import msgspec
import rich_click as click

_SECONDS: Final = 5.0
_NOT_FOUND: Final = 404


def ask_scheduler(address: str, namespace: str, name: str) -> dict[str, Any] | None:
    """The page `/debug/pods/<namespace>/<name>`; None when the scheduler does not know the pod.

    Raises ClickException naming address and fault.
    """
    base = address if "://" in address else f"http://{address}"
    if not base.startswith(("http://", "https://")):
        raise click.ClickException(f"--scheduler {address}: http://HOST:PORT was expected")
    url = f"{base.rstrip('/')}/debug/pods/{quote(namespace)}/{quote(name)}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            page: dict[str, Any] = msgspec.json.decode(answer.read(), type=dict[str, Any])
            return page
    except urllib.error.HTTPError as problem:
        if problem.code == _NOT_FOUND and b"knows no pod" in problem.read():
            return None
        raise click.ClickException(f"--scheduler {address}: it answered {problem.code} to {url}") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise click.ClickException(f"--scheduler {address}: no answer: {reason}") from None
