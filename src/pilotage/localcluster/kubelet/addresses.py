"""Addresses for nodes and pods, handed out in order and taken back (pure)."""

from __future__ import annotations

import heapq

_NODE_BASE = (172 << 24) | (16 << 16)  # 172.16.0.0/12
_POD_BASE = 10 << 24  # 10.0.0.0/8


class Addresses:
    """One per owner, the lowest free one; the same owner always gets the same."""

    def __init__(self, base: int) -> None:
        self._base = base
        self._next = 1
        self._free: list[int] = []
        # owner -> offset of its address; no offset is here twice or in `_free` as well.
        self._taken: dict[str, int] = {}

    def of(self, owner: str) -> str:
        offset = self._taken.get(owner)
        if offset is None:
            offset = heapq.heappop(self._free) if self._free else self._advance()
            self._taken[owner] = offset
        number = self._base + offset
        return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))

    def give_back(self, owner: str) -> None:
        offset = self._taken.pop(owner, None)
        if offset is not None:
            heapq.heappush(self._free, offset)

    def _advance(self) -> int:
        self._next += 1
        return self._next - 1


def node_addresses() -> Addresses:
    return Addresses(_NODE_BASE)


def pod_addresses() -> Addresses:
    return Addresses(_POD_BASE)
