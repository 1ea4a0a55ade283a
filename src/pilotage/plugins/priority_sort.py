"""PrioritySort: higher priority first, then who has waited longer in the queue."""

from __future__ import annotations

from pilotage.framework.plugin import Plugin, QueuedPod


class PrioritySort(Plugin):
    def sort_key(self, queued: QueuedPod) -> tuple[int, float, int]:
        return (-queued.pod.priority, queued.timestamp, queued.sequence)
