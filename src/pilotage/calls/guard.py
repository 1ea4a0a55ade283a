"""A fence around the code of call types: whatever they raise becomes one named error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pilotage.calls.registry import METHODS
from pilotage.calls.types import CallType


class CallTypeRaisedError(Exception):
    """A method of a call type raised; the text names type, method and what it raised."""


class _Guarded:
    def __init__(self, inner: CallType[Any]) -> None:
        self.name, self.relevance = inner.name, inner.relevance
        self.retry, self.linger = inner.retry, inner.linger
        for method in METHODS:
            setattr(self, method, _guarded(inner.name, method, getattr(inner, method)))


def guarded(inner: CallType[Any]) -> CallType[Any]:
    """The same call type, whose methods raise nothing but CallTypeRaisedError."""
    return cast("CallType[Any]", _Guarded(inner))


def _guarded(name: str, method: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        try:
            return work(*args)
        except Exception as error:  # any code of any call type, a plugin's included
            text = f"call type {name!r} raised {type(error).__name__} in {method}: {error}"
            raise CallTypeRaisedError(text) from error

    return run
