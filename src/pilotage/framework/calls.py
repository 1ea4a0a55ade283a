"""Call values: what the engine and plugins ask to have written, and how such a wish ended (KEP-5229).

A `Call` is a frozen value that names its type and the object it writes. How a type merges, when it is a
no-op, how it is sent and which lane it takes is the business of the one implementation registered for
`call_type` (`pilotage.calls`); whoever makes a wish does not know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pilotage.api.meta import Condition


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The object that a call writes: `resource` is the plural, with its group for non-core kinds."""

    resource: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Call:
    """Base of all call values. `call_type` is the registry key and the metric label."""

    key: ObjectKey

    @property
    def call_type(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class BindPod(Call):
    """POST pods/binding. The node must still be as decided: never rebased."""

    node: str

    @property
    def call_type(self) -> str:
        return "pod_binding"


@dataclass(frozen=True, slots=True)
class PatchPodStatus(Call):
    """Conditions and nomination that the scheduler owns; newest condition of a type wins.

    `nominated_node`: None leaves the nomination alone, "" clears it. `precedes_eviction`: the nomination is
    a preemptor's, so it travels in the lane of the evictions that follow it.
    """

    conditions: tuple[Condition, ...] = ()
    nominated_node: str | None = None
    precedes_eviction: bool = False

    @property
    def call_type(self) -> str:
        return "pod_status_patch"


@dataclass(frozen=True, slots=True)
class RecordEvent(Call):
    """An events.k8s.io/v1 event regarding the pod `key` names. Equal (reason, note) fold into a series."""

    type: str  # Normal, Warning
    reason: str
    action: str
    note: str
    reporting_controller: str = "default-scheduler"
    related: ObjectKey | None = None

    @property
    def call_type(self) -> str:
        return "event"


@dataclass(frozen=True, slots=True)
class EvictPod(Call):
    """Removes a preemption victim: first its DisruptionTarget condition, then the delete. Supersedes all.

    `message` is the condition's; its reason is PreemptionByScheduler. NotFound at either request is done.
    """

    message: str
    preemptor: ObjectKey | None = None  # whose nomination goes first

    @property
    def call_type(self) -> str:
        return "pod_eviction"


class CallResult(Enum):
    DONE = "done"
    SKIPPED = "skipped"  # nothing to change, or less relevant than what is pending
    OVERWRITTEN = "overwritten"  # a newer or more relevant call took over
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"  # low lane over its cap or age


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended. `status` is the HTTP status of a failed one (0 when there was no answer)."""

    result: CallResult
    error: str = ""
    status: int = 0
    reason: str = ""  # Kubernetes Status reason, e.g. Conflict

    @property
    def is_ok(self) -> bool:
        return self.result in (CallResult.DONE, CallResult.SKIPPED, CallResult.OVERWRITTEN)
