"""How many replicas each ReplicaSet of a Deployment should have next (pure arithmetic).

Laws: during a rolling update never more than `desired + surge` pods are asked for, and never are so many
taken away that fewer than `desired - unavailable` stay available.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Share:
    """One ReplicaSet: what it asks for and what is available of it."""

    name: str
    replicas: int
    available: int


def resolve(value: int | str | None, total: int, *, default: int | str, round_up: bool) -> int:
    """An absolute number, or a percentage of `total`."""
    chosen = default if value is None else value
    if isinstance(chosen, str) and chosen.endswith("%"):
        share = total * int(chosen[:-1])
        return math.ceil(share / 100) if round_up else share // 100
    return int(chosen)


def limits(strategy: dict[str, Any], desired: int) -> tuple[int, int]:
    """(surge, unavailable); at least one of them is not 0, or nothing could ever move."""
    rolling = strategy.get("rollingUpdate") or {}
    surge = resolve(rolling.get("maxSurge"), desired, default="25%", round_up=True)
    unavailable = resolve(rolling.get("maxUnavailable"), desired, default="25%", round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def next_scales(
    new: Share, old: Sequence[Share], desired: int, surge: int, unavailable: int
) -> dict[str, int]:
    """Replicas to set by name, one careful step further: first the new ones grow, then the old shrink."""
    total = new.replicas + sum(share.replicas for share in old)
    if new.replicas > desired:
        return {new.name: desired}
    if new.replicas < desired:
        room = max(0, desired + surge - total)
        if room:
            return {new.name: min(desired, new.replicas + room)}
    return _shrink(new, old, total, desired - unavailable)


def _shrink(new: Share, old: Sequence[Share], total: int, min_available: int) -> dict[str, int]:
    """Old ones go: first those that are not available anyway, then as many as availability allows."""
    available = new.available + sum(share.available for share in old)
    budget = total - min_available - max(0, new.replicas - new.available)
    targets = {share.name: share.replicas for share in old}
    for share in old:
        broken = min(max(0, share.replicas - share.available), max(0, budget))
        targets[share.name] -= broken
        budget -= broken
    surplus = min(budget, available - min_available)
    for share in old:
        taken = min(targets[share.name], max(0, surplus))
        targets[share.name] -= taken
        surplus -= taken
    return {share.name: targets[share.name] for share in old if targets[share.name] != share.replicas}


def recreate(new: Share, old: Sequence[Share], old_pods: int, desired: int) -> dict[str, int]:
    """All old ones go before the first new one comes."""
    going = {share.name: 0 for share in old if share.replicas}
    if going:
        return going
    return {} if old_pods or new.replicas == desired else {new.name: desired}
