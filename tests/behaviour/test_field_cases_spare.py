"""Smaller faults that other systems had, on the whole system: affinity, queue, cache and preemption."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pilotage.framework.plugin import PermitResult
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, wait
from pilotage.plugins import default_registry
from pilotage.testing.builders import priority_class
from pilotage.testing.extenders import Extender
from pilotage.testing.harness import Harness

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TEAM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
NEAR_TEAM = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TEAM]}}


class WaitsAtPermit:
    """Pods labelled `waits` wait at Permit for so many seconds as they say."""

    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        seconds = (pod.pod.metadata.labels or {}).get("waits")
        return PermitResult(wait(), float(seconds)) if seconds else PermitResult(SUCCESS)


def with_permit(seed: int) -> Harness:
    registry: Registry = default_registry()
    registry.register("WaitsAtPermit", lambda args, handle: WaitsAtPermit())
    plugins = {"multiPoint": {"enabled": [{"name": "WaitsAtPermit"}]}}
    profiles = [{"schedulerName": "default-scheduler", "plugins": plugins}]
    return Harness(seed=seed, registry=registry, settings={"profiles": profiles})


def deletes(h: Harness) -> list[str]:
    found = h.requests(method="DELETE", client="scheduler", path="/pods/")
    return [record.path.rpartition("/")[2] for record in found]


# -- affinity ------------------------------------------------------------------------------------


def test_the_first_of_its_kind_goes_only_where_the_topology_key_is() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("bare"), h.pod("first", labels={"app": "a"}, affinity=NEAR_TEAM))
        h.run_for(5)
        assert "didn't match pod affinity rules" in h.pod_state("first").message
        h.create(h.node("zoned", zone="z1"))
        assert h.run_until_bound("first", timeout=10) <= 2
        h.create(h.node("other", zone="z2"), h.pod("second", labels={"app": "a"}, affinity=NEAR_TEAM))
        h.run_until_bound("second")
        assert [h.pod_state(name).node for name in ("first", "second")] == ["zoned", "zoned"]


def test_who_does_not_match_its_own_affinity_is_never_the_first() -> None:
    with Harness(seed=2) as h:
        h.create(h.node("zoned", zone="z1"), h.pod("guest", labels={"app": "b"}, affinity=NEAR_TEAM))
        h.run_for(5)
        assert not h.pod_state("guest").node
        h.create(h.pod("host", labels={"app": "a"}))
        h.run_until_bound("host", "guest", timeout=10)


def test_a_namespace_that_gets_other_labels_lets_a_waiting_pod_go() -> None:
    selector = {"matchLabels": {"team": "r"}}
    apart = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"app": "a"}},
        "namespaceSelector": selector,
    }
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    with Harness(seed=3) as h:
        space = {
            "metadata": {"name": "red", "labels": {"team": "r"}},
            "apiVersion": "v1",
            "kind": "Namespace",
        }
        h.create(space, h.node("n1"), h.pod("a", namespace="red", labels={"app": "a"}))
        h.run_until_running("a", namespace="red")
        h.create(h.pod("b", affinity=anti))
        h.run_for(5)
        assert not h.pod_state("b").node
        h.label("namespaces", "red", namespace="", team="g")
        assert h.run_until_bound("b", timeout=10) <= 2


# -- preemption ----------------------------------------------------------------------------------


def test_what_pre_filter_finds_unresolvable_is_not_preempted_for() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    with Harness(seed=4) as h:
        h.create(priority_class(100), h.node("n1", cpu=1), h.pod("low", cpu=1, grace=0))
        h.run_until_running("low")
        h.create(h.pod("high", cpu=1, priority=100, affinity=pinned))
        h.create(h.pod("choosy", cpu=1, priority=100, node_selector={"disk": "ssd"}))
        h.run_for(20)
        assert deletes(h) == []
        for name in ("high", "choosy"):
            assert "Preemption is not helpful for scheduling" in h.pod_state(name).message
            assert not h.pod_state(name).nominated


def test_a_preempted_waiter_at_permit_backs_off_and_is_tried_again() -> None:
    with with_permit(5) as h:
        h.create(priority_class(100), h.node("n1", cpu=4))
        h.create(h.pod("low", cpu=4, labels={"waits": "600"}))
        h.run_until(lambda: h.engine.statistics().binding == 1, timeout=5)
        h.create(h.pod("high", cpu=4, priority=100, grace=0))
        h.run_until_bound("high", timeout=5)
        h.run_for(15)
        assert len(h.attempts("low")) >= 2, "it was tried again after a backoff, without an event"
        h.label("pods", "low", waits=None)
        h.delete("pods", "high", grace=0)
        h.run_until_bound("low", timeout=12)
        assert deletes(h) == []


def test_a_victim_that_never_ends_does_not_bind_its_preemptor_to_its_node() -> None:
    with Harness(seed=6) as h:
        h.create(priority_class(100), h.node("n1", cpu=4))
        stuck = h.pod("stuck", cpu=4, grace=0)
        stuck["metadata"]["finalizers"] = ["example.com/keep"]
        h.create(stuck)
        h.run_until_running("stuck")
        h.create(h.pod("high", cpu=4, priority=100))
        h.run_until(lambda: h.pod_state("high").nominated == "n1", timeout=5)
        h.run_for(60)
        assert len(deletes(h)) == 1
        h.create(h.node("n2", cpu=4))
        assert h.run_until_bound("high", timeout=12) <= 11
        assert h.pod_state("high").node == "n2"
        h.patch("pods", "stuck", {"metadata": {"finalizers": None}})
        h.run_for(1)


def test_a_deleted_preemptor_leaves_no_phantom() -> None:
    with Harness(seed=7) as h:
        h.create(priority_class(100), h.node("n1", cpu=4), h.pod("low", cpu=4, grace=20))
        h.run_until_running("low")
        h.create(h.pod("high", cpu=4, priority=100))
        h.run_until(lambda: h.pod_state("high").nominated == "n1", timeout=5)
        h.delete("pods", "high", grace=0)
        h.create(h.pod("next", cpu=4))
        h.run_until(lambda: not h.pod_state("low").exists, timeout=40)
        assert h.run_until_bound("next", timeout=12) <= 11


# -- permit, extenders, caches -------------------------------------------------------------------


def test_nobody_waits_at_permit_for_more_than_fifteen_minutes() -> None:
    with with_permit(8) as h:
        h.create(h.node("n1", pods=1), h.pod("patient", labels={"waits": "86400"}))
        h.run_until(lambda: h.engine.statistics().binding == 1, timeout=5)
        start = h.now
        h.create(h.pod("next"))
        h.run_until_bound("next", timeout=1000)
        assert 900 <= h.now - start <= 903


def test_scores_see_full_nodes_as_full_where_an_extender_is_configured() -> None:
    extender = Extender(filter=lambda args: {"NodeNames": args["NodeNames"]})
    settings = {"extenders": [{"urlPrefix": "http://ext", "filterVerb": "filter", "nodeCacheCapable": True}]}
    with Harness(seed=9, settings=settings, extenders={"http://ext": extender}) as h:
        h.create(h.node("n1"), h.node("n2"))
        h.create(h.pod("filler", cpu=3, memory="12Gi", node_selector={HOSTNAME: "n1"}))
        h.run_until_running("filler")
        for number in range(3):
            h.create(h.pod(f"p{number}", cpu="500m", memory="2Gi"))
            h.run_until_bound(f"p{number}")
        assert [h.pod_state(f"p{number}").node for number in range(3)] == ["n2", "n2", "n2"]


@pytest.mark.parametrize("late", ["pods", "nodes"])
def test_watches_that_run_apart_neither_lose_a_pod_nor_place_it_twice(late: str) -> None:
    with Harness(seed=10) as h:
        h.create(h.node("n1", cpu=4), h.pod("big", cpu=8))
        h.run_for(2)
        h.faults.delay_watches(3.0, path=f"/{late}", client="scheduler")
        h.create(*(h.pod(f"p{number}", cpu=1) for number in range(4)), h.node("n2", cpu=16))
        h.create(h.pod("by-hand", cpu=1))
        h.bind("by-hand", "n2")
        h.label("pods", "big", note="changed")
        h.run_until_bound("big", *(f"p{number}" for number in range(4)), timeout=30)
        h.settle(10)
        counts = Counter(record.path for record in h.requests(method="POST", path="/binding$", status=201))
        assert max(counts.values()) == 1
        assert not h.attempts("by-hand") or h.pod_state("by-hand").node == "n2"
        h.check_converged()
