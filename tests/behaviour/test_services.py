"""Kubelets and controllers over the embedded server: what a user sees with kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.client.errors import ApiError
from pilotage.localcluster.cluster import ServiceSettings
from pilotage.testing.harness import Harness


def owned(h: Harness, name: str, plural: str = "replicasets") -> list[dict[str, Any]]:
    return [
        tree
        for tree in h.objects(plural, "default")
        if any(owner["name"] == name for owner in tree["metadata"].get("ownerReferences", ()))
    ]


def status(h: Harness, plural: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = h.get(plural, name).get("status") or {}
    return found


def is_rolled_out(h: Harness, name: str, replicas: int) -> bool:
    deployment = h.get("deployments", name)
    have = deployment["status"]
    return (
        have["observedGeneration"] == deployment["metadata"]["generation"]
        and have["updatedReplicas"] == have["availableReplicas"] == have["replicas"] == replicas
    )


def set_image(h: Harness, name: str, image: str) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    h.patch("deployments", name, {"spec": {"template": template}})


def with_nodes(count: int = 3, **options: Any) -> Harness:
    h = Harness(seed=1, **options).start()
    h.create(*(h.node(f"n{i}", cpu=8) for i in range(count)))
    return h


def test_a_rolling_update_keeps_enough_pods_available() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 8, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 8))
        set_image(h, "web", "registry.example/main:2")
        least = most = 8

        def is_done() -> bool:
            nonlocal least, most
            least = min(least, status(h, "deployments", "web").get("availableReplicas", 0))
            most = max(most, sum(tree["spec"]["replicas"] for tree in owned(h, "web")))
            return is_rolled_out(h, "web", 8)

        h.run_until(is_done, timeout=120)
        assert least >= 6
        assert most <= 10
        h.run_for(5)
        images = {pod["spec"]["containers"][0]["image"] for pod in h.objects("pods", "default")}
        assert images == {"registry.example/main:2"}
        assert sorted(tree["spec"]["replicas"] for tree in owned(h, "web")) == [0, 8]
        revisions = [tree["metadata"]["annotations"] for tree in owned(h, "web")]
        assert sorted(r["deployment.kubernetes.io/revision"] for r in revisions) == ["1", "2"]


def test_an_update_that_cannot_be_scheduled_leaves_the_old_pods() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 4, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 4))
        h.patch("deployments", "web", {"spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}})
        h.run_for(60)
        running = [state for state in h.pod_states().values() if state.phase == "Running"]
        assert len(running) == 3
        h.label("nodes", "n0", gpu="yes")
        h.run_until(lambda: is_rolled_out(h, "web", 4))


def test_recreate_never_runs_two_revisions_at_once() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 3, h.pod("x", cpu=1), strategy={"type": "Recreate"}))
        h.run_until(lambda: is_rolled_out(h, "web", 3))
        set_image(h, "web", "registry.example/main:2")

        def is_done() -> bool:
            images = {pod["spec"]["containers"][0]["image"] for pod in h.objects("pods", "default")}
            assert len(images) <= 1
            return is_rolled_out(h, "web", 3) and images == {"registry.example/main:2"}

        h.run_until(is_done, timeout=120)


def test_a_deleted_pod_of_a_deployment_comes_back() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 2, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 2))
        [first, _] = h.pod_states("default")
        h.delete("pods", first)
        h.run_until(lambda: not h.pod_state(first).exists)
        h.run_until(lambda: is_rolled_out(h, "web", 2))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_deployment_deletes_what_it_owns(propagation: str) -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 3, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 3))
        h.delete("deployments", "web", propagation=propagation)
        assert (h.find("deployments", "web") is not None) == (propagation == "Foreground")
        h.run_until(lambda: not h.objects("pods", "default"))
        h.run_until(lambda: not h.objects("replicasets") and h.find("deployments", "web") is None)


def test_orphaned_pods_stay_and_can_be_adopted_again() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 2, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 2))
        before = set(h.pod_states("default"))
        h.delete("deployments", "web", propagation="Orphan")
        h.run_until(lambda: h.find("deployments", "web") is None)
        h.run_for(10)
        [replica_set] = h.objects("replicasets", "default")
        assert not replica_set["metadata"].get("ownerReferences")
        h.delete("replicasets", replica_set["metadata"]["name"], propagation="Orphan")
        h.run_until(lambda: not h.objects("replicasets"))
        h.run_for(10)
        assert set(h.pod_states("default")) == before
        again = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "again"}}
        spec = {**replica_set["spec"], "replicas": 2}
        h.create({**again, "spec": spec})
        h.run_until(lambda: status(h, "replicasets", "again").get("readyReplicas") == 2)
        assert set(h.pod_states("default")) == before


def test_a_stateful_set_comes_up_in_order_and_keeps_its_names() -> None:
    with with_nodes() as h:
        h.create(h.stateful_set("db", 3, h.pod("x", cpu=1)))
        h.run_until_running("db-0")
        assert not h.pod_state("db-1").is_ready
        h.run_until_running("db-1", "db-2")
        h.delete("pods", "db-1")
        h.run_until(lambda: not h.pod_state("db-1").exists)
        h.run_until_running("db-1")
        h.scale("db", 1, plural="statefulsets")
        h.run_until(lambda: set(h.pod_states("default")) == {"db-0"})
        h.run_until(lambda: status(h, "statefulsets", "db")["replicas"] == 1)


def test_a_stateful_set_with_claims_waits_for_volumes() -> None:
    with with_nodes() as h:
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
        h.create(h.stateful_set("db", 2, h.pod("x", cpu=1), volumeClaimTemplates=[claim]))
        h.run_for(10)
        assert [tree["metadata"]["name"] for tree in h.objects("pvc")] == ["data-db-0", "data-db-1"]
        state = h.pod_state("db-0")
        assert (state.node, state.reason) == ("", "Unschedulable")
        assert "pod has unbound immediate PersistentVolumeClaims" in state.message
        # The claims name no class: they get the default one as soon as there is one.
        default = {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        h.create({**h.storage_class("standard"), "metadata": default})
        h.run_until_running("db-0", "db-1")


def test_a_namespace_is_emptied_before_it_goes() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 3, h.pod("x", cpu=1), namespace="shop"))
        h.create(h.disruption_budget("web", {"app": "web"}, namespace="shop", minAvailable=1))
        h.run_until(lambda: sum(s.is_ready for s in h.pod_states("shop").values()) == 3)
        h.delete("namespaces", "shop")
        with pytest.raises(ApiError, match="terminat"):
            h.create(h.pod("late", namespace="shop"))
        h.run_until(lambda: h.find("namespaces", "shop") is None, timeout=30)
        assert h.objects("pods", "shop") == []
        assert h.objects("events", "shop") == []
        h.create(h.pod("again", cpu=1, namespace="shop"))
        h.run_until_running("again", namespace="shop")


def test_evictions_respect_a_budget() -> None:
    with with_nodes() as h:
        h.create(h.disruption_budget("web", {"app": "web"}, minAvailable=2))
        h.create(h.deployment("web", 3, h.pod("x", cpu=1)))
        h.run_until(lambda: status(h, "pdb", "web").get("disruptionsAllowed") == 1)
        names = list(h.pod_states("default"))
        assert h.evict(names[0])
        assert not h.evict(names[1])
        h.run_until(lambda: status(h, "pdb", "web").get("disruptionsAllowed") == 1)
        assert status(h, "pdb", "web")["disruptedPods"] == {}
        assert h.evict(names[1])


def test_pods_of_a_deleted_node_are_replaced_elsewhere() -> None:
    with with_nodes() as h:
        h.create(h.deployment("web", 6, h.pod("x", cpu=1)))
        h.run_until(lambda: is_rolled_out(h, "web", 6))
        h.delete("nodes", "n1")
        h.run_for(10)
        assert any(state.node == "n1" for state in h.pod_states().values()), "it may come back"
        h.run_for(30)
        h.run_until(lambda: is_rolled_out(h, "web", 6))
        assert {state.node for state in h.pod_states().values()} == {"n0", "n2"}
        h.check_converged()


def test_a_bare_node_from_kubectl_becomes_a_machine() -> None:
    with Harness(seed=2) as h:
        h.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a")
        node = h.get("nodes", "bare")
        assert node["status"]["allocatable"]["cpu"] == "4"
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "bare"
        ready = [c for c in node["status"]["conditions"] if c["type"] == "Ready"]
        assert [c["status"] for c in ready] == ["True"]
        pod = h.get("pods", "a")
        assert pod["status"]["hostIP"] == node["status"]["addresses"][0]["address"]
        assert pod["status"]["podIP"]
        assert pod["status"]["qosClass"] == "Burstable"
        [container] = pod["status"]["containerStatuses"]
        assert container["allocatedResources"] == {"cpu": "1"}


def test_nodes_without_kubelet_run_nothing_until_they_get_one() -> None:
    with Harness(seed=3) as h:
        h.create(h.node("n1", kubelet=False), h.pod("a", cpu=1))
        h.run_until_bound("a")
        h.run_for(30)
        assert h.pod_state("a").phase == "Pending"
        h.delete("pods", "a", grace=5)
        h.run_for(60)
        assert h.pod_state("a").is_terminating
        h.patch("nodes", "n1", {"metadata": {"annotations": {"pilotage.dev/kubelet": None}}})
        h.run_until(lambda: not h.pod_state("a").exists, timeout=10)


def test_a_grace_period_can_be_lived_through() -> None:
    with Harness(seed=4) as h:
        notes = {"pilotage.dev/stop-seconds": "120"}
        h.create(h.node("n1", cpu=4), h.pod("slow", cpu=4, grace=120, annotations=notes))
        h.run_until_running("slow")
        h.delete("pods", "slow")
        h.create(h.pod("next", cpu=4))
        h.run_for(115)
        assert h.pod_state("slow").is_terminating
        assert not h.pod_state("next").node
        h.run_until_running("next", timeout=10)


def test_a_second_delete_shortens_the_grace() -> None:
    with Harness(seed=5, services=ServiceSettings(leases=False, stop_seconds=None)) as h:
        h.create(h.node("n1"), h.pod("a", grace=60))
        h.run_until_running("a")
        h.delete("pods", "a")
        h.run_for(10)
        h.delete("pods", "a", grace=1)
        h.run_until(lambda: not h.pod_state("a").exists, timeout=5)


def test_leases_are_kept_and_go_with_their_node() -> None:
    with Harness(seed=6, services=ServiceSettings()) as h:
        h.create(h.node("n1"), h.node("n2"))
        h.run_for(31)
        leases = h.objects("leases", "kube-node-lease")
        assert [tree["metadata"]["name"] for tree in leases] == ["n1", "n2"]
        renewals = h.requests(client="services", verb="patch", path="/leases/n1$", status=200)
        assert 2 <= len(renewals) <= 4
        h.delete("nodes", "n2")
        h.run_for(1)
        assert [tree["metadata"]["name"] for tree in h.objects("leases", "kube-node-lease")] == ["n1"]


def test_a_pod_that_runs_for_a_while_ends_well_and_frees_its_room() -> None:
    with Harness(seed=7) as h:
        notes = {"pilotage.dev/run-seconds": "30"}
        h.create(h.node("n1", cpu=4), h.pod("job", cpu=4, annotations=notes, restartPolicy="Never"))
        h.run_until_running("job")
        h.create(h.pod("next", cpu=4))
        h.run_for(5)
        assert not h.pod_state("next").node
        h.run_until_running("next", timeout=40)
        assert h.pod_state("job").phase == "Succeeded"
        h.check_converged()
