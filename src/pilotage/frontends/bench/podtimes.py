"""What a watch showed of the pods, and when. Pure: times come with the events.

Laws: a pod counts as created at the first event that shows it and as bound at the first that shows a node;
a bad pod has its condition as long as the newest event shows PodScheduled=False with reason Unschedulable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pilotage.frontends.bench.objects import BAD, GOOD, ROLE
from pilotage.frontends.bench.scenario import Storm

_REASON = "Unschedulable"


@dataclass(slots=True)
class PodTimes:
    created: dict[str, float] = field(default_factory=dict)
    # A good pod is here exactly when a node was seen in it; `nodes` has the first one.
    bound: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    # A bad pod is here exactly when its newest event shows the condition; the time is when it appeared.
    judged: dict[str, float] = field(default_factory=dict)
    created_bad: int = 0

    def record(self, event: str, pod: Mapping[str, Any], now: float) -> None:
        name, role = pod["metadata"]["name"], pod["metadata"]["labels"].get(ROLE)
        if event == "DELETED" or role not in (GOOD, BAD):
            return
        if name not in self.created:
            self.created[name] = now
            self.created_bad += role == BAD
        if role == GOOD:
            self._good(name, pod, now)
        else:
            self._bad(name, pod, now)

    def _good(self, name: str, pod: Mapping[str, Any], now: float) -> None:
        node = pod["spec"].get("nodeName")
        if node and name not in self.bound:
            self.bound[name], self.nodes[name] = now, node

    def _bad(self, name: str, pod: Mapping[str, Any], now: float) -> None:
        if is_judged(pod):
            self.judged.setdefault(name, now)
        else:
            self.judged.pop(name, None)

    def is_done(self, storm: Storm) -> bool:
        return len(self.bound) >= storm.good and len(self.judged) >= storm.bad

    def bind_seconds(self) -> list[float]:
        """From creation to binding, of every pod that was bound."""
        return [time - self.created[name] for name, time in self.bound.items()]

    def last_condition(self) -> float:
        """Seconds from the first pod's creation to the last condition; 0 without any."""
        return max(self.judged.values()) - min(self.created.values()) if self.judged else 0.0


def is_judged(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == "PodScheduled" and one["status"] == "False" and one.get("reason") == _REASON
        for one in conditions
    )
