"""Kubernetes' two time formats, from epoch seconds and back."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=64)
def _second(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_text(now: float) -> str:
    """`metav1.Time`: whole seconds."""
    return _second(int(now))


def micro_time_text(now: float) -> str:
    """`metav1.MicroTime`: six decimals."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: object) -> float | None:
    """Epoch seconds, or None when `text` is no RFC 3339 time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def age_text(created: object, now: float) -> str:
    """How long ago, the way kubectl's columns write it: `3s`, `5m2s`, `4h`, `2d3h`, `<unknown>`."""
    start = parse_time(created)
    return "<unknown>" if start is None else duration_text(now - start)


_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration_text(seconds: float) -> str:
    """Two units while they matter, one after that."""
    if seconds < -1:
        return "<invalid>"
    left = max(0, int(seconds))
    if left < 2 * _MINUTE:
        return f"{left}s"
    if left < 3 * _HOUR:
        return _pair(left, _MINUTE, "m", 1, "s", left < 10 * _MINUTE)
    if left < 2 * _DAY:
        return _pair(left, _HOUR, "h", _MINUTE, "m", left < 8 * _HOUR)
    if left < 2 * 365 * _DAY:
        return _pair(left, _DAY, "d", _HOUR, "h", left < 8 * _DAY)
    return _pair(left, 365 * _DAY, "y", _DAY, "d", left < 8 * 365 * _DAY)


def _pair(left: int, big: int, big_unit: str, small: int, small_unit: str, is_fine: bool) -> str:
    rest = left % big // small
    return f"{left // big}{big_unit}{rest}{small_unit}" if is_fine and rest else f"{left // big}{big_unit}"
