"""Reading answers: Kubernetes Status, Retry-After, and which failures are worth another try."""

from __future__ import annotations

import msgspec

from pilotage.api.wire import Response
from pilotage.calls.types import NoAnswer, Result
from pilotage.calls.verdicts import Fail, Retry

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class RetryDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class StatusBody(msgspec.Struct):
    """The parts of a Status object that say what went wrong."""

    reason: str = ""
    message: str = ""
    details: RetryDetails | None = None


_decoder = msgspec.json.Decoder(StatusBody)


def status_of(response: Response) -> StatusBody:
    """The Status in the body, or one made from the HTTP status and the text where there is none."""
    try:
        found = _decoder.decode(response.body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        found = StatusBody(message=response.body[:200].decode("utf-8", "replace").strip())
    found.reason = found.reason or _REASONS.get(response.status, "")
    found.message = found.message or found.reason or f"HTTP {response.status}"
    return found


def is_success(response: Response) -> bool:
    return 200 <= response.status < 300


def is_retryable(status: int) -> bool:
    return status in (408, 429) or status >= 500


def retry_after(response: Response) -> float | None:
    """Seconds from the Retry-After header (or the Status details); None where the server named none."""
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    details = status_of(response).details
    return float(details.retry_after_seconds) if details and details.retry_after_seconds > 0 else None


def failed(response: Response) -> Fail:
    status = status_of(response)
    return Fail(status.message, response.status, status.reason)


def retry(result: Result) -> Retry:
    """Another try after a missing answer or a retryable status."""
    if isinstance(result, NoAnswer):
        return Retry(result.error or "no answer")
    status = status_of(result)
    return Retry(status.message, result.status, status.reason, retry_after(result))
