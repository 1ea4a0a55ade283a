"""PrioritySort and DefaultBinder."""

from __future__ import annotations

from pilotage.framework.calls import BindPod, ObjectKey
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import QueuedPod
from pilotage.plugins.default_binder import DefaultBinder
from pilotage.plugins.priority_sort import PrioritySort
from statekit import pod


def test_priority_then_time_then_arrival() -> None:
    queued = [
        QueuedPod(pod("late", priority=5), timestamp=9.0, sequence=1),
        QueuedPod(pod("low"), timestamp=1.0, sequence=2),
        QueuedPod(pod("early", priority=5), timestamp=3.0, sequence=3),
        QueuedPod(pod("below", priority=-7), timestamp=0.0, sequence=4),
        QueuedPod(pod("tie", priority=5), timestamp=3.0, sequence=5),
    ]
    order = sorted(queued, key=PrioritySort().sort_key)
    assert [item.pod.name for item in order] == ["early", "tie", "late", "low", "below"]


def test_binding_is_a_call_on_the_pod() -> None:
    info = pod("p", namespace="a", uid="u")
    assert DefaultBinder().bind(CycleState(), info, "n1") == BindPod(ObjectKey("pods", "a", "p", "u"), "n1")
