"""Extenders, the pure half: whom a pod concerns, scores, victims, binds, and decisions that wait for them."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from pilotage.framework.asking import AskFailedError, Victims, with_nobody_to_ask
from pilotage.framework.binding_calls import ConfirmBinding
from pilotage.framework.cycle import CycleState
from pilotage.framework.settings import ExtenderSettings, ManagedResource
from pilotage.framework.status import Code
from pilotage.scheduling.decide import decide
from pilotage.scheduling.extenders import FilterAnswer, NamedVictims, Rating, in_order, is_interested
from pilotage.scheduling.extenders_binding import ExtenderBinder
from pilotage.scheduling.extenders_filter import ExtenderFilter
from pilotage.scheduling.extenders_rating import ExtenderRater
from pilotage.scheduling.extenders_victims import ExtenderVictims
from pilotage.scheduling.verdict import Decision
from pilotage.state.cluster import ClusterState
from statekit import cluster, node, pod, profile

GPU = "example.com/gpu"


def extender(**fields: Any) -> ExtenderSettings:
    return ExtenderSettings(fields.pop("url", "http://x"), **fields)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ({"containers": [{"resources": {"requests": {GPU: "1"}}}]}, True),
        ({"containers": [{}, {"resources": {"limits": {GPU: "1"}}}]}, True),
        ({"containers": [{}], "initContainers": [{"resources": {"requests": {GPU: "1"}}}]}, True),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, False),
        ({"containers": []}, False),
    ],
)
def test_managed_resources_tell_whose_business_a_pod_is(containers: dict[str, Any], expected: bool) -> None:
    one = extender(managed_resources=(ManagedResource("example.com/other"), ManagedResource(GPU)))
    info = pod("p", **containers)
    assert is_interested(one, info) is expected
    assert is_interested(extender(), info)


def test_ignorable_ones_come_last() -> None:
    names = [("a", True), ("b", False), ("c", True), ("d", False)]
    ordered = in_order(extender(url=url, ignorable=ignorable) for url, ignorable in names)
    assert [one.url_prefix for one in ordered] == ["b", "d", "a", "c"]


def test_scores_are_scaled_and_weighted() -> None:
    rater = ExtenderRater(extender(prioritize_verb="p", weight=3))
    assert rater.rate([Rating("a", 10), Rating("b", 1), Rating("a", 1), Rating("c", -2)]) == {
        "a": 330,
        "b": 30,
        "c": -60,
    }
    for nonsense in ([Rating("a", 10**18)], [Rating("a", -(10**30))], ["a"]):
        with pytest.raises(ValueError, match=r"beyond all bounds|answered by"):
            rater.rate(nonsense)


# -- decisions


def nodes(number: int) -> ClusterState:
    return cluster(*(node(f"n{i}", {"cpu": "4", "pods": "110"}) for i in range(number)))


def drive(state: ClusterState, settings: ExtenderSettings, *answers: Any, info: Any = None) -> Decision:
    """Answers are values, exceptions, or functions that change the world and give one."""
    deciding = decide(
        profile(state),
        state,
        info or pod("p"),
        CycleState(),
        np.random.default_rng(0),
        askers=[ExtenderFilter(settings)] if settings.filter_verb else [],
        raters=[ExtenderRater(settings)] if settings.prioritize_verb else [],
    )
    left = list(answers)
    try:
        next(deciding)
        while True:
            answer = left.pop(0)
            answer = answer() if callable(answer) else answer
            if isinstance(answer, Exception):
                deciding.throw(answer)
            else:
                deciding.send(answer)
    except StopIteration as stop:
        assert not left
        return stop.value


RATER = extender(prioritize_verb="p", weight=10)
FILTER = extender(filter_verb="f")


def test_the_best_total_wins() -> None:
    decision = drive(nodes(3), RATER, [Rating("n1", 10), Rating("n2", 9)])
    assert decision.node == "n1"
    assert decision.scores is not None
    assert decision.scores.by_plugin['extender "http://x" at p'].tolist() == [0, 1000, 900]


@pytest.mark.parametrize("answer", [AskFailedError("dead"), [Rating("n1", 10**20)]])
def test_failed_scores_are_remarked_upon_and_count_as_none(answer: Any) -> None:
    decision = drive(nodes(3), RATER, answer)
    assert decision.is_scheduled
    (remark,) = decision.remarks
    assert remark.startswith('extender "http://x" at p: ')
    assert remark.endswith(" (ignored)")


def test_nobody_is_asked_for_scores_of_a_single_node() -> None:
    assert drive_without_questions(nodes(1), RATER).node == "n0"


def drive_without_questions(state: ClusterState, settings: ExtenderSettings) -> Decision:
    rng = np.random.default_rng(0)
    raters = [ExtenderRater(settings)]
    return with_nobody_to_ask(decide(profile(state), state, pod("p"), CycleState(), rng, raters=raters))


def test_the_best_node_that_is_still_free_wins_when_others_were_faster() -> None:
    state = nodes(3)

    def meanwhile() -> Any:
        state.assume(pod("thief", {"cpu": "3"}), "n1")
        return [Rating("n1", 10), Rating("n2", 9)]

    assert drive(state, RATER, meanwhile, info=pod("p", {"cpu": "2"})).node == "n2"


def test_a_nominated_node_that_the_extender_refuses_is_no_end() -> None:
    state = nodes(2)
    info = pod("p")
    state.nominations.add(info, "n0")
    refused = FilterAnswer((), {"n0": "no"})
    assert drive(state, FILTER, refused, FilterAnswer(("n1",), {"n0": "no"}), info=info).node == "n1"


def test_nodes_that_come_and_go_while_extenders_think() -> None:
    state = nodes(2)

    def meanwhile() -> FilterAnswer:
        state.delete_node("n0")
        for i in range(40):
            state.upsert_node(node(f"late{i}", {"cpu": "4", "pods": "110"}))
        return FilterAnswer((), {"n0": "no", "n1": "no"})

    decision = drive(state, FILTER, meanwhile)
    assert decision.unschedulable_plugins == {"Extender"}
    assert decision.failures is not None
    assert decision.failures.rows_with(Code.UNSCHEDULABLE).size
    assert decision.message == "0/2 nodes are available: 1 no."


# -- victims


def narrowed(settings: ExtenderSettings, answer: Any, *there: Any) -> Any:
    offered = {"n1": Victims((there[0],), 0)}
    asking = ExtenderVictims(settings).narrow(pod("vip", priority=100), offered, lambda _: there)
    next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.throw(answer) if isinstance(answer, Exception) else asking.send(answer)
    return stop.value.value


PREEMPT = extender(preempt_verb="v")
IGNORED = extender(preempt_verb="v", ignorable=True)


def test_other_victims_may_be_named_and_come_most_important_first() -> None:
    a, b = pod("a", priority=1), pod("b", priority=5)
    left = narrowed(PREEMPT, {"n1": NamedVictims((a.uid, b.uid), 1)}, a, b)
    assert left == {"n1": Victims((b, a), 1)}


def test_pods_of_no_lower_priority_are_no_victims() -> None:
    a, peer = pod("a", priority=1), pod("peer", priority=100)
    with pytest.raises(AskFailedError, match="lower priority"):
        narrowed(PREEMPT, {"n1": NamedVictims((peer.uid,))}, a, peer)
    assert narrowed(IGNORED, {"n1": NamedVictims((peer.uid,))}, a, peer) == {"n1": Victims((a,), 0)}


def test_a_failure_is_one_of_the_preemption_unless_ignorable() -> None:
    a = pod("a", priority=1)
    with pytest.raises(AskFailedError, match='extender "http://x" at v: dead'):
        narrowed(PREEMPT, AskFailedError("dead"), a)
    assert narrowed(IGNORED, AskFailedError("dead"), a) == {"n1": Victims((a,), 0)}


# -- binds


def bound(answer: Exception | None, **fields: Any) -> Any:
    async def send(_: Any) -> None:
        if answer is not None:
            raise answer

    binder = ExtenderBinder(extender(bind_verb="b", **fields), send)
    return asyncio.run(binder.bind(CycleState(), pod("p"), "n1"))


def test_whatever_a_binder_says_is_checked() -> None:
    good, bad = bound(None), bound(OSError("gone"))
    assert isinstance(good, ConfirmBinding)
    assert (good.node, good.failure) == ("n1", "")
    assert bad.failure == 'extender "http://x" at b: gone'
    assert bound(OSError("gone"), ignorable=True).is_skip
