"""Deciding without asynchronous API calls: what a scheduling cycle writes is awaited before the next pod.

With the gate SchedulerAsyncAPICalls off, a cycle's status patches, nominations and evictions have ended
before another pod is popped, as in kube-scheduler without the gate; with SchedulerAsyncPreemption off that
holds for evictions. Binding cycles stay concurrent. Decisions are the same either way, only their order in
time is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pilotage.calls.queue import CallQueue
from pilotage.framework.gates import ASYNC_API_CALLS, ASYNC_PREEMPTION

EVICTION, STATUS_PATCH = "pod_eviction", "pod_status_patch"


class Awaited:
    """Which calls the next pod waits for."""

    def __init__(self, calls: CallQueue, gates: Mapping[str, bool]) -> None:
        self._calls = calls
        self._awaits_patches = not gates.get(ASYNC_API_CALLS, True)
        self._awaits_evictions = self._awaits_patches or not gates.get(ASYNC_PREEMPTION, True)
        self._before: frozenset[Hashable] = frozenset()
        # Objects whose status patch the last cycle wished for. A patch that was on its way before, for an
        # event or throttled, is nobody's to wait for.
        self._patched: frozenset[Hashable] = frozenset()

    def begin(self) -> None:
        """A cycle is about to run."""
        if self._awaits_patches:
            self._before = self._pending(STATUS_PATCH)

    def end(self) -> None:
        """It has run."""
        if self._awaits_patches:
            self._patched = self._pending(STATUS_PATCH) - self._before

    @property
    def is_open(self) -> bool:
        """Whether a call must end before the next pod is popped."""
        if self._awaits_evictions and self._pending(EVICTION):
            return True
        if self._patched:
            self._patched &= self._pending(STATUS_PATCH)
        return bool(self._patched)

    def _pending(self, call_type: str) -> frozenset[Hashable]:
        return self._calls.keys_of(call_type)
