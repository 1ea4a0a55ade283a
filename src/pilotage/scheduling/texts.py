"""Texts that users read: durations, notes cut to their limit, RFC 3339 times, the one-node fit error."""

from __future__ import annotations

from datetime import UTC, datetime

NOTE_LIMIT = 1024  # bytes
_CUT = " ..."


def duration(seconds: float) -> str:
    """As Kubernetes prints durations: `1m30s`, `15m0s`, `1.5s`, `250ms`."""
    if 0 < seconds < 1:
        return f"{_number(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{_number(rest)}s"
    return f"{minutes}m{_number(rest)}s" if minutes else f"{_number(rest)}s"


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def note(message: str) -> str:
    """The message, cut to what an event may hold."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LIMIT:
        return message
    return encoded[: NOTE_LIMIT - len(_CUT)].decode(errors="ignore") + _CUT


def rfc3339(seconds: float) -> str:
    """Whole seconds, as Kubernetes writes condition times."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def one_node_message(reasons: tuple[str, ...]) -> str:
    """Text of a rejection that concerns the chosen node alone (Reserve, Permit, PreBind)."""
    if not reasons:
        return "0/1 nodes are available:"
    parts = ", ".join(sorted(f"1 {reason}" for reason in reasons))
    return f"0/1 nodes are available: {parts}."
