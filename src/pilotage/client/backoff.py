"""How long to wait after a failure: doubling, with jitter from a seeded source, never under Retry-After."""

from __future__ import annotations

import random
from collections.abc import Mapping

MAX_RETRY_AFTER_SECONDS = 300.0


class Backoff:
    """Delays in seconds. The first after `reset` is about `base`; each lies within half of its jitter."""

    def __init__(self, rng: random.Random, *, base: float = 0.5, cap: float = 10.0) -> None:
        self._rng = rng
        self._base = base
        self._cap = cap
        self._failures = 0

    def next(self, at_least: float = 0.0) -> float:
        """The wait before the next try; `at_least` is what the server asked for."""
        ceiling = min(self._cap, self._base * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return max(ceiling * self._rng.uniform(0.5, 1.0), at_least)

    def reset(self) -> None:
        self._failures = 0


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that Retry-After asks for, 0 without it. Header names are lower-case; dates are not read."""
    text = headers.get("retry-after", "").strip()
    return min(float(text), MAX_RETRY_AFTER_SECONDS) if text.isdecimal() else 0.0
