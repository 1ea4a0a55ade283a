"""What the engine wants a pod's status to say: the PodScheduled condition and the nomination.

Laws: nothing is submitted that the pod shows already, unless something else was submitted since and may
still be on its way; conditions keep their transition time while their status stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.meta import Condition
from pilotage.framework.calls import ObjectKey, PatchPodStatus
from pilotage.scheduling.outbox import Outbox
from pilotage.scheduling.texts import rfc3339
from pilotage.state.podinfo import PodInfo

POD_SCHEDULED = "PodScheduled"


def pod_key(pod: PodInfo) -> ObjectKey:
    return ObjectKey("pods", pod.namespace, pod.name, pod.uid)


@dataclass(slots=True)
class _Wish:
    """What was last submitted for a pod; None where nothing was."""

    condition: tuple[str, str] | None = None  # reason, message
    nominated: str | None = None


class StatusWriter:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        # UIDs of pending pods that something was submitted for.
        self._wishes: dict[str, _Wish] = {}

    def not_scheduled(
        self,
        newest: PodInfo,
        reason: str,
        message: str,
        nominated: str | None,
        *,
        precedes_eviction: bool = False,
    ) -> None:
        """Sets PodScheduled=False; `nominated`: None leaves the nomination alone, "" clears it."""
        condition = self._condition(newest, reason, message)
        node = self._nomination(newest, nominated)
        if condition is None and node is None:
            return
        conditions = () if condition is None else (condition,)
        self._outbox.submit(PatchPodStatus(pod_key(newest), conditions, node, precedes_eviction))

    def expect(self, pod: PodInfo, node: str) -> None:
        """Nominates the node that the pod is on its way to."""
        if self._nomination(pod, node) is not None:
            self._outbox.submit(PatchPodStatus(pod_key(pod), nominated_node=node))

    def give_up_nomination(self, newest: PodInfo) -> None:
        if self._nomination(newest, "") is not None:
            self._outbox.submit(PatchPodStatus(pod_key(newest), nominated_node=""))

    def not_readable(self, key: ObjectKey, message: str) -> None:
        """The same for a pod of which nothing but its key is known."""
        since = rfc3339(self._outbox.now)
        condition = Condition(POD_SCHEDULED, "False", "SchedulerError", message, last_transition_time=since)
        self._outbox.submit(PatchPodStatus(key, (condition,)))

    def _condition(self, newest: PodInfo, reason: str, message: str) -> Condition | None:
        shown = newest.pod.condition(POD_SCHEDULED)
        was_false = shown is not None and shown.status == "False"
        wish = self._wishes.setdefault(newest.uid, _Wish())
        wanted = (reason, message)
        is_shown = shown is not None and was_false and (shown.reason or "", shown.message or "") == wanted
        if is_shown and wish.condition in (None, wanted):
            return None
        wish.condition = wanted
        return Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=reason,
            message=message,
            observed_generation=newest.pod.metadata.generation or None,
            last_transition_time=(shown.last_transition_time if shown is not None and was_false else None)
            or rfc3339(self._outbox.now),
        )

    def _nomination(self, newest: PodInfo, node: str | None) -> str | None:
        if node is None:
            return None
        wish = self._wishes.setdefault(newest.uid, _Wish())
        if newest.pod.status.nominated_node_name == node and wish.nominated in (None, node):
            return None
        wish.nominated = node
        return node

    def forget(self, uid: str) -> None:
        """The pod is gone or bound."""
        self._wishes.pop(uid, None)

    @property
    def pods(self) -> frozenset[str]:
        return frozenset(self._wishes)
