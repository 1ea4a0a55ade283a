"""The JSON of extenders: what is sent, what is read in any case, and what is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pilotage.api.kinds import find
from pilotage.client.decoding import BrokenFrameError
from pilotage.framework.settings import ExtenderSettings
from pilotage.runtime.extender_wire import ExtenderAnswerError, decode, encode
from pilotage.runtime.raw_objects import RawObjects
from pilotage.scheduling.extenders import (
    BindQuery,
    ExtenderQuery,
    FilterAnswer,
    FilterQuery,
    NamedVictims,
    OfferedVictims,
    Rating,
    RatingQuery,
    VictimsQuery,
)
from pilotage.scheduling.extenders_filter import ExtenderFilter
from statekit import pod

WHOLE = ExtenderSettings("http://x", filter_verb="f", prioritize_verb="p", preempt_verb="v", bind_verb="b")
CACHED = replace(WHOLE, node_cache_capable=True)


def raw(*settings: ExtenderSettings) -> RawObjects:
    return RawObjects(settings or (WHOLE,))


def sent(query: ExtenderQuery, kept: RawObjects | None = None) -> Any:
    return msgspec.json.decode(encode(query, kept or raw()))


def answer(query: ExtenderQuery, tree: Any) -> Any:
    return decode(query, msgspec.json.encode(tree))


def asked(settings: ExtenderSettings = CACHED) -> FilterQuery:
    return FilterQuery(settings, "f", pod("p"), ("n1", "n2"))


def test_arguments_are_named_as_in_go() -> None:
    tree = sent(asked())
    assert (tree["NodeNames"], tree["Nodes"]) == (["n1", "n2"], None)
    assert tree["Pod"]["metadata"]["name"] == "p"
    tree = sent(asked(WHOLE))
    assert tree["NodeNames"] is None
    assert [node["metadata"]["name"] for node in tree["Nodes"]["items"]] == ["n1", "n2"]
    bound = sent(BindQuery(WHOLE, "b", pod("p"), "n1"))
    assert bound == {
        "PodName": "p",
        "PodNamespace": bound["PodNamespace"],
        "PodUID": pod("p").uid,
        "Node": "n1",
    }


def test_victims_go_as_pods_or_as_uids() -> None:
    offered = {"n1": OfferedVictims((pod("low"),), 1)}
    tree = sent(VictimsQuery(CACHED, "v", pod("p"), offered))
    assert tree["NodeNameToVictims"] is None
    assert tree["NodeNameToMetaVictims"] == {"n1": {"Pods": [{"UID": pod("low").uid}], "NumPDBViolations": 1}}
    tree = sent(VictimsQuery(WHOLE, "v", pod("p"), offered))
    assert tree["NodeNameToMetaVictims"] is None
    assert tree["NodeNameToVictims"]["n1"]["Pods"][0]["metadata"]["name"] == "low"


def test_filter_answers() -> None:
    assert answer(asked(), {"NodeNames": ["n1"], "FailedNodes": {"n2": "full"}}) == FilterAnswer(
        ("n1",), {"n2": "full"}
    )
    lower = {
        "nodenames": ["n1"],
        "failedAndUnresolvableNodes": {"n2": "no"},
        "failedNodes": None,
        "error": "",
    }
    assert answer(asked(), lower) == FilterAnswer(("n1",), {}, {"n2": "no"})
    items = {"Nodes": {"items": [{"metadata": {"name": "n2"}}]}}
    assert answer(asked(WHOLE), items).node_names == ("n2",)
    assert answer(asked(), items).node_names == ("n2",)  # a cache, but whole nodes all the same
    assert answer(asked(WHOLE), {"NodeNames": ["n1"]}).node_names == ()
    assert answer(asked(), {}).node_names == ()


def test_other_answers() -> None:
    rating = RatingQuery(CACHED, "p", pod("p"), ("n1",))
    scores = [{"host": "n1", "score": 3}, {"Host": "n2"}]
    assert answer(rating, scores) == [Rating("n1", 3), Rating("n2", 0)]
    assert answer(rating, None) == []
    victims = VictimsQuery(CACHED, "v", pod("p"), {})
    tree = {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "u"}], "numPDBViolations": 2}, "n2": None}}
    assert answer(victims, tree) == {"n1": NamedVictims(("u",), 2), "n2": NamedVictims(())}
    assert answer(victims, {}) == {}
    assert answer(BindQuery(CACHED, "b", pod("p"), "n1"), {"Error": ""}) is None


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"Error": "broken"}, "broken"),
        ({"Error": 7}, "error is 7, not a text"),
        ("n1", "the answer is 'n1', not an object"),
        (None, "the answer is NoneType, not an object"),
        ({"NodeNames": {"n1": 1}}, "nodeNames is dict, not a list"),
        ({"NodeNames": ["n1"], "FailedNodes": {"n2": 5}}, "failedNodes.n2 is 5, not a text"),
        ({"Nodes": []}, "nodes is list, not an object"),
        ({"Nodes": {"items": [5]}}, "nodes.items is 5, not an object"),
    ],
)
def test_wrong_types_are_named(tree: Any, text: str) -> None:
    with pytest.raises(ExtenderAnswerError) as caught:
        answer(asked(), tree)
    assert str(caught.value) == text


@pytest.mark.parametrize("score", [1.5, True, "5", [], 1e400])
def test_scores_are_whole_numbers(score: Any) -> None:
    body = b'[{"host": "n1", "score": %s}]' % msgspec.json.encode(score).replace(b"null", b"1e400")
    with pytest.raises(ExtenderAnswerError):
        decode(RatingQuery(CACHED, "p", pod("p"), ("n1",)), body)


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[NaN]", b'{"a": 1', b"[" * 100_000])
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(ExtenderAnswerError, match="no JSON"):
        decode(asked(), body)


def test_who_passed_is_the_list_and_reasons_fill_the_rest() -> None:
    names = ("n1", "n2", "n3", "n4")
    said = FilterAnswer(("n1",), {"n1": "odd", "n2": "full", "n3": "x"}, {"n3": "never", "mars": "far"})
    screening = ExtenderFilter(CACHED).screen(said, names)
    assert screening.unresolvable["n3"] == "never"
    assert screening.failed["n2"] == "full"
    assert set(screening.failed) == {"n2", "n3"}
    assert "gave no reason" in screening.unresolvable["n4"]


# Objects as they were written

PODS, NODES = find("pods"), find("nodes")


def page(*items: Any) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": items})


def line(kind: str, tree: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": tree})


def tree_of(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "namespace": "ns"}, **more}


def test_nodes_and_waiting_pods_are_kept_whole() -> None:
    kept = raw()
    decoder = kept.decoder(NODES)
    assert decoder is not None
    seen = decoder.page(page(tree_of("n1", spec={"podCIDR": "10.0.0.0/24"}), 7)).items
    assert len(seen) == 2
    assert b"podCIDR" in bytes(kept.node("n1"))
    decoder.frame(line("MODIFIED", tree_of("n1", spec={"providerID": "x"})))
    assert b"providerID" in bytes(kept.node("n1"))
    kept.gone(msgspec.convert(tree_of("n1") | {"metadata": {"name": "n1", "uid": "older"}}, type=NODES.view))
    assert len(kept) == 1
    kept.gone(msgspec.convert(tree_of("n1"), type=NODES.view))
    assert len(kept) == 0
    assert bytes(kept.node("n1")) == b'{"metadata":{"name":"n1"}}'


@pytest.mark.parametrize(("settings", "keeps_bound"), [(WHOLE, True), (CACHED, False)])
def test_bound_pods_are_kept_only_where_they_may_be_victims(
    settings: ExtenderSettings, keeps_bound: bool
) -> None:
    kept = raw(settings)
    decoder = kept.decoder(PODS)
    assert decoder is not None
    decoder.page(page(tree_of("a"), tree_of("b", spec={"nodeName": "n1"})))
    assert len(kept) == 1 + keeps_bound
    decoder.frame(line("MODIFIED", tree_of("a", spec={"nodeName": "n1"})))
    assert len(kept) == 2 * keeps_bound
    assert (kept.decoder(NODES) is None) == settings.node_cache_capable


def test_nothing_is_kept_without_extenders() -> None:
    assert RawObjects(()).decoder(PODS) is None
    assert RawObjects(()).decoder(NODES) is None


def test_broken_lists_stay_broken() -> None:
    decoder = raw().decoder(PODS)
    assert decoder is not None
    with pytest.raises(BrokenFrameError):
        decoder.page(b"<html>")
