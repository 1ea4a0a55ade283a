"""Calling plugin code: whatever it raises becomes an error status that names plugin and point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pilotage.framework.status import SUCCESS, Status, error

P = ParamSpec("P")
T = TypeVar("T")


class PluginFailedError(Exception):
    """A plugin raised, or answered with an error. `status` is the one to record for the pod's attempt."""

    def __init__(self, status: Status) -> None:
        self.status = status
        super().__init__(status.message)


def guarded(plugin: str, point: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`function(*args)`. Raises PluginFailedError in place of anything that it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as exc:  # plugins are foreign code: any of theirs fails one attempt, never the scheduler
        raise PluginFailedError(raised(plugin, point, exc)) from exc


def guarded_status(
    plugin: str, point: str, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs
) -> Status:
    """As `guarded` for calls that answer with a Status; None counts as success, anything else is an error."""
    answer = guarded(plugin, point, function, *args, **kwargs)
    return SUCCESS if answer is None else checked(plugin, point, answer, Status)


def checked(plugin: str, point: str, answer: object, kind: type[T]) -> T:
    """The answer, if it is of the kind that the extension point wants. Raises PluginFailedError."""
    if isinstance(answer, kind):
        return answer
    raise PluginFailedError(failed(plugin, point, f"it answered {shown(answer)}, not a {kind.__name__}"))


def shown(answer: object) -> str:
    """A plugin's answer in a few words, whatever its `repr` does."""
    try:
        return repr(answer)[:60]
    except Exception:  # foreign code
        return f"something of type {type(answer).__name__}"


def answered(plugin: str, point: str, answer: object, kind: type[T]) -> T:
    """As `checked` for answers that carry a `status`. Raises PluginFailedError."""
    result = checked(plugin, point, answer, kind)
    checked(plugin, point, getattr(result, "status", None), Status)
    return result


def raised(plugin: str, point: str, exc: Exception) -> Status:
    """Status of a plugin call that raised."""
    try:
        text = str(exc)
    except Exception:  # foreign code
        text = ""
    detail = f"{type(exc).__name__}: {text}" if text else type(exc).__name__
    return failed(plugin, point, detail)


def failed(plugin: str, point: str, detail: str) -> Status:
    """Error status of a plugin call."""
    return error(f'running {point} plugin "{plugin}": {detail}').by(plugin)
