"""What a node offers, read from status.allocatable, and why a node offers nothing at all.

Law: never raises on a node that decoded; a value that is not a quantity makes the whole node unusable,
because half of a capacity is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotage.api.nodes import Node
from pilotage.api.quantity import QuantityError, milli_value, value

NO_ALLOCATABLE = "node(s) reported no allocatable resources"


class Capacity(NamedTuple):
    """Amounts by resource (milli-CPU, bytes, units; `pods` included); `defect` is empty for a usable node."""

    amounts: dict[str, int]
    defect: str = ""


def node_capacity(node: Node) -> Capacity:
    """Allocatable amounts of a node, or none and a reason."""
    if not node.status.allocatable:
        return Capacity({}, NO_ALLOCATABLE)
    amounts = {}
    for resource, raw in node.status.allocatable.items():
        field = f"status.allocatable[{resource}]"
        try:
            amount = milli_value(raw) if resource == "cpu" else value(raw)
        except QuantityError as exc:
            return Capacity({}, unusable(str(exc.at(field))))
        if amount < 0:
            error = QuantityError(raw, field, "must not be negative")
            return Capacity({}, unusable(str(error)))
        amounts[resource] = amount
    return Capacity(amounts)


def unusable(error: str) -> str:
    """Reason text of a node that could not be read."""
    return f"node(s) could not be read: {error}"
