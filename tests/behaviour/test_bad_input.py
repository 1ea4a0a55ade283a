"""Bad input and bad times: a clear message each, and nothing lost."""

from __future__ import annotations

import pytest

from pilotage.api.kinds import Kind, by_resource
from pilotage.framework.status import SUCCESS, Status
from pilotage.plugins import default_registry
from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


def raw_pod(name: str, **spec: object) -> dict[str, object]:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"raw-{name}",
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    whole = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}], **spec}
    return {"metadata": metadata, "spec": whole, "status": {"phase": "Pending"}}


def test_the_server_is_gone_for_ten_seconds() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=8), h.pod("before", cpu=1))
        h.run_until_running("before")
        h.faults.unreachable_for(10, client="scheduler")
        h.faults.unreachable_for(10, client="services")
        h.create(h.pod("during", cpu=1), h.node("n2", cpu=8))
        h.delete("pods", "before")
        h.run_for(10)
        assert not h.pod_state("during").node
        h.create(h.pod("after", cpu=1))
        h.run_until_running("during", "after", timeout=30)
        h.run_until(lambda: not h.pod_state("before").exists)
        h.settle()
        h.check_converged()


def test_the_server_is_gone_when_the_scheduler_starts() -> None:
    with Harness(seed=2, scheduler=False) as h:
        h.create(h.node("n1"), h.pod("a", cpu=1))
        h.faults.unreachable_for(10, client="scheduler")
        h.start_scheduler()
        h.run_for(9)
        assert not h.scheduler.ready.is_set()
        h.run_until_running("a", timeout=30)


class Raises:
    """Raises at one extension point for pods called `victim`."""

    def __init__(self, point: str) -> None:
        self.point = point

    def _maybe(self, point: str, pod: object) -> None:
        if point == self.point and "victim" in getattr(pod, "key", ""):
            raise RuntimeError("the plugin is broken")

    def pre_filter(self, cycle: object, pod: object, view: object) -> object:
        self._maybe("pre_filter", pod)
        from pilotage.framework.plugin import PreFilterResult

        return PreFilterResult()

    def filter(self, cycle: object, pod: object, node: object) -> Status:
        self._maybe("filter", pod)
        return SUCCESS

    def score(self, cycle: object, pod: object, node: object) -> int:
        self._maybe("score", pod)
        return 0

    def reserve(self, cycle: object, pod: object, node: str) -> Status:
        self._maybe("reserve", pod)
        return SUCCESS

    def unreserve(self, cycle: object, pod: object, node: str) -> None: ...

    def pre_bind(self, cycle: object, pod: object, node: str) -> Status:
        self._maybe("pre_bind", pod)
        return SUCCESS


@pytest.mark.parametrize("point", ["filter", "score", "reserve", "pre_bind"])
def test_a_plugin_that_raises_fails_its_pod_and_nothing_else(point: str) -> None:
    registry = default_registry()
    plugin = Raises(point)
    registry.register("Broken", lambda args, handle: plugin)
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Broken"}]}},
    }
    with Harness(seed=3, registry=registry, settings={"profiles": [profile]}) as h:
        h.create(h.node("n1"), h.node("n2"), h.pod("victim", cpu=1), h.pod("fine", cpu=1))
        h.run_until_running("fine")
        h.run_for(20)
        state = h.pod_state("victim")
        assert (state.node, state.reason) == ("", "SchedulerError")
        assert "Broken" in state.message
        assert "the plugin is broken" in state.message
        assert 3 <= len(h.attempts("victim")) <= 6, "error backoff: about 0, 1, 3, 7, 17 s"
        plugin.point = "none"
        h.run_until_running("victim", timeout=15)
        h.check_converged()


def test_a_node_without_allocatable_gets_no_pods() -> None:
    with Harness(seed=4) as h:
        bare = h.node("bare")
        bare["status"] = {"capacity": {}, "allocatable": {}}
        h.create(bare, h.pod("a", cpu=1))
        h.run_for(5)
        state = h.pod_state("a")
        assert state.node == ""
        assert state.message.startswith("0/1 nodes are available: 1 ")
        h.create(h.node("n1"))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n1"


def test_a_node_without_any_status_and_kubelet_gets_no_pods() -> None:
    with Harness(seed=5) as h:
        bare = h.node("bare", kubelet=False)
        del bare["status"]
        h.create(bare, h.pod("a", cpu=1), h.pod("nothing"))
        h.run_for(5)
        assert {state.node for state in h.pod_states().values()} == {""}
        h.check_converged()


def test_a_node_with_a_nonsense_quantity_gets_no_pods_and_breaks_nothing() -> None:
    with Harness(seed=6) as h:
        metadata = {"name": "odd", "uid": "odd", "labels": {"kubernetes.io/hostname": "odd"}}
        amounts = {"cpu": "four", "memory": "1Gi", "pods": "10"}
        status = {"allocatable": amounts, "capacity": amounts}
        h.server.write_raw(kind("nodes"), {"metadata": metadata, "spec": {}, "status": status})
        h.create(h.pod("a", cpu=1))
        h.run_for(5)
        assert h.pod_state("a").node == ""
        h.create(h.node("n1"))
        h.run_until_bound("a")
        assert h.pod_state("a").node == "n1"


def test_a_pod_with_a_nonsense_quantity_stays_pending_and_says_so() -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1"))
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "many"}}}
        h.server.write_raw(kind("pods"), raw_pod("odd", containers=[container]))
        h.create(h.pod("good", cpu=1))
        h.run_until_running("good")
        h.run_for(10)
        state = h.pod_state("odd")
        assert state.node == ""
        assert "many" in state.message
        assert "cpu" in state.message
        h.delete("pods", "odd", grace=0)
        h.run_for(5)
        h.check_converged()


@pytest.mark.slow
def test_one_undecodable_pod_among_five_thousand() -> None:
    with Harness(seed=8, scheduler=False, services=None) as h:
        h.create(h.node("n1", cpu=100, pods=1000))
        for number in range(5000):
            pod = raw_pod(f"p{number:04}", nodeName=f"other-{number}")
            h.server.write_raw(kind("pods"), pod)
        bad = raw_pod("p2500x")
        bad["spec"] = {**bad["spec"], "hostNetwork": "perhaps"}  # type: ignore[dict-item]
        h.server.write_raw(kind("pods"), bad)
        h.create(h.pod("good", cpu=1))
        h.start_scheduler()
        h.run_until_bound("good")
        statistics = h.scheduler.statistics().informers["pods"]
        assert statistics.known == 5002
        assert statistics.undecodable in (1, 2), "at the list, and when its status has changed"
        h.run_for(10)
        state = h.pod_state("p2500x")
        assert state.node == ""
        assert "hostNetwork" in state.message
        [event] = h.events("p2500x", reason="FailedScheduling")
        assert "hostNetwork" in event["message"]
        assert len(h.requests(path="/p2500x")) <= 6, "told once, not for ever"


def resource_claim_pod(h: Harness) -> dict[str, object]:
    return h.pod("odd", cpu=1, resourceClaims=[{"name": "gpu", "resourceClaimName": "one-gpu"}])


def group_pod(h: Harness) -> dict[str, object]:
    return h.pod("odd", cpu=1, schedulingGroup={"podGroupName": "team"})


@pytest.mark.parametrize(("build", "named"), [(resource_claim_pod, "gpu"), (group_pod, "team")])
def test_what_is_not_built_yet_stays_pending_with_its_name(build: object, named: str) -> None:
    with Harness(seed=9) as h:
        h.create(h.node("n1"), build(h), h.pod("good", cpu=1))  # type: ignore[operator]
        h.run_until_running("good")
        h.run_for(10)
        state = h.pod_state("odd")
        assert state.node == ""
        assert named in state.message, state.message
        assert h.bindings("odd") == []
        assert h.events("odd", reason="FailedScheduling")
        h.check_converged()


def test_410_in_the_middle_of_the_first_list() -> None:
    with Harness(seed=10, scheduler=False, services=None) as h:
        for number in range(1200):
            h.server.write_raw(kind("pods"), raw_pod(f"p{number:04}", nodeName="elsewhere"))
        h.create(h.node("n1"), h.pod("a", cpu=1))
        h.faults.gone(Gone.LIST, client="scheduler", path="/pods$")
        h.start_scheduler()
        h.run_until_bound("a")
        assert h.requests(client="scheduler", verb="list", path="/pods$", status=410)
        assert h.scheduler.statistics().informers["pods"].known == 1201
