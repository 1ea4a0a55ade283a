"""A profile that keeps answers decides exactly as one that has just been built."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.framework.profile import Profile
from pilotage.scheduling.decide import decide_now
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from statekit import cluster, node, pod, profile

NODE_NAMES = st.sampled_from(["n1", "n2", "n3", "n4", "n5"])
NODE = st.fixed_dictionaries(
    {
        "allocatable": st.sampled_from(
            [
                {"cpu": 2, "memory": "4Gi", "pods": 3},
                {"cpu": "900m", "memory": "1Gi", "pods": 9, "example.com/gpu": 1},
                {"cpu": "junk"},
            ]
        ),
        "labels": st.dictionaries(st.just("disk"), st.sampled_from(["ssd", "hdd"])),
        "taints": st.lists(
            st.sampled_from(
                [{"key": "k", "effect": "NoSchedule"}, {"key": "s", "effect": "PreferNoSchedule"}]
            ),
            max_size=2,
        ),
        "unschedulable": st.booleans(),
    }
)
PORT = [{"name": "c", "image": "i", "ports": [{"hostPort": 80}]}]
SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
PREFERRED = [{"weight": 3, "preference": SSD}]
PODS: list[dict[str, Any]] = [
    {"requests": {"cpu": "300m", "memory": "512Mi"}},
    {"requests": {"example.com/gpu": 1}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    {"containers": PORT},
    {"requests": {"cpu": "500m"}, "nodeSelector": {"disk": "ssd"}, "priority": 5},
    {
        "requests": {"memory": "1Gi"},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}},
    },
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NODE_NAMES, NODE),
        st.tuples(st.just("gone"), NODE_NAMES),
        st.tuples(st.just("nominate"), NODE_NAMES),
        st.tuples(st.just("pod"), st.integers(0, len(PODS) - 1)),
        st.tuples(st.just("delete"), st.integers(0, 40)),
    ),
    min_size=5,
    max_size=40,
)


def verdict(built: Profile, state: ClusterState, info: PodInfo) -> tuple[Any, ...]:
    decision = decide_now(built, state, info, np.random.default_rng(0))
    scores = {} if decision.scores is None else decision.scores.by_plugin
    return (
        decision.message,
        decision.node,
        decision.rows.tolist(),
        {name: of.tolist() for name, of in scores.items()},
        decision.unschedulable_plugins,
    )


@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_kept_answers_change_nothing(steps: list[tuple[Any, ...]]) -> None:
    state = cluster(node("n0"))
    lasting = profile(state)
    for number, (what, *detail) in enumerate(steps):
        if what == "node":
            state.upsert_node(node(detail[0], **detail[1]))
        elif what == "gone":
            state.delete_node(detail[0])
        elif what == "nominate":
            state.nominations.add(pod(f"boss{number}", {"cpu": 1}, priority=9), detail[0])
        elif what == "delete":
            state.delete_pod(f"pod-p{detail[0]}")
        else:
            info = pod(f"p{number}", **PODS[detail[0]])
            kept, fresh = verdict(lasting, state, info), verdict(profile(state), state, info)
            assert kept == fresh
            if kept[1]:
                state.assume(info, kept[1])
    state.check_invariants()
