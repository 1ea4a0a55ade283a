"""What the server refused, as one exception with the fields of its Status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotage.api.wire import Response, Status
from pilotage.client.backoff import retry_after

_GONE = 410
_SHOWN_CHARACTERS = 300


class ApiError(Exception):
    """`status`: HTTP code; `reason`: Kubernetes' word (NotFound, Conflict, ...), "" when it is no Status."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.reason})".replace(" )", ")")

    @property
    def is_expired(self) -> bool:
        """A resourceVersion or continue token is too old: list again."""
        return self.status == _GONE or self.reason in ("Expired", "Gone")


def error_of_response(response: Response) -> ApiError:
    """The error behind an answer that is no success, whatever its body is."""
    return error_of_body(response.status, response.body, response.headers)


def error_of_body(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    wait = retry_after(headers)
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status":
        return error_of_status({"code": status, **document}, wait)
    text = " ".join(body.decode("utf-8", "replace").split())[:_SHOWN_CHARACTERS]
    return ApiError(status, "", text or f"the server answered {status} without a text", None, wait)


def error_of_status(document: Mapping[str, Any], wait: float = 0.0) -> ApiError:
    """The error that a Status object tells, also one inside a watch stream."""
    details = document.get("details")
    details = details if isinstance(details, dict) else {}
    code, asked = document.get("code"), details.get("retryAfterSeconds")
    return ApiError(
        code if isinstance(code, int) else 0,
        str(document.get("reason") or ""),
        str(document.get("message") or "unknown error"),
        details,
        max(wait, float(asked) if isinstance(asked, (int, float)) else 0.0),
    )


def error_of_view(status: Status) -> ApiError:
    """The same from the typed view."""
    return error_of_status(msgspec.to_builtins(status))
