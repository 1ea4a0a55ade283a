"""System default spread constraints in the whole loop: the selector comes from watched Services and sets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pilotage.testing.harness import Harness

Tree = dict[str, Any]
WEB = {"app": "web"}


def service(selector: dict[str, str]) -> Tree:
    spec = {"selector": selector, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def places(*before: Tree) -> Counter[str]:
    """Where eight small pods go when one node is much emptier than the other two."""
    with Harness(seed=3) as h:
        h.create(h.node("big", cpu=64, memory="256Gi", zone="a"))
        h.create(*(h.node(f"small-{zone}", cpu=4, memory="16Gi", zone=zone) for zone in "bc"))
        h.create(*before)
        for index in range(9):
            h.create(h.pod(f"p{index}", cpu="300m", memory="1Gi", labels=WEB))
            h.run_until_running(f"p{index}")
        h.check_converged()
        return Counter(h.pod_state(f"p{index}").node for index in range(9))


@pytest.mark.slow
def test_pods_of_a_service_are_spread_and_others_are_not() -> None:
    assert places(service(WEB)) == {"big": 3, "small-b": 3, "small-c": 3}
    assert places(service({"app": "other"})) == places() == {"big": 9}


@pytest.mark.slow
def test_replicas_of_a_deployment_are_spread_without_a_service() -> None:
    with Harness(seed=4) as h:
        h.create(h.node("big", cpu=64, memory="256Gi", zone="a"))
        h.create(*(h.node(f"small-{zone}", cpu=4, memory="16Gi", zone=zone) for zone in "bc"))
        h.create(h.deployment("web", 6, h.pod("x", cpu="300m", memory="1Gi", labels=WEB)))
        h.run_for(10)
        found = Counter(pod["spec"].get("nodeName") for pod in h.objects("pods", "default"))
        assert found == {"big": 2, "small-b": 2, "small-c": 2}
