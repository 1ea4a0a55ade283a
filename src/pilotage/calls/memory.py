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
        # Slot key -> (the call as last written or wished, when it is forgotten), oldest touch first.
        self._sent: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sent)

    def store(self, key: Hashable, call: Any, until: float) -> None:
        self._sent[key] = (call, until)
        self._sent.move_to_end(key)
        while len(self._sent) > self._size:
            self._sent.popitem(last=False)

    def recall(self, wish: Wish, key: Hashable, now: float) -> bool:
        """Builds a wish on what was sent before; False: it is folded in and need not be sent yet."""
        call, until = self._sent.pop(key, (None, 0.0))
        if call is None or until < now:
            return True
        rest = wish.kind.after(wish.call, call)
        if isinstance(rest, Outcome):
            return True
        wish.take(rest)
        if wish.kind.earliest(rest) <= now:
            return True
        self.store(key, rest, now + wish.kind.linger)
        return False

    def expire(self, now: float) -> None:
        """Forgets from the front; entries behind a younger one wait for it to go."""
        while self._sent and next(iter(self._sent.values()))[1] < now:
            self._sent.popitem(last=False)
