"""What a plugin answers. Codes and their consequences are kube-scheduler's (spec: status codes).

| code | rejection | preemption tries the node | requeue |
|---|---|---|---|
| ERROR | no | no, the cycle ends | error backoff |
| UNSCHEDULABLE | yes | yes | waits for an event its hint accepts, then backs off |
| UNRESOLVABLE | yes | no | as UNSCHEDULABLE |
| WAIT | - | - | Permit only |
| SKIP | - | - | PreFilter, PreScore, Bind, PreBindPreFlight only |
| PENDING | yes | no | an accepted event sends the pod straight to the active queue |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3  # UnschedulableAndUnresolvable
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def word(self) -> str:
        """As kube-scheduler writes it in metrics."""
        return "UnschedulableAndUnresolvable" if self is Code.UNRESOLVABLE else self.name.capitalize()

    @property
    def is_rejection(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


@dataclass(frozen=True, slots=True)
class Status:
    """A code, the reasons a user reads, and the plugin that gave it (filled in by the runner).

    Raises TypeError for a code that is none: where a plugin makes it, not where somebody reads it.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.code, Code):
            raise TypeError(f"{self.code!r} is not a status code")
        if type(self.reasons) is not tuple or not all(type(reason) is str for reason in self.reasons):
            object.__setattr__(self, "reasons", _texts(self.reasons))

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejection(self) -> bool:
        return self.code.is_rejection

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status with the plugin's name, unless one is set already."""
        return self if self.plugin else replace(self, plugin=plugin)


def _texts(reasons: object) -> tuple[str, ...]:
    """Reasons as plugins give them: one text, or any collection of things that have one."""
    if isinstance(reasons, str) or not isinstance(reasons, Iterable):
        return (str(reasons),)
    return tuple(str(reason) for reason in reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    return Status(Code.ERROR, reasons)


def wait(*reasons: str) -> Status:
    return Status(Code.WAIT, reasons)


def pending(*reasons: str) -> Status:
    return Status(Code.PENDING, reasons)
