"""Durations as Go writes them (`1h2m3.5s`, `100ms`), in seconds."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # micro sign
    "μs": Fraction(1, 10**6),  # Greek mu
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError for anything that is not a Go duration."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body == "0":
        return 0.0
    total, end = Fraction(0), 0
    for part in _PART.finditer(body):
        if part.start() != end:
            break
        total += Fraction(part.group(1).rstrip(".") or "0") * _UNITS[part.group(2)]
        end = part.end()
    if not body or end != len(body):
        raise ValueError(f'"{text}" is not a duration such as 15s or 1m30s')
    return sign * float(total)


def format_duration(seconds: float) -> str:
    """As Go prints it: `1m30s`, `300ms`, `0s`."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
