"""What a call type makes of an answer. The queue carries a verdict out and adds bounds and order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pilotage.api.meta import KubeObject
from pilotage.framework.calls import Call


@dataclass(frozen=True, slots=True)
class Done:
    """Written. `object`: the object as the server returned it, where it did."""

    object: KubeObject | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing left to write."""

    why: str
    status: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    error: str
    status: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Send the same again. `after`: seconds that the server asked for, None for the type's backoff."""

    error: str
    status: int = 0
    reason: str = ""
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Verify:
    """The effect is unknown: read the object before anything else."""

    error: str


@dataclass(frozen=True, slots=True)
class Rebase:
    """Write again on top of `object`, or on what informers brought meanwhile, or on a fresh read."""

    error: str
    object: KubeObject | None = None
    status: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Next:
    """This request of several succeeded; go on with the next one."""


@dataclass(frozen=True, slots=True)
class Resend:
    """Send `call` in place of what was sent."""

    call: Call
    error: str = ""


Verdict: TypeAlias = Done | Skip | Fail | Retry | Verify | Rebase | Next | Resend
