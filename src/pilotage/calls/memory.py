"""What was written lately, for call types whose later calls build on it (events that form a series).

Bounded in number and age; the entry that was touched longest ago goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from pilotage.calls.slots import Wish
from pilotage.framework.calls import Outcome


class SentMemory:
    def __init__(self, size: int) -> None:
        self._size = size
        # Slot key -> (wish as last written or folded in, when it is forgotten), oldest touch first.
        self._sent: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()
        # Slot key -> wish that carries more than was written, in the same order.
        self._unwritten: OrderedDict[Hashable, Wish] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sent)

    def store(self, key: Hashable, call: Any, until: float) -> None:
        self._unwritten.pop(key, None)
        self._sent[key] = (call, until)
        self._sent.move_to_end(key)
        while len(self._sent) > self._size:
            oldest, _ = self._sent.popitem(last=False)
            self._unwritten.pop(oldest, None)

    def fold(self, key: Hashable, wish: Wish, call: Any, now: float) -> None:
        """`wish` is part of `call` now, which is written later: at its time, or when no more comes."""
        self.store(key, call, now + wish.kind.linger)
        last = Wish(call, wish.kind, None, wish.key, now, is_last=True)
        if key in self._sent:
            self._unwritten[key] = last

    def recall(self, wish: Wish, key: Hashable, now: float) -> bool:
        """Builds a wish on what was sent before; False: it is folded in and need not be sent yet."""
        call, until = self._sent.pop(key, (None, 0.0))
        self._unwritten.pop(key, None)
        if call is None or until < now:
            return True
        rest = wish.kind.after(wish.call, call)
        if isinstance(rest, Outcome):
            return True
        wish.take(rest)
        if wish.kind.earliest(rest) <= now:
            return True
        self.fold(key, wish, rest, now)
        return False

    def ended(self, now: float) -> list[tuple[Hashable, Wish]]:
        """Wishes to write now because nothing was folded in for so long; they are forgotten."""
        found: list[tuple[Hashable, Wish]] = []
        while (until := self.next_end()) is not None and until <= now:
            key, wish = self._unwritten.popitem(last=False)
            del self._sent[key]
            found.append((key, wish))
        return found

    def next_end(self) -> float | None:
        key = next(iter(self._unwritten), None)
        return None if key is None else self._sent[key][1]

    def clear(self) -> None:
        self._sent.clear()
        self._unwritten.clear()
