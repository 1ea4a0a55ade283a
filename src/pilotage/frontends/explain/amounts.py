"""Amounts of resources as people read them: exact, or rounded as far as different ones stay different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_IN_BYTES: Final = ("memory", "ephemeral-storage")


def amount(resource: str, number: int) -> str:
    """Exact: `500m` cpu, `1.5Gi` memory, `2` of anything else."""
    if not _is_in_bytes(resource):
        return f"{number}m" if resource == "cpu" else str(number)
    for unit, size in _UNITS:
        if abs(number) >= size and number * 100 % size == 0:
            return _decimal(number / size, unit)
    return str(number)


def amounts(resource: str, numbers: Sequence[int]) -> list[str]:
    """Rounded to two decimals of a large unit, unless different numbers would look equal."""
    exact = [amount(resource, number) for number in numbers]
    rounded = [
        _rounded(number) if _is_in_bytes(resource) else text
        for number, text in zip(numbers, exact, strict=True)
    ]
    return rounded if len(set(rounded)) == len(set(numbers)) else exact


def _is_in_bytes(resource: str) -> bool:
    return resource in _IN_BYTES or resource.startswith("hugepages-")


def _rounded(number: int) -> str:
    for unit, size in _UNITS:
        if abs(number) >= size:
            return _decimal(number / size, unit)
    return str(number)


def _decimal(value: float, unit: str) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + unit


def number_of(count: int, noun: str) -> str:
    """`1 node`, `3 nodes`"""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def names(found: Sequence[str], limit: int = 4) -> str:
    """`n1, n2, n3 and 4,997 more`"""
    if len(found) <= limit:
        return ", ".join(found)
    return f"{', '.join(found[: limit - 1])} and {len(found) - limit + 1:,} more"
