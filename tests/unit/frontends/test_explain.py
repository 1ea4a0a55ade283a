"""An explanation as a whole: verdicts, what-ifs of several changes, preemption, the text and the JSON."""

from __future__ import annotations

from typing import Any

import click
import msgspec
import pytest

from explainkit import changes, details, explained, on, rejection
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import NodeRef, Plugin
from pilotage.framework.status import Status, unschedulable
from pilotage.frontends.explain.amounts import amount, amounts, names
from pilotage.frontends.explain.analysis import UnknownProfileError
from pilotage.frontends.explain.document import document
from pilotage.frontends.explain.grouping import groups
from pilotage.frontends.explain.model import Explanation
from pilotage.frontends.explain.text import lines
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_config
from pilotage.state.podinfo import PodInfo
from pilotage.testing import builders as b

SPOT = {"key": "spot", "value": "a", "effect": "NoSchedule"}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences in one line, whatever terminal the tests run in."""
    monkeypatch.setenv("COLUMNS", "120")


def text(found: Explanation, **how: Any) -> str:
    return click.unstyle("\n".join(lines(found, **how)))


def g1() -> list[dict[str, Any]]:
    """Field case G1: 3 tainted nodes, 2 with half a CPU free, 1 with the wrong label."""
    ssd = {"disk": "ssd"}
    nodes = [b.node(f"n{i}", labels=ssd, taints=[SPOT]) for i in (1, 2, 3)]
    nodes += [b.node(f"n{i}", labels=ssd) for i in (4, 5)]
    nodes += [b.node("n6", labels={"disk": "hdd"})]
    fillers = [on(b.pod(f"fill-{i}", cpu="3500m"), f"n{i}") for i in (4, 5)]
    return [*nodes, *fillers, b.pod("web", cpu=1, node_selector=ssd)]


# The verdict


def test_g1_every_node_with_its_first_failing_filter() -> None:
    found = explained(g1(), "web")
    by_plugin = {node: rejection(found, node).plugin for node in ("n1", "n2", "n3", "n4", "n5", "n6")}
    assert list(by_plugin.values()) == [*["TaintToleration"] * 3, *["NodeResourcesFit"] * 2, "NodeAffinity"]
    assert details(found)["n4"] == "needs 1000m cpu, 500m free of 4000m"
    assert [rejection(found, node).may_preempt for node in ("n1", "n4", "n6")] == [False, True, False]
    assert found.message.startswith(
        "0/6 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu, "
        "3 node(s) had untolerated taint(s)."
    )
    assert [(group.plugin, group.size) for group in groups(found.rejections)] == [
        ("TaintToleration", 3),
        ("NodeResourcesFit", 2),
        ("NodeAffinity", 1),
    ]
    assert changes(found) == {
        ("but for taint spot=a:NoSchedule",): ("n1", "n2", "n3"),
        ("with 500m less cpu (500m instead of 1000m)",): ("n4", "n5"),
        ("but for nodeSelector disk=ssd",): ("n6",),
    }
    assert {waker.plugin for waker in found.wakers} == {"TaintToleration", "NodeResourcesFit", "NodeAffinity"}


def test_a_pod_that_can_be_scheduled_has_its_scores() -> None:
    found = explained([b.node("n1"), b.node("n2"), on(b.pod("a", cpu=2), "n1"), b.pod("p", cpu=1)], "p")
    assert (found.node, found.winners, found.is_schedulable) == ("n2", ("n2",), True)
    first, second = found.candidates
    assert (first.node, first.is_winner, second.node, second.is_winner) == ("n2", True, "n1", False)
    assert first.total == sum(first.scores.values()) > second.total
    assert first.scores["TaintToleration"] == 300
    assert found.what_ifs == ()
    assert "Schedulable now: 2 of 2 nodes can take it; n2 is the best." in text(found)


def test_e10_the_numbers_of_the_scores_are_told_apart() -> None:
    """Containers without requests count in one score and not in the other."""
    nodes = [b.node("n1", cpu=4, memory="8Gi"), b.node("n2", cpu=4, memory="8Gi")]
    idle = [on(b.pod(f"idle-{i}"), "n1") for i in range(30)]
    found = explained([*nodes, *idle, b.pod("p", cpu=1, memory="2Gi")], "p")
    scores = {candidate.node: candidate.scores for candidate in found.candidates}
    assert (scores["n1"]["NodeResourcesFit"], scores["n2"]["NodeResourcesFit"]) == (0, 75)
    assert len({s["NodeResourcesBalancedAllocation"] for s in scores.values()}) == 1
    of_n1 = next(c.details for c in found.candidates if c.node == "n1")
    assert of_n1["NodeResourcesFit"].startswith("cpu 4000m of 4000m with the pod")
    assert of_n1["NodeResourcesBalancedAllocation"].startswith("cpu 1000m of 4000m with the pod")


def test_a_bound_pod_is_decided_without_itself() -> None:
    """Its own port and its own cpu do not stand in its way."""
    pod = on(b.pod("p", cpu=4), "n1")
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    found = explained([b.node("n1"), b.node("n2", unschedulable=True), pod], "p")
    assert (found.is_bound, found.node, details(found).keys()) == (True, "n1", {"n2"})
    assert "it would stay on n1: n1 is the only node of 2 that can take it." in text(found)


def test_a_bound_pod_whose_node_would_not_do_any_more() -> None:
    found = explained([b.node("n1", taints=[SPOT]), b.node("n2"), on(b.pod("p"), "n1")], "p")
    assert "it would leave n1: n2 is the only node of 2 that can take it. n1 could not take it any more." in (
        text(found)
    )


def test_a_gated_pod() -> None:
    found = explained([b.node("n1"), b.pod("p", schedulingGates=[{"name": "a"}, {"name": "c"}])], "p")
    assert found.pod.gates == ("a", "c")
    assert (found.gate.plugin, found.is_schedulable) == ("SchedulingGates", False)
    assert document(found, None)["verdict"] == "gated"
    assert "Not in the queue: waiting for scheduling gates: [a c] (SchedulingGates)." in text(found)
    assert "Without that it would go to n1." in text(found)


def test_no_nodes() -> None:
    found = explained([b.pod("p")], "p")
    assert (found.n_nodes, found.message) == (0, "no nodes available to schedule pods")
    assert "There are no nodes: no nodes available to schedule pods" in text(found)
    assert found.notes == ("there are no nodes in it",)


def test_the_nominated_node_is_taken_whatever_the_scores() -> None:
    pod = b.pod("p", cpu=1)
    pod["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    found = explained([b.node("n1"), b.node("n2"), on(b.pod("a", cpu=2), "n1"), pod], "p")
    assert (found.node, found.is_nominated, found.winners) == ("n1", True, ("n1",))
    assert "It goes to n1, to which it is nominated" in text(found)


def test_a_pod_of_another_scheduler() -> None:
    with pytest.raises(UnknownProfileError, match=r'"other", no profile .*default-scheduler'):
        explained([b.node("n1"), b.pod("p", schedulerName="other")], "p")


def test_a_request_that_is_no_quantity() -> None:
    found = explained([b.node("n1"), b.pod("p", cpu="much")], "p")
    assert '"much"' in details(found)["n1"] or "much" in found.message
    assert found.what_ifs == []


# What would have to change


def test_several_changes_together_where_one_is_not_enough() -> None:
    trees = [b.node("n1", taints=[SPOT], unschedulable=True), b.pod("p")]
    assert changes(explained(trees, "p")) == {
        ("but for the cordon", "but for taint spot=a:NoSchedule"): ("n1",)
    }


def test_three_changes_and_no_more() -> None:
    trees = [b.node("n1", taints=[SPOT], unschedulable=True, cpu=1), b.pod("p", cpu=2)]
    [(three, nodes)] = changes(explained(trees, "p")).items()
    assert nodes == ("n1",)
    assert three[2] == "with 1000m less cpu (1000m instead of 2000m)"
    trees[1]["spec"]["nodeSelector"] = {"disk": "ssd"}
    found = explained(trees, "p")
    assert changes(found) == {}
    assert "nothing was found: no 3 changes of the pod are enough for any node" in text(found)


def test_preemption_is_told_with_its_victims() -> None:
    low = [on(b.pod(f"low-{i}", cpu=2), "n1") for i in (1, 2)]
    trees = [b.priority_class(100), b.node("n1"), *low, b.pod("p", cpu=4, priority=100)]
    found = explained(trees, "p")
    assert found.preemption is not None
    assert found.preemption.node == "n1"
    assert sorted(victim.name for victim in found.preemption.victims) == ["low-1", "low-2"]
    assert "it would preempt 2 pods on n1: default/low-" in text(found)


def test_all_that_keeps_a_pod_off_one_node() -> None:
    trees = [b.node("n1", taints=[SPOT], cpu=1), b.pod("p", cpu=2, node_selector={"disk": "ssd"})]
    found = explained(trees, "p", closely=("n1",))
    [one] = found.rejections
    assert (one.plugin, [other.plugin for other in one.others]) == (
        "TaintToleration",
        ["NodeAffinity", "NodeResourcesFit"],
    )
    assert one.others[1].detail.text == "needs 2000m cpu, 1000m free of 1000m, too small even when empty"
    shown = text(found, nodes=("n1",))
    assert "first  TaintToleration" in shown
    assert "then   NodeResourcesFit: Insufficient cpu, preemption cannot help" in shown


# Plugins of others


class Licence(Plugin):
    """Per node, with words of its own."""

    def filter(self, _cycle: CycleState, _pod: PodInfo, node: NodeRef) -> Status:
        return unschedulable("no licence left")

    def explain(self, _cycle: CycleState, pod: PodInfo, node: NodeRef) -> str:
        if pod.name == "broken":
            raise LookupError("no meter")
        return f"{node.name} has 0 of 3 licences left"


def with_licence(trees: list[dict[str, Any]], name: str) -> Explanation:
    registry = default_registry()
    registry.register("Licence", Licence)
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Licence"}]}}}],
    }
    return explained(trees, name, registry=registry, settings=load_config(tree, registry).settings)


def test_a_plugin_may_explain_itself() -> None:
    found = with_licence([b.node("n1"), b.node("n2"), b.pod("p")], "p")
    assert details(found) == {"n1": "n1 has 0 of 3 licences left", "n2": "n2 has 0 of 3 licences left"}
    assert found.rejections[0].reasons == ("no licence left",)


def test_a_plugin_that_fails_to_explain_itself() -> None:
    found = with_licence([b.node("n1"), b.pod("broken")], "broken")
    assert "LookupError: no meter" in details(found)["n1"]


# Text and JSON


def test_thousands_of_nodes_are_told_in_a_few_lines_of_at_most_120_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [b.node(f"node-{i}", cpu=1 + i % 7, taints=[SPOT] if i % 3 == 0 else ()) for i in range(300)]
    found = explained([*nodes, b.pod("p", cpu=10)], "p")
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = text(found).splitlines()
        assert len(shown) < 30
        assert max(map(len, shown)) <= columns
    assert "  200  Insufficient cpu (NodeResourcesFit), preemption cannot help" in shown
    assert "needs 10000m cpu, 1000m to 7000m free of 1000m to 7000m" in text(found)
    assert text(found, is_complete=True).count("node-") > 300


def test_the_condition_is_not_repeated() -> None:
    first = explained(g1(), "web")
    trees = g1()
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": first.message,
    }
    trees[-1]["status"] = {"phase": "Pending", "conditions": [condition]}
    found = explained(trees, "web")
    assert "Now as before no node of 6 can take it." in text(found)


def test_the_document_has_every_node() -> None:
    tree = document(explained(g1(), "web"), None)
    assert (tree["schema"], tree["verdict"]) == ("pilotage.dev/explain/v1", "unschedulable")
    assert [one["node"] for one in tree["nodes"]["list"]] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    of_n4 = tree["nodes"]["list"][3]
    assert of_n4["numbers"] == {
        "resources": [{"resource": "cpu", "needs": 1000, "used": 3500, "free": 500, "of": 4000}]
    }
    assert of_n4["preemptionMayHelp"] is True
    assert tree["whatIf"][1] == {
        "changes": [
            {"plugin": "NodeResourcesFit", "text": "with 500m less cpu (500m instead of 1000m)"},
        ],
        "nodes": ["n4", "n5"],
    }
    assert document(explained(g1(), "web"), None, only=("n6",))["nodes"]["list"][0]["node"] == "n6"


def test_the_document_is_plain_json() -> None:
    trees = [b.priority_class(100), *g1(), b.pod("vip", cpu=4, priority=100, affinity={})]
    for name in ("web", "fill-4", "vip"):
        tree = document(explained(trees, name, closely=("n1", "n6")), {"queue": "active"})
        assert msgspec.json.decode(msgspec.json.encode(tree)) == tree


def test_the_queue_of_a_running_scheduler_is_shown() -> None:
    queue = {
        "queue": "unschedulable",
        "attempts": 4,
        "nextRetry": "2026-01-01T00:05:00.000Z",
        "waitsOn": ["NodeResourcesFit"],
        "story": [{"time": "2026-01-01T00:00:00.000Z", "text": "queue active by PodAdd"}],
    }
    shown = text(explained(g1(), "web"), queue=queue)
    assert "queue     unschedulable, 4 attempts, next retry at the latest 2026-01-01T00:05:00.000Z" in shown
    assert "story     2026-01-01T00:00:00.000Z queue active by PodAdd" in shown


@pytest.mark.parametrize(
    ("resource", "number", "shown"),
    [
        ("cpu", 1500, "1500m"),
        ("memory", 1 << 30, "1Gi"),
        ("memory", 3 << 29, "1.5Gi"),
        ("memory", (1 << 30) + 1024, "1048577Ki"),
        ("memory", 1000, "1000"),
        ("memory", -(1 << 20), "-1Mi"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 3, "3"),
        ("memory", 0, "0"),
    ],
)
def test_amounts(resource: str, number: int, shown: str) -> None:
    assert amount(resource, number) == shown


def test_amounts_side_by_side_are_rounded_but_never_into_equals() -> None:
    assert amounts("memory", [1 << 34, 32871232 << 10]) == ["16Gi", "31.35Gi"]
    assert amounts("memory", [1 << 30, (1 << 30) + 1024]) == ["1Gi", "1048577Ki"]
    assert amounts("memory", [1 << 30, 1 << 30]) == ["1Gi", "1Gi"]


def test_names_are_cut() -> None:
    assert names(["a", "b"]) == "a, b"
    assert names([f"n{i}" for i in range(5000)]) == "n0, n1, n2 and 4,997 more"
