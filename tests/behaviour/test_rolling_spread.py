"""Field case E4: a rolling update under hostname spread ends even, whatever the order of deletions."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import msgspec
import numpy as np
import pytest

from pilotage.api.pods import Pod
from pilotage.scheduling.decide import decide_now
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from statekit import node, profile

HOST = "kubernetes.io/hostname"
OLD_PLACES = ("n1", "n1", "n2", "n2", "n3")


def replica(name: str, revision: str, node_name: str = "") -> PodInfo:
    constraint: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "app1"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    labels = {"app": "app1", "pod-template-hash": revision}
    meta = {"name": name, "uid": name, "namespace": "ns", "labels": labels}
    spec = {"nodeName": node_name, "topologySpreadConstraints": [constraint]}
    return PodInfo(msgspec.convert({"metadata": meta, "spec": spec}, Pod))


def rolled(deletions: tuple[int, ...]) -> list[int]:
    """New replicas per node after replacing the old ones in this order."""
    cluster = ClusterState()
    for name in ("n1", "n2", "n3"):
        cluster.upsert_node(node(name, labels={HOST: name}))
    for number, place in enumerate(OLD_PLACES):
        cluster.upsert_pod(replica(f"old{number}", "1", place))
    deciding, found = profile(cluster), Counter[str]()
    for number, deleted in enumerate(deletions):
        place = decide_now(
            deciding, cluster, replica(f"new{number}", "2"), np.random.default_rng(number)
        ).node
        found[place] += 1
        cluster.upsert_pod(replica(f"new{number}", "2", place))
        cluster.delete_pod(f"old{deleted}")
    return sorted(found.values())


@pytest.mark.slow
def test_new_replicas_end_even_for_every_order_of_deletions() -> None:
    for order in permutations(range(len(OLD_PLACES))):
        assert rolled(order) == [1, 2, 2], order
