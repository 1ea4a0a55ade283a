"""What a running scheduler says of the pod (`/debug/pods/<namespace>/<name>`), as rows of the head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilotage.frontends.explain.amounts import number_of

_STORY_LINES = 8


def queue_rows(queue: Mapping[str, Any] | None, known: str = "") -> Iterable[tuple[str, str]]:
    """Nothing when no scheduler was asked. `known`: a text that is on the page already."""
    if queue is None:
        return
    yield "queue", _position(queue)
    waits_on = queue.get("waitsOn") or ()
    if waits_on:
        yield "waits on", ", ".join(waits_on)
    story = queue.get("story") or ()
    for index, entry in enumerate(story[-_STORY_LINES:]):
        yield ("story" if index == 0 else ""), f"{entry['time']} {_short(entry['text'], known)}"


def _short(text: str, known: str) -> str:
    return text.replace(known, "as its condition says") if known else text


def _position(queue: Mapping[str, Any]) -> str:
    parts = [str(queue.get("queue"))]
    if queue.get("gate"):
        parts.append(f"gated by {queue['gate']['plugin']}: {queue['gate']['message']}")
    attempts = queue.get("attempts")
    if attempts:
        parts.append(number_of(attempts, "attempt"))
    if queue.get("nextRetry"):
        parts.append(f"next retry at the latest {queue['nextRetry']}")
    return ", ".join(parts)
