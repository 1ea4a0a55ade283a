"""Two configurations on one cluster: what is compared, and how it is told."""

from __future__ import annotations

from typing import Any

import click

from explainkit import NOW, on
from pilotage.framework.settings import Settings
from pilotage.frontends.diff.compare import Comparison, compare, is_scheduled_by, pending_pods
from pilotage.frontends.diff.report import document, lines
from pilotage.frontends.snapshot.loading import load
from pilotage.frontends.snapshot.objects import snapshot_of_trees
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_config
from pilotage.state.podinfo import PodInfo
from pilotage.testing import builders as b

REGISTRY = default_registry()
FILES = ("a.yaml", "b.yaml")
SPOT = {"key": "spot", "value": "a", "effect": "NoSchedule"}
MOST = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}


def settings(**profile: Any) -> Settings:
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }
    return load_config(tree, REGISTRY).settings


def without(*plugins: str) -> dict[str, Any]:
    return {"multiPoint": {"disabled": [{"name": name} for name in plugins]}}


def compared(
    trees: list[dict[str, Any]], a: Settings, other: Settings, *, all_pods: bool = False
) -> Comparison:
    snapshot = snapshot_of_trees(trees, "test")
    pods = snapshot.pods()
    lifted = {pod.metadata.uid for pod in pods} if all_pods else ()
    engines = (load(snapshot, a, REGISTRY, NOW, lifted), load(snapshot, other, REGISTRY, NOW, lifted))
    return compare(engines, pending_pods(engines), in_sequence=all_pods)


def test_equal_configurations_have_no_difference() -> None:
    trees = [b.node("n1"), b.node("n2"), *(b.pod(f"p{i}", cpu=1) for i in range(5))]
    found = compared(trees, settings(), settings())
    assert (found.decided, found.differences) == (5, [])
    assert lines(found, FILES, in_sequence=False)[-1] == "5 pods decided, no difference"


def test_feasible_nodes_and_messages() -> None:
    trees = [b.node("n1", taints=[SPOT]), b.pod("p"), on(b.pod("there"), "n1")]
    found = compared(trees, settings(), settings(plugins=without("TaintToleration")))
    [one] = found.differences
    assert (one.name, one.only_a, one.only_b, one.nodes) == ("p", (), ("n1",), ("", "n1"))
    assert one.messages is not None
    assert one.messages[0].startswith("0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    assert one.messages[1] == ""
    text = "\n".join(lines(found, FILES, in_sequence=False))
    assert "goes to  none -> n1" in text
    assert "fits     only with B: n1" in text
    assert text.endswith("1 pod decided, 1 differently: node 1, feasible nodes 1, message 1")


def test_winners_and_scores_by_plugin() -> None:
    trees = [
        b.node("n1"),
        b.node("n2"),
        on(b.pod("there", cpu=2), "n1"),
        b.pod("p", cpu=1),
        b.pod("q", cpu=1),
    ]
    found = compared(trees, settings(), settings(pluginConfig=[MOST]))
    assert [one.winners for one in found.differences] == [(("n2",), ("n1",))] * 2
    [change] = found.differences[0].scores
    assert change.plugin == "NodeResourcesFit"
    assert set(change.nodes) == {"n1", "n2"}
    assert change.nodes["n1"][0] < change.nodes["n2"][0]
    assert change.nodes["n1"][1] > change.nodes["n2"][1]
    text = click.unstyle("\n".join(lines(found, FILES, in_sequence=False)))
    assert "default/p, default/q" in text.splitlines()  # alike, told once
    tree = document(found, FILES)["pods"][0]
    assert tree["winners"] == {"a": ["n2"], "b": ["n1"]}
    assert set(tree["scores"]["NodeResourcesFit"]) == {"n1", "n2"}


def test_a_plugin_of_one_side_counts_as_nothing_on_the_other() -> None:
    trees = [b.node("n1"), b.node("n2"), b.pod("p", cpu=1)]
    found = compared(trees, settings(), settings(plugins=without("NodeResourcesBalancedAllocation")))
    [one] = found.differences
    assert one.winners is None
    [change] = one.scores
    assert change.plugin == "NodeResourcesBalancedAllocation"
    assert all(before and not after for before, after in change.nodes.values())


def test_preemption() -> None:
    trees = [
        b.priority_class(100),
        b.node("n1"),
        on(b.pod("low", cpu=4), "n1"),
        b.pod("p", cpu=4, priority=100),
    ]
    found = compared(trees, settings(), settings(plugins=without("DefaultPreemption")))
    [one] = found.differences
    assert one.preemption == (("n1", "default/low"), ("",))
    assert "preempts  A: default/low on n1" in "\n".join(lines(found, FILES, in_sequence=False))


def test_a_pod_without_a_profile_on_one_side() -> None:
    other = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "second"}],
        },
        REGISTRY,
    ).settings
    found = compared([b.node("n1"), b.pod("p")], settings(), other)
    [one] = found.differences
    assert one.messages == ("", 'not decided: there is no profile "default-scheduler"')


def test_all_pods_are_placed_one_after_another_on_the_emptied_cluster() -> None:
    nodes = [b.node(f"n{i}") for i in range(4)]
    pods = [on(b.pod(f"p{i}", cpu=1), "n0") for i in range(8)]
    found = compared([*nodes, *pods], settings(), settings(pluginConfig=[MOST]), all_pods=True)
    assert (found.decided, found.placed) == (8, (8, 8))
    assert found.used == (4, 2)
    assert lines(found, FILES, in_sequence=True)[-2:] == [
        "A places 8 pods on 4 nodes",
        "B places 8 pods on 2 nodes",
    ]


def test_pods_that_no_scheduler_placed_stay() -> None:
    mirror = b.pod("static", annotations={"kubernetes.io/config.mirror": "x"})
    [pod] = snapshot_of_trees([mirror], "test").pods()
    assert not is_scheduled_by({"default-scheduler"}, PodInfo(pod))


def test_gated_pods_are_not_decided() -> None:
    gated = b.pod("g", schedulingGates=[{"name": "a"}])
    found = compared([b.node("n1"), gated], settings(), settings(plugins=without("SchedulingGates")))
    [one] = found.differences
    assert one.messages is not None
    assert one.messages[0] == "not decided: waiting for scheduling gates: [a] (SchedulingGates)"
