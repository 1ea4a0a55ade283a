"""Amounts of resources as people read them: exact where that is short, never rounded into an equal."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_IN_BYTES: Final = ("memory", "ephemeral-storage")


def amount(resource: str, number: int) -> str:
    """`500m` cpu, `1.5Gi` memory, `2` of anything else."""
    if resource == "cpu":
        return f"{number}m"
    if resource in _IN_BYTES or resource.startswith("hugepages-"):
        return _binary(number)
    return str(number)


def _binary(number: int) -> str:
    """At most two decimals; an amount that they cannot tell is shown in the next smaller unit."""
    for unit, size in _UNITS:
        if abs(number) >= size:
            hundredths, rest = divmod(number * 100, size)
            if rest == 0:
                return f"{hundredths / 100:g}{unit}"
    return str(number)


def number_of(count: int, noun: str) -> str:
    """`1 node`, `3 nodes`"""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def names(found: list[str] | tuple[str, ...], limit: int = 4) -> str:
    """`n1, n2, n3 and 4,997 more`"""
    if len(found) <= limit:
        return ", ".join(found)
    return f"{', '.join(found[: limit - 1])} and {len(found) - limit + 1:,} more"
