"""Vectorised node selection and taints give the answer of the object-by-object rules, on every node."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.api.tolerations import find_untolerated
from pilotage.state.node_match import required_mask
from pilotage.state.taints import untolerated_mask
from statekit import cluster, node, pod

KEYS = st.sampled_from(["zone", "size"])
VALUES = st.sampled_from(["a", "b", "3", "-7", "12", "", "03"])
NAMES = st.lists(st.sampled_from(["n0", "n1", "n9"]), min_size=1, max_size=2)


def requirement() -> st.SearchStrategy[dict[str, Any]]:
    lists = st.fixed_dictionaries(
        {
            "key": KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(VALUES, min_size=1, max_size=3),  # "-7" is no label value
        }
    )
    presence = st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])})
    numbers = st.fixed_dictionaries(
        {
            "key": KEYS,
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.integers(-9, 20).map(lambda n: [str(n)]),
        }
    )
    return st.one_of(lists, presence, numbers)


FIELDS = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": st.sampled_from(["In", "NotIn"]), "values": NAMES}
)
TERMS = st.lists(
    st.fixed_dictionaries(
        {
            "matchExpressions": st.lists(requirement(), max_size=2),
            "matchFields": st.lists(FIELDS, max_size=2),
        }
    ),
    min_size=1,
    max_size=3,
)
NODES = st.lists(st.dictionaries(KEYS, VALUES), min_size=1, max_size=5)


@given(labels=NODES, terms=st.none() | TERMS, selector=st.dictionaries(KEYS, VALUES))
def test_required_mask(
    labels: list[dict[str, str]], terms: list[dict[str, Any]] | None, selector: dict[str, str]
) -> None:
    state = cluster(*(node(f"n{i}", labels=of) for i, of in enumerate(labels)))
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = None if terms is None else {"nodeAffinity": required}
    info = pod("p", nodeSelector=selector, affinity=affinity)
    mask = required_mask(state.nodes, info)
    matcher = info.node_affinity
    for row, of in enumerate(labels):
        expected = all(of.get(key) == value for key, value in selector.items())
        expected = expected and (matcher is None or matcher.matches(of, f"n{row}"))
        assert (mask is None or bool(mask[row])) == expected


EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
TAINTS = st.lists(
    st.fixed_dictionaries({"key": KEYS, "value": st.sampled_from(["", "v"]), "effect": EFFECTS}), max_size=2
)
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["", "zone", "size"]),
            "operator": st.sampled_from(["Equal", "Exists"]),
            "value": st.sampled_from(["", "v"]),
            "effect": st.one_of(st.just(""), EFFECTS),
        }
    ),
    max_size=2,
)


@given(taints=st.lists(TAINTS, min_size=1, max_size=4), tolerations=TOLERATIONS)
def test_untolerated_mask(taints: list[list[dict[str, str]]], tolerations: list[dict[str, str]]) -> None:
    state = cluster(*(node(f"n{i}", taints=of) for i, of in enumerate(taints)))
    info = pod("p", tolerations=tolerations)
    mask = untolerated_mask(state.nodes, info)
    for row in range(len(taints)):
        found = find_untolerated(state.nodes.node(row).spec.taints, info.tolerations)
        assert (mask is not None and bool(mask[row])) == (found is not None)
