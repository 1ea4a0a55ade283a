"""The order of ready pods as the QueueSort plugin gives it, made safe to keep in a heap.

Laws: keys always compare. Numbers and tuples of them are taken as they are; any other key is compared by
the plugin's own rules and, where those raise, by priority and time; a pod whose key cannot be had at all
goes behind the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilotage.framework.plugin import QueuedPod

SortKey: TypeAlias = tuple[int, Any, int]
_PLAIN, _FOREIGN, _NONE = 0, 1, 2


def sort_key(queued: QueuedPod, of_plugin: Callable[[QueuedPod], Any]) -> SortKey:
    """Smallest first; equal keys keep the order of arrival."""
    fallback = (-queued.pod.priority, queued.timestamp)
    try:
        key = of_plugin(queued)
    except Exception:  # plugin code: the pod keeps a place
        return (_NONE, fallback, queued.sequence)
    if type(key) is tuple and all(map(_is_plain, key)):
        return (_PLAIN, key, queued.sequence)
    if _is_plain(key):
        return (_PLAIN, (key,), queued.sequence)
    return (_FOREIGN, _ForeignKey(key, fallback), queued.sequence)


def _is_plain(part: object) -> bool:
    """Numbers, without the one that is not equal to itself."""
    return type(part) is int or (type(part) is float and part == part)  # NaN


class _ForeignKey:
    """A key of a type that only the plugin knows."""

    __slots__ = ("_fallback", "_key")

    def __init__(self, key: Any, fallback: tuple[int, float]) -> None:
        self._key, self._fallback = key, fallback

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForeignKey) and not self < other and not other < self

    def __hash__(self) -> int:
        return hash(self._fallback)

    def __lt__(self, other: _ForeignKey) -> bool:
        try:
            return bool(self._key < other._key)
        except Exception:  # plugin code: two keys that it cannot compare
            return self._fallback < other._fallback
