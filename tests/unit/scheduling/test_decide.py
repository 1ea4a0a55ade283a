"""The decision: nominated nodes, sampling, ties, askers, and what is put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pilotage.framework.asking import AskFailedError
from pilotage.framework.cycle import CycleState
from pilotage.framework.plugin import NodeRef, Plugin
from pilotage.framework.settings import PluginRef
from pilotage.framework.status import Code, Status, error, pending, unschedulable
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.askers import Screening
from pilotage.scheduling.decide import Deciding, decide, decide_now
from pilotage.scheduling.verdict import Decision, with_post_filter
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from statekit import cluster, decide_with, node, pod, profile


def nodes(number: int, **kwargs: Any) -> list[Any]:
    return [node(f"n{i}", **kwargs) for i in range(number)]


def test_an_empty_cluster() -> None:
    decision = decide_with(cluster(), pod("p"))
    assert decision.message == "no nodes available to schedule pods"
    assert decision.clears_nomination
    assert decision.failures is None
    assert decision.code is Code.UNRESOLVABLE


def test_a_single_feasible_node_is_not_scored() -> None:
    state = cluster(node("n0"), node("n1", unschedulable=True))
    decision = decide_with(state, pod("p"))
    assert (decision.node, decision.scores, decision.evaluated) == ("n0", None, 2)


def test_ties_are_settled_by_the_generator_and_evenly() -> None:
    state = cluster(*nodes(3))
    built, info = profile(state), pod("p")
    rng = np.random.default_rng(1)
    counts = Counter(decide_now(built, state, info, rng).node for _ in range(300))
    assert set(counts) == {"n0", "n1", "n2"}
    assert min(counts.values()) > 60
    again = [decide_now(built, state, info, np.random.default_rng(7)).node for _ in range(3)]
    assert len(set(again)) == 1


def test_deciding_changes_nothing() -> None:
    state = cluster(*nodes(3))
    before = state.nodes.revision.copy()
    decide_with(state, pod("p", {"cpu": 1}))
    assert (state.nodes.revision == before).all()


# Nominations


def test_the_nominated_node_is_taken_alone() -> None:
    state = cluster(node("n0"), node("n1"), pod("load", {"cpu": 3}, on="n1"))
    decision = decide_with(state, pod("p", {"cpu": 1}, status={"nominatedNodeName": "n1"}))
    assert (decision.node, decision.scores, decision.evaluated) == ("n1", None, 0)


def test_a_nominated_node_that_does_not_fit_is_one_of_many() -> None:
    state = cluster(node("n0"), node("n1", unschedulable=True))
    info = pod("p", status={"nominatedNodeName": "n1"})
    assert decide_with(state, info).node == "n0"
    state.delete_node("n0")
    decision = decide_with(state, info)
    assert decision.message == "0/1 nodes are available: 1 node(s) were unschedulable."


def test_nominations_in_memory_precede_what_the_api_shows() -> None:
    state = cluster(node("n0"), node("n1"), node("n2"))
    info = pod("p", status={"nominatedNodeName": "n1"})
    state.nominations.add(info, "n2")
    assert decide_with(state, info).node == "n2"


@pytest.mark.parametrize(("priority", "fits"), [(5, False), (10, False), (11, True)])
def test_room_is_kept_for_nominated_pods_of_equal_or_higher_priority(priority: int, fits: bool) -> None:
    state = cluster(node("n0"))
    state.nominations.add(pod("boss", {"cpu": 3}, priority=10), "n0")
    decision = decide_with(state, pod("p", {"cpu": 2}, priority=priority))
    assert decision.is_scheduled == fits
    if not fits:
        assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_nominated_pod_does_not_stand_in_its_own_way() -> None:
    state = cluster(node("n0"))
    boss = pod("boss", {"cpu": 3}, priority=10)
    state.nominations.add(boss, "n0")
    assert decide_with(state, boss).node == "n0"


def test_both_passes_must_pass() -> None:
    """Affinity to a pod that is only nominated: with it the filters pass, without it they do not."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "boss"}}}
    follower = pod("p", affinity={"podAffinity": {key: [term]}})
    state = cluster(node("n0", labels={"zone": "a"}))
    state.nominations.add(pod("boss", labels={"app": "boss"}, priority=10), "n0")
    decision = decide_with(state, follower)
    text = "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    assert decision.message == text


# Sampling


def test_all_nodes_are_searched_by_default() -> None:
    assert decide_with(cluster(*nodes(300)), pod("p")).evaluated == 300


def test_percentage_limits_the_search_and_the_start_moves_it() -> None:
    state = cluster(*nodes(400))
    built = profile(state, percentage=50)
    deciding = decide(built, state, pod("p"), CycleState(), np.random.default_rng(0), start=300)
    decision = finish(deciding)
    assert (decision.evaluated, decision.rows.size) == (200, 200)
    assert set(decision.rows.tolist()) == {*range(300, 400), *range(100)}


def test_percentage_never_looks_for_fewer_than_a_hundred_and_passes_over_misfits() -> None:
    bad = [node(f"x{i}", unschedulable=True) for i in range(150)]
    decision = decide_with(cluster(*bad, *nodes(150)), pod("p"), percentage=1)
    assert (decision.evaluated, decision.rows.size) == (250, 100)


def test_the_global_percentage_counts_where_the_profile_has_none() -> None:
    state = cluster(*nodes(400))
    for own, expected in ((None, 200), (100, 400)):
        built = profile(state, percentage=own)
        deciding = decide(built, state, pod("p"), CycleState(), np.random.default_rng(0), percentage=50)
        assert finish(deciding).evaluated == expected


# Rejectors


class WaitsForIt(Plugin):
    def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
        return pending("not ready") if node.name == "n0" else unschedulable("busy")


def test_pending_plugins_are_recorded_apart() -> None:
    registry = default_registry()
    registry.register("WaitsForIt", WaitsForIt)
    plugins = (*DEFAULT_MULTIPOINT, PluginRef("WaitsForIt"))
    one = decide_with(cluster(node("n0")), pod("p"), plugins=plugins, registry=registry)
    assert (one.pending_plugins, one.unschedulable_plugins) == ({"WaitsForIt"}, set())
    two = decide_with(cluster(*nodes(2)), pod("p"), plugins=plugins, registry=registry)
    assert (two.pending_plugins, two.unschedulable_plugins) == ({"WaitsForIt"}, {"WaitsForIt"})
    assert two.message == "0/2 nodes are available: 1 busy, 1 not ready."


def test_the_post_filter_text_follows_the_histogram() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    suffix = unschedulable("no new claims to deallocate", "preemption: 0/1 nodes are available")
    assert with_post_filter(message, suffix) == (
        f"{message} no new claims to deallocate, preemption: 0/1 nodes are available"
    )
    assert with_post_filter(message, Status(Code.UNSCHEDULABLE)) == message


# Askers


class FakeAsker:
    name = "oracle"
    label = 'asking "oracle"'
    timeout = 3.0

    def __init__(self, is_ignorable: bool = False) -> None:
        self.is_ignorable = is_ignorable

    def request(self, pod: PodInfo, node_names: Sequence[str]) -> Any | None:
        return list(node_names)

    def screen(self, response: Any, node_names: Sequence[str]) -> Screening:
        if not isinstance(response, Screening):
            raise ValueError("gibberish")
        return response


def ask(state: ClusterState, info: PodInfo, asker: FakeAsker) -> Deciding:
    rng = np.random.default_rng(0)
    return decide(profile(state), state, info, CycleState(), rng, askers=[asker])


def finish(deciding: Deciding, *answers: Any) -> Decision:
    with pytest.raises(StopIteration) as stop:
        drive(deciding, answers)
    decision = stop.value.value
    assert isinstance(decision, Decision)
    return decision


def drive(deciding: Deciding, answers: Sequence[Any]) -> None:
    next(deciding)
    for answer in answers:
        if isinstance(answer, Exception):
            deciding.throw(answer)
        else:
            deciding.send(answer)


def test_an_asker_narrows_the_nodes() -> None:
    state = cluster(*nodes(3))
    deciding = ask(state, pod("p"), FakeAsker())
    decision = finish(deciding, Screening(failed={"n0": "too far"}, unresolvable={"n1": "no way"}))
    assert decision.node == "n2"


def test_an_asker_that_leaves_nothing_gives_its_reasons() -> None:
    state = cluster(*nodes(2))
    screening = Screening(failed={"n0": "too far"}, unresolvable={"n1": "no way"})
    decision = finish(ask(state, pod("p"), FakeAsker()), screening)
    assert decision.message == "0/2 nodes are available: 1 no way, 1 too far."
    assert decision.unschedulable_plugins == {"oracle"}


@pytest.mark.parametrize("answer", [AskFailedError("timed out"), "nonsense"])
def test_an_asker_that_fails_fails_the_pod_unless_ignorable(answer: Any) -> None:
    state = cluster(*nodes(2))
    decision = finish(ask(state, pod("p"), FakeAsker()), answer)
    assert decision.status.code is Code.ERROR
    assert 'asking "oracle"' in decision.message
    assert finish(ask(state, pod("p"), FakeAsker(is_ignorable=True)), answer).is_scheduled


def test_a_choice_overtaken_by_other_pods_is_made_again() -> None:
    state = cluster(*nodes(2))
    deciding = ask(state, pod("p", {"cpu": 3}), FakeAsker())
    question = next(deciding)
    assert (question.request, question.timeout) == (["n0", "n1"], 3.0)
    state.assume(pod("thief", {"cpu": 3}), "n0")
    again = deciding.send(Screening(failed={"n1": "not that one"}))
    assert again.request == ["n1"]  # n0 was chosen, found taken, and the decision started over
    with pytest.raises(StopIteration) as stop:
        deciding.send(Screening())
    assert stop.value.value.node == "n1"


def test_a_node_that_goes_away_while_somebody_is_asked() -> None:
    state = cluster(*nodes(2))
    deciding = ask(state, pod("p"), FakeAsker())
    next(deciding)
    state.delete_node("n0")
    state.upsert_node(node("reused"))  # takes the row of n0
    for i in range(40):
        state.upsert_node(node(f"late{i}"))  # the arrays grow
    with pytest.raises(StopIteration) as stop:
        deciding.send(Screening(failed={"n1": "no"}))
    assert stop.value.value.message == "0/2 nodes are available: 1 no."


def test_a_failed_plugin_is_an_error_of_the_attempt() -> None:
    class Fails(Plugin):
        def filter(self, cycle: CycleState, pod: PodInfo, node: NodeRef) -> Status:
            return error("disk on fire")

    registry = default_registry()
    registry.register("Fails", Fails)
    plugins = (*DEFAULT_MULTIPOINT, PluginRef("Fails"))
    decision = decide_with(cluster(*nodes(2)), pod("p"), plugins=plugins, registry=registry)
    assert decision.message == 'running Filter plugin "Fails": disk on fire'
