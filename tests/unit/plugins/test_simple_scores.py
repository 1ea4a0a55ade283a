"""TaintToleration, NodeAffinity and ImageLocality scores, worked out by hand."""

from __future__ import annotations

from typing import Any

from statekit import MI, cluster, decide_with, node, pod, scores_of

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def soft(*keys: str) -> list[dict[str, str]]:
    return [{"key": key, "effect": "PreferNoSchedule"} for key in keys]


def test_fewer_soft_taints_are_better() -> None:
    state = cluster(node("n0"), node("n1", taints=soft("a")), node("n3", taints=soft("a", "b", "c")))
    decision = decide_with(state, pod("p"))
    # 100 - 100 * s / 3, times weight 3
    assert scores_of(state, decision, "TaintToleration") == {"n0": 300, "n1": 201, "n3": 0}
    tolerant = pod("t", tolerations=[{"operator": "Exists", "effect": "PreferNoSchedule"}])
    decision = decide_with(state, tolerant)
    assert scores_of(state, decision, "TaintToleration") == {"n0": 300, "n1": 300, "n3": 300}


def test_a_toleration_of_another_effect_does_not_help() -> None:
    state = cluster(node("n0"), node("n1", taints=soft("a")))
    info = pod("p", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}])
    assert scores_of(state, decide_with(state, info), "TaintToleration") == {"n0": 300, "n1": 0}


def prefer(*weighted: tuple[int, str]) -> dict[str, Any]:
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for weight, key in weighted
    ]
    return {"nodeAffinity": {PREFERRED: terms}}


def test_preferred_terms_add_up() -> None:
    state = cluster(node("n1", labels={"a": ""}), node("n2", labels={"a": "", "b": ""}), node("n3"))
    decision = decide_with(state, pod("p", affinity=prefer((1, "a"), (2, "b"))))
    # raw 1, 3, 0: 33, 100, 0, times weight 2
    assert scores_of(state, decision, "NodeAffinity") == {"n1": 66, "n2": 200, "n3": 0}


def test_preferences_that_nobody_meets_score_zero_and_none_are_skipped() -> None:
    state = cluster(node("n1"), node("n2"))
    decision = decide_with(state, pod("p", affinity=prefer((5, "x"))))
    assert scores_of(state, decision, "NodeAffinity") == {"n1": 0, "n2": 0}
    decision = decide_with(state, pod("p"))
    assert decision.scores is not None
    assert "NodeAffinity" not in decision.scores.by_plugin


def test_added_preferences_count_with_the_pods() -> None:
    state = cluster(node("n1", labels={"a": ""}), node("n2", labels={"b": ""}))
    args = {"NodeAffinity": {"addedAffinity": prefer((4, "b"))["nodeAffinity"]}}
    decision = decide_with(state, pod("p", affinity=prefer((1, "a"))), args=args)
    assert scores_of(state, decision, "NodeAffinity") == {"n1": 50, "n2": 200}


def images(*names: str) -> list[dict[str, str]]:
    return [{"name": f"c{i}", "image": name} for i, name in enumerate(names)]


def test_images_count_by_size_and_spread() -> None:
    state = cluster(
        node("n1", images={"big:1": 1000 * MI, "small:latest": 300 * MI}),
        node("n2", images={"small:latest": 7}),
        node("n3"),
        node("n4"),
    )
    decision = decide_with(state, pod("p", containers=images("big:1", "small")))
    # n1: 1000 * 1/4 + 300 * 2/4 = 400 MiB, n2: 150 MiB (the first size counts); range 23..2000
    # n1: 100 * 377 / 1977 = 19; n2: 100 * 127 / 1977 = 6
    assert scores_of(state, decision, "ImageLocality") == {"n1": 19, "n2": 6, "n3": 0, "n4": 0}


def test_an_image_used_twice_counts_twice() -> None:
    state = cluster(node("n1", images={"a:1": 800 * MI}), node("n2"))
    once = decide_with(state, pod("p", containers=images("a:1", "b")))
    twice = decide_with(state, pod("p", containers=images("a:1", "a:1")))
    # 400 MiB: 100 * 377 / 1977 = 19; 800 MiB: 100 * 777 / 1977 = 39
    assert scores_of(state, once, "ImageLocality")["n1"] == 19
    assert scores_of(state, twice, "ImageLocality")["n1"] == 39


def test_everything_there_is_the_most() -> None:
    state = cluster(node("n1", images={"a:1": 9000 * MI}), node("n2", images={"a:1": 1}))
    decision = decide_with(state, pod("p", containers=images("a:1")))
    assert scores_of(state, decision, "ImageLocality") == {"n1": 100, "n2": 100}
