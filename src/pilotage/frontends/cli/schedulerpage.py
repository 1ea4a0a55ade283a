"""What a running scheduler says on its health server: of a pod, and of its API calls."""

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
    return _page(address, f"/debug/pods/{quote(namespace)}/{quote(name)}", unknown=b"knows no pod")


def ask_calls(address: str) -> dict[str, Any]:
    """The page `/debug/calls`. Raises ClickException naming address and fault."""
    page = _page(address, "/debug/calls")
    if page is None or not isinstance(page.get("calls"), list):
        raise click.ClickException(f"--scheduler {address}: what answers there has no list of API calls")
    return page


def _page(address: str, path: str, unknown: bytes | None = None) -> dict[str, Any] | None:
    """A JSON object; None where the answer is 404 with the text `unknown`."""
    base = address if "://" in address else f"http://{address}"
    if not base.startswith(("http://", "https://")):
        raise click.ClickException(f"--scheduler {address}: http://HOST:PORT was expected")
    url = f"{base.rstrip('/')}{path}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            page: dict[str, Any] = msgspec.json.decode(answer.read(), type=dict[str, Any])
            return page
    except urllib.error.HTTPError as problem:
        with problem:
            text = problem.read()
        if unknown is not None and problem.code == _NOT_FOUND and unknown in text:
            return None
        raise click.ClickException(f"--scheduler {address}: it answered {problem.code} to {url}") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise click.ClickException(f"--scheduler {address}: no answer: {reason}") from None
