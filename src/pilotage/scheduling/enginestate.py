"""What the parts of the engine share: cluster, queue, profiles, outbox, stories.

Law: one owner, one thread; a part changes what is its own and tells the others by calling them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numpy.random import Generator

from pilotage.framework.events import ClusterEvent
from pilotage.framework.profile import Profile
from pilotage.framework.settings import Settings
from pilotage.scheduling.cluster_events import pod_deleted
from pilotage.scheduling.outbox import Outbox
from pilotage.scheduling.placements import nominated_to
from pilotage.scheduling.queue import SchedulingQueue
from pilotage.scheduling.stories import Stories
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo


class EngineState:
    def __init__(
        self,
        settings: Settings,
        cluster: ClusterState,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        outbox: Outbox,
        random: Generator,
    ) -> None:
        self.settings = settings
        self.cluster = cluster
        self.profiles = profiles
        self.queue = queue
        self.outbox = outbox
        self.random = random  # breaks ties; seeded
        self.stories = Stories()
        # Pods (UIDs) that cannot be read any more, or never could, with the reason that was reported.
        self.undecodable: dict[str, str] = {}

    @property
    def now(self) -> float:
        return self.outbox.now

    def tell(self, uid: str, text: str) -> None:
        """One line of the story of a pod that is there."""
        if self.cluster.pod(uid) is None and uid not in self.undecodable:
            return
        self.stories.tell(uid, self.outbox.now, self.outbox.stimulus, text)

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Nominates in memory; "" only clears. Room that was kept before may be what others wait for."""
        before = self.cluster.nominations.node_of(pod.uid)
        self.cluster.nominations.add(pod, node)
        if before and before != node:
            self.nomination_given_up(pod, before)

    def nomination_given_up(self, pod: PodInfo, node: str) -> None:
        """To be told after the nomination went; only pods that it could keep out are asked."""

        def was_below(other: PodInfo) -> bool:
            return other.priority <= pod.priority and other.uid != pod.uid

        self.notify(pod_deleted(), nominated_to(pod, node), None, only=was_below, is_ours=True)

    def notify(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        only: Callable[[PodInfo], bool] | None = None,
        *,
        is_ours: bool = False,
    ) -> None:
        """Tells the queue of a cluster event; `is_ours`: a failed attempt gave room back."""
        self.queue.notify(event, old, new, self.outbox.now, only, is_ours=is_ours)

    def report_moves(self) -> None:
        """Turns the queue's moves since the last call into effects and story lines."""
        for moved in self.queue.drain_moves():
            self.outbox.queued(moved.uid, moved.key, moved.queue, moved.event)
            record = self.queue.get(moved.uid)
            text = f"queue {moved.queue} by {moved.event}"
            if record is not None and record.gating_plugin:
                text += f": {record.gate_status.message} ({record.gating_plugin})"
                if not record.gate_status.is_rejection:
                    self.outbox.log("error", f"PreEnqueue of {moved.key}: {record.gate_status.message}")
            self.tell(moved.uid, text)
