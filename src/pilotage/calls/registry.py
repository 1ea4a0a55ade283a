"""One implementation per call type, replaceable until the queue runs; misuse is refused with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilotage.calls.types import CallType

METHODS = (
    "prepare",
    "slot",
    "lane",
    "waits_for",
    "merge",
    "remainder",
    "after",
    "earliest",
    "remember",
    "rebase",
    "is_no_op",
    "apply",
    "reads_first",
    "read",
    "requests",
    "on_result",
)


class CallTypeError(Exception):
    """The registry was misused: the message says which type and how."""


class CallTypes:
    """Registered call types by name. Sealed by the queue that uses it."""

    def __init__(self, *types: CallType[Any]) -> None:
        self._types: dict[str, CallType[Any]] = {}
        # True from the moment a queue holds calls of these types: an implementation that changed under
        # a pending call could neither merge nor send it.
        self._sealed = False
        for one in types:
            self.register(one)

    def register(self, implementation: CallType[Any]) -> None:
        """Adds a type. Raises CallTypeError: name taken, method missing, registry sealed."""
        self._check(implementation)
        held = self._types.get(implementation.name)
        if held is not None:
            raise CallTypeError(
                f"call type {implementation.name!r} is already implemented by "
                f"{type(held).__name__}; use replace() to put {type(implementation).__name__} in its place"
            )
        self._types[implementation.name] = implementation

    def replace(self, implementation: CallType[Any]) -> CallType[Any]:
        """Puts an implementation in the place of the one of its name, which is returned."""
        self._check(implementation)
        held = self._types.get(implementation.name)
        if held is None:
            raise CallTypeError(f"no call type {implementation.name!r} to replace; use register()")
        self._types[implementation.name] = implementation
        return held

    def seal(self) -> None:
        self._sealed = True

    def find(self, name: str) -> CallType[Any] | None:
        return self._types.get(name)

    def __iter__(self) -> Iterator[CallType[Any]]:
        return iter(self._types.values())

    def _check(self, implementation: CallType[Any]) -> None:
        who = type(implementation).__name__
        if self._sealed:
            raise CallTypeError(f"{who}: call types are fixed once the call queue runs; register before that")
        if isinstance(implementation, type):
            raise CallTypeError(f"{implementation.__name__}: register an instance, not the class")
        if not isinstance(getattr(implementation, "name", None), str) or not implementation.name:
            raise CallTypeError(f"{who}: a call type needs a non-empty name (its metric label)")
        missing = [name for name in METHODS if not callable(getattr(implementation, name, None))]
        missing += [name for name in ("relevance", "retry", "linger") if not hasattr(implementation, name)]
        if missing:
            raise CallTypeError(f"call type {implementation.name!r} ({who}) lacks {', '.join(missing)}")
