"""Whatever an extender answers, it is an answer of the right type or a refusal in words."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilotage.framework.settings import ExtenderSettings
from pilotage.runtime.extender_wire import ExtenderAnswerError, decode
from pilotage.scheduling.extenders import (
    BindQuery,
    ExtenderQuery,
    FilterQuery,
    OfferedVictims,
    RatingQuery,
    VictimsQuery,
)
from pilotage.scheduling.extenders_filter import ExtenderFilter
from pilotage.scheduling.extenders_rating import ExtenderRater
from statekit import pod

SETTINGS = ExtenderSettings("http://x", "f", "v", "p", "b", weight=7)
POD = pod("p")
NODES = ("n1", "n2", "n3")
QUERIES: list[ExtenderQuery] = [
    query
    for settings in (SETTINGS, replace(SETTINGS, node_cache_capable=True))
    for query in (
        FilterQuery(settings, "f", POD, NODES),
        RatingQuery(settings, "p", POD, NODES),
        BindQuery(settings, "b", POD, "n1"),
        VictimsQuery(settings, "v", POD, {"n1": OfferedVictims((pod("low"),), 0)}),
    )
]

FIELDS = ["Nodes", "nodenames", "NodeNames", "FailedNodes", "failedAndUnresolvableNodes", "Error", "items"]
FIELDS += ["metadata", "name", "Host", "score", "nodeNameToMetaVictims", "Pods", "UID", "n1", "n2"]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "n1", "mars", "full"])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=25,
)


@given(tree=TREES, query=st.sampled_from(QUERIES))
def test_any_json(tree: Any, query: ExtenderQuery) -> None:
    check(query, msgspec.json.encode(tree) if _fits(tree) else repr(tree).encode())


@given(body=st.binary(max_size=60), query=st.sampled_from(QUERIES))
def test_any_bytes(body: bytes, query: ExtenderQuery) -> None:
    check(query, body)


def check(query: ExtenderQuery, body: bytes) -> None:
    try:
        answer = decode(query, body)
    except ExtenderAnswerError:
        return
    with contextlib.suppress(ValueError):
        if isinstance(query, FilterQuery):
            screening = ExtenderFilter(query.extender).screen(answer, NODES)
            assert screening.failed.keys() | screening.unresolvable.keys() <= set(NODES)
        elif isinstance(query, RatingQuery):
            assert all(type(score) is int for score in ExtenderRater(query.extender).rate(answer).values())


def _fits(tree: Any) -> bool:
    """JSON of ours has no whole numbers beyond 64 bits."""
    if isinstance(tree, dict):
        return all(map(_fits, tree.values()))
    if isinstance(tree, list):
        return all(map(_fits, tree))
    return not isinstance(tree, int) or -(2**63) <= tree < 2**63
