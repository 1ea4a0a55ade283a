"""What explain tells of a resize: why it waits, with numbers, who goes for it, or why nobody can (R13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explainkit import NOW, on
from pilotage.frontends.explain.resize import Resize, explain_resize
from pilotage.frontends.explain.resizetext import resize_lines
from pilotage.frontends.snapshot.loading import load
from pilotage.frontends.snapshot.objects import snapshot_of_trees
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings
from pilotage.testing import builders as b

Tree = dict[str, Any]
GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def deferred(*conditions: Tree, wants: int = 6, reason: str = "Deferred", **more: Any) -> Tree:
    """R of priority 1000 on n1, which has 4 CPU."""
    tree = on(b.pod("r", cpu=wants, **more), "n1")
    tree["spec"]["priority"] = 1000
    tree["metadata"] |= {"uid": "uid-r", "resourceVersion": "1"}
    container = {"name": "main", "allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "4"}}}
    pending = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "no room"}
    pending["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    tree["status"] |= {"containerStatuses": [container], "conditions": [pending, *conditions]}
    return tree


def victim(name: str, priority: int = 0, **meta: Any) -> Tree:
    tree = on(b.pod(name, cpu=3), "n1")
    tree["spec"]["priority"] = priority
    tree["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1", **meta}
    return tree


def resize_of(*trees: Tree, gates: dict[str, bool] | None = None) -> Resize:
    snapshot = snapshot_of_trees([b.node("n1", cpu=10), *trees], "test")
    registry = default_registry()
    settings = default_settings(registry)
    settings = replace(settings, gates={**settings.gates, **(gates or {})})
    pod = snapshot.pod("default", "r")
    assert pod is not None
    found = explain_resize(load(snapshot, settings, registry, NOW), pod, snapshot.events)
    assert found is not None
    return found


def text(found: Resize) -> str:
    return "\n".join(resize_lines(found, 120))


def test_who_would_go_and_the_numbers() -> None:
    found = resize_of(deferred(), victim("v1"), victim("v2", priority=5))
    [balance] = found.balances
    assert (balance.wants, balance.has, balance.others, balance.free, balance.short) == (
        6000,
        4000,
        6000,
        4000,
        2000,
    )
    assert [one.name for one in found.victims] == ["v1"]
    shown = text(found)
    assert "Resize on n1: Deferred since 2026-01-01T00:00:00Z" in shown
    assert "wants 6000m cpu, has 4000m; 4000m of 10000m are free for it, 2000m short" in shown
    assert "it would preempt 1 pod: default/v1 (priority 0)" in shown
    assert "no room" in shown


def test_it_fits() -> None:
    found = resize_of(deferred(), victim("v1"))
    assert found.outcome == "fits"
    assert "it fits now; the kubelet has to carry it out" in text(found)


def test_nobody_can_make_room() -> None:
    found = resize_of(deferred(), victim("v1", priority=1000), victim("v2", priority=2000))
    assert found.outcome == "rejected"
    assert "nobody can make room: node n1: Insufficient cpu; preemption: No preemption victims" in text(found)


def test_terminating_pods_make_room_and_events_name_the_victims() -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "v1"}
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": about,
        "reason": "Preempted",
        "message": "Preempted by pod uid-r on node n1",
    }
    going = victim("v1", deletionTimestamp="2026-01-01T00:00:10Z")
    found = resize_of(deferred(), going, victim("v2"), event)
    assert (found.outcome, found.leaving, found.preempted) == ("waits", ("default/v1",), ("default/v1",))
    assert "pods that are leaving make room" in text(found)


@pytest.mark.parametrize(
    ("tree", "gates", "why"),
    [
        (deferred(reason="Infeasible"), {}, "only deferred resizes wait for room"),
        (
            deferred(
                {
                    "type": "PodResizePreemptionDisabled",
                    "status": "True",
                    "reason": "PreemptionDisabledByNodePolicy",
                }
            ),
            {},
            "condition PodResizePreemptionDisabled is True (PreemptionDisabledByNodePolicy)",
        ),
        (deferred(schedulerName="other"), {}, 'schedulerName "other" is no profile of this configuration'),
        (deferred(), {GATE: False}, "preemption for resizes is switched off"),
    ],
)
def test_why_the_scheduler_takes_no_part(tree: Tree, gates: dict[str, bool], why: str) -> None:
    found = resize_of(tree, victim("v1"), victim("v2"), gates=gates)
    assert found.outcome == "not in the queue"
    assert f"the scheduler takes no part: {why}" in " ".join(text(found).split())
    assert not found.victims


def test_a_pod_without_a_resize_has_no_such_section() -> None:
    snapshot = snapshot_of_trees([b.node("n1"), victim("r")], "test")
    registry = default_registry()
    pod = snapshot.pod("default", "r")
    assert pod is not None
    assert explain_resize(load(snapshot, default_settings(registry), registry, NOW), pod, ()) is None
    assert resize_lines(None, 80) == []
