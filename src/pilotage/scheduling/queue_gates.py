"""PreEnqueue as the queue runs it: may a pod enter, and if not, who refuses and why.

Laws: the plugin that gated a pod last time is asked first; a plugin that raises gates its pod, the queue goes
on; whoever wants to tell users of it finds every change in `drain_news`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pilotage.framework.guard import PluginFailedError, guarded_status
from pilotage.framework.status import Status
from pilotage.scheduling.queue_record import QueueProfile, Record
from pilotage.scheduling.transitions import Position


@dataclass(frozen=True, slots=True)
class GateNews:
    """A pod is gated by another plugin, or for another reason, than before. `was_gated`: by any."""

    uid: str
    was_gated: bool


class Gates:
    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._news: list[GateNews] = []

    def refuse(self, record: Record) -> bool:
        """Runs PreEnqueue; the record remembers who refused and why."""
        last = record.gating_plugin
        profile = self._profiles[record.profile]
        plugins = profile.resize_pre_enqueue if record.pod.is_bound else profile.pre_enqueue
        for name, pre_enqueue in sorted(plugins, key=lambda plugin: plugin[0] != last) if last else plugins:
            try:
                status = guarded_status(name, "PreEnqueue", pre_enqueue, record.pod)
            except PluginFailedError as fault:  # its pod is gated, the queue goes on
                status = fault.status
            if not status.is_success:
                self._take(record, name, status.by(name))
                return True
        record.gating_plugin, record.gate_status = "", Status()
        return False

    def _take(self, record: Record, plugin: str, status: Status) -> None:
        if (plugin, status.message) != (record.gating_plugin, record.gate_status.message):
            self._news.append(GateNews(record.pod.uid, record.position is Position.GATED))
        record.gating_plugin, record.gate_status = plugin, status
        record.unschedulable_plugins.add(plugin)

    def drain_news(self) -> list[GateNews]:
        """Changes since the last call, in order."""
        news, self._news = self._news, []
        return news
