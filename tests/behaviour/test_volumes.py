"""Pods with claims: scheduler, calls and volume controller together. Field cases E8 and E13."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.client.api import PatchType
from pilotage.localcluster.cluster import ServiceSettings
from pilotage.testing.builders import claim, local_volume, storage_class, uses
from pilotage.testing.harness import Harness

SELECTED_NODE = "volume.kubernetes.io/selected-node"
OUTSIDE = "example.com/outside"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def outside(*, seed: int = 1, **more: Any) -> Harness:
    """A cluster in which the volumes of the class `slow` are made by the test."""
    settings = ServiceSettings(leases=False, external_provisioners=(OUTSIDE,))
    harness = Harness(seed=seed, services=settings, **more).start()
    harness.create(storage_class("slow", provisioner=OUTSIDE))
    return harness


def phase(h: Harness, plural: str, name: str) -> str:
    return str((h.get(plural, name).get("status") or {}).get("phase", ""))


def selected(h: Harness, name: str) -> str:
    return str((h.get("pvc", name)["metadata"].get("annotations") or {}).get(SELECTED_NODE, ""))


def reset_selection(h: Harness, name: str) -> None:
    """As a provisioner does that cannot make the volume there."""
    body = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    h.patch("pvc", name, body, patch_type=PatchType.MERGE)


def test_a_claim_is_provisioned_where_its_pod_goes() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", zone="a", cpu=1), h.node("n2", zone="b"))
        h.create(storage_class("fast"), claim("data", "fast"), h.pod("a", cpu=2, volumes=uses("data")))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n2"
        assert selected(h, "data") == "n2"
        assert phase(h, "pvc", "data") == "Bound"
        volume = h.get("pvc", "data")["spec"]["volumeName"]
        assert phase(h, "pv", volume) == "Bound"
        assert h.get("pv", volume)["spec"]["claimRef"]["name"] == "data"
        h.settle()
        h.check_converged()
        # The pod was bound after its claim was.
        (bound,) = h.bindings("a")
        (named,) = h.requests(method="PATCH", path="/persistentvolumeclaims/data$", client="services")
        assert named.number < bound.number


def test_a_bound_claim_keeps_its_pod_in_its_zone() -> None:
    with Harness(seed=2) as h:
        h.create(h.node("n1", zone="a"), storage_class("fast"), claim("data", "fast"))
        h.create(h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until_running("a")
        h.create(h.node("n2", zone="b", cpu=64))
        h.delete("pods", "a", grace=0)
        h.create(h.pod("b", cpu=4, volumes=uses("data")))
        h.run_until_running("b")
        assert h.pod_state("b").node == "n1"
        h.create(h.pod("c", cpu=3, volumes=uses("data")))
        h.run_for(5)
        message = h.pod_state("c").message
        assert "1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity" in message


def test_a_static_volume_is_taken_where_it_is() -> None:
    with Harness(seed=3) as h:
        h.create(*(h.node(name) for name in ("n1", "n2", "n3")))
        h.create(storage_class("local", provisioner=NO_PROVISIONER))
        h.create(local_volume("big", "local", "n1", size="20Gi"), local_volume("small", "local", "n2"))
        h.run_until(lambda: phase(h, "pv", "small") == "Available" == phase(h, "pv", "big"))
        h.create(claim("data", "local", size="15Gi"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n1"
        assert h.get("pvc", "data")["spec"]["volumeName"] == "big"
        assert phase(h, "pv", "small") == "Available"
        h.check_converged()


def test_an_immediate_claim_keeps_its_pod_pending_until_it_is_bound() -> None:
    with Harness(seed=4) as h:
        h.create(h.node("n1"), storage_class("now", provisioner=NO_PROVISIONER, waits=False))
        h.create(claim("data", "now"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: h.pod_state("a").message)
        assert "pod has unbound immediate PersistentVolumeClaims" in h.pod_state("a").message
        h.run_for(30)
        assert h.pod_state("a").node == ""
        h.create(local_volume("disk", "now"))
        h.run_until_running("a")
        assert phase(h, "pvc", "data") == "Bound"
        h.check_converged()


def test_a_missing_claim_is_waited_for() -> None:
    with Harness(seed=5) as h:
        h.create(h.node("n1"), storage_class("fast"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: h.pod_state("a").message)
        assert 'persistentvolumeclaim "data" not found' in h.pod_state("a").message
        h.create(claim("data", "fast"))
        h.run_until_running("a")


@pytest.mark.parametrize("seed", range(4))
def test_two_pods_that_race_for_one_local_volume(seed: int) -> None:
    """The one that is decided first has it; the next decision knows, before anything is written."""
    with Harness(seed=seed) as h:
        h.create(h.node("n1"), h.node("n2"), storage_class("local", provisioner=NO_PROVISIONER))
        h.create(local_volume("disk", "local", "n1"))
        h.run_until(lambda: phase(h, "pv", "disk") == "Available")
        h.create(claim("one", "local"), claim("two", "local"))
        h.create(h.pod("a", cpu=1, volumes=uses("one")), h.pod("b", cpu=1, volumes=uses("two")))
        h.run_until(lambda: {h.pod_state("a").phase, h.pod_state("b").phase} == {"Running", "Pending"})
        h.run_for(5)
        loser = "a" if h.pod_state("a").node == "" else "b"
        assert "didn't find available persistent volumes to bind" in h.pod_state(loser).message
        h.check_converged()
        h.create(local_volume("other", "local", "n2"))
        h.run_until_running(loser)
        assert h.pod_state(loser).node == "n2"


def test_e13_a_stale_node_is_replaced() -> None:
    """The claim was sent to a node that is gone: the pod moves, and the claim before it is bound."""
    with outside() as h:
        h.create(h.node("n2"), claim("data", "slow", annotations={SELECTED_NODE: "n1"}))
        h.create(h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: selected(h, "data") == "n2")
        h.run_for(10)
        assert h.pod_state("a").node == ""
        assert h.bindings("a") == []


def test_e13_a_known_node_is_the_only_one() -> None:
    with outside() as h:
        h.create(h.node("n1", cpu=1), h.node("n2", cpu=8))
        h.create(claim("data", "slow", annotations={SELECTED_NODE: "n1"}))
        h.create(h.pod("a", cpu=2, volumes=uses("data")))
        h.run_until(lambda: h.pod_state("a").message)
        assert "1 node(s) didn't find available persistent volumes to bind" in h.pod_state("a").message
        # The node goes, and with it its claim to the claim.
        h.delete("nodes", "n1")
        h.create(h.node("n3", cpu=1))
        h.run_until(lambda: selected(h, "data") == "n2")


def test_e13_the_provisioner_gives_up() -> None:
    """The annotation is taken back while PreBind waits: it fails at once and says for which claim."""
    with outside() as h:
        h.create(h.node("n1"), claim("data", "slow"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: selected(h, "data") == "n1")
        h.settle()
        assert h.pod_state("a").nominated == "n1"
        start = h.now
        reset_selection(h, "data")
        h.run_until(lambda: h.pod_state("a").message, timeout=1.0)
        assert h.now - start < 1.0
        message = h.pod_state("a").message
        assert 'provisioning failed for PVC "data"' in message
        (event,) = h.events("a", reason="FailedScheduling")
        assert 'provisioning failed for PVC "data"' in event["message"]
        assert h.bindings("a") == []
        # It backs off and tries again.
        h.run_until(lambda: selected(h, "data") == "n1")
        assert h.engine.cluster.volumes.promising


def test_nothing_is_bound_before_its_claims_are() -> None:
    with outside() as h:
        h.create(h.node("n1"), storage_class("fast"), claim("one", "fast"), claim("two", "slow"))
        h.create(h.pod("a", cpu=1, volumes=uses("one", "two")))
        h.run_until(lambda: phase(h, "pvc", "one") == "Bound")
        h.run_for(60)
        assert h.bindings("a") == []
        h.create(made_for(h, "two"))
        h.run_until_running("a")
        h.check_converged()


def made_for(h: Harness, name: str) -> dict[str, Any]:
    """What a provisioner creates for a claim."""
    uid = h.get("pvc", name)["metadata"]["uid"]
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid}
    return local_volume(f"made-for-{name}", "slow", claimRef=reference)


def timeout(seconds: int) -> dict[str, Any]:
    args = {"kind": "VolumeBindingArgs", "bindTimeoutSeconds": seconds}
    plugin = {"name": "VolumeBinding", "args": args}
    return {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [plugin]}]}


def test_the_bind_timeout_gives_assumed_volumes_back() -> None:
    """A volume is reserved beside a claim that nobody provisions: after the timeout both are free."""
    with outside(settings=timeout(30)) as h:
        h.create(h.node("n1"), storage_class("local", provisioner=NO_PROVISIONER))
        h.create(claim("made", "slow"), h.pod("a", cpu=1, volumes=uses("made")))
        h.run_until(lambda: selected(h, "made") == "n1")
        volumes = h.engine.cluster.volumes
        uid = h.get("pods", "a")["metadata"]["uid"]
        assert volumes.promising == {uid}
        h.run_until(lambda: h.pod_state("a").message, timeout=31)
        assert h.now >= 30
        assert 'timed out after 30s waiting for claims "made"' in h.pod_state("a").message
        assert volumes.promising == frozenset()
        h.delete("pods", "a", grace=0)
        h.settle()
        assert volumes.promising == frozenset()
        h.check_converged()


def test_a_deleted_pod_gives_its_promise_back() -> None:
    with outside() as h:
        h.create(h.node("n1"), claim("data", "slow"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: selected(h, "data") == "n1")
        h.delete("pods", "a", grace=0)
        h.settle()
        assert h.engine.cluster.volumes.promising == frozenset()
        h.check_converged()


def test_a_node_that_goes_ends_the_wait() -> None:
    with outside() as h:
        h.create(h.node("n1"), claim("data", "slow"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: selected(h, "data") == "n1")
        h.create(h.node("n2"))
        h.delete("nodes", "n1")
        h.run_until(lambda: selected(h, "data") == "n2")
        h.create(made_for(h, "data"))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n2"


def test_a_volume_that_somebody_else_took() -> None:
    """Between decision and write another claim gets it: the pod is decided again, the other keeps it."""
    with Harness(seed=6) as h:
        h.create(h.node("n1"), storage_class("local", provisioner=NO_PROVISIONER))
        h.create(local_volume("disk", "local", "n1"), local_volume("next", "local", "n1", size="20Gi"))
        h.run_until(lambda: phase(h, "pv", "next") == "Available")
        h.faults.latency(before=2.0, method="PATCH", path="/persistentvolumes/disk$", client="scheduler")
        h.create(claim("data", "local"), h.pod("a", cpu=1, volumes=uses("data")))
        h.run_for(0.5)
        reference = {"namespace": "elsewhere", "name": "theirs", "uid": "other-uid"}
        h.patch("pv", "disk", {"spec": {"claimRef": reference}})
        h.run_until_running("a")
        assert h.get("pvc", "data")["spec"]["volumeName"] == "next"
        assert h.get("pv", "disk")["spec"]["claimRef"]["name"] == "theirs"


def test_a_write_that_fails_is_tried_again() -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1"), storage_class("fast"), claim("data", "fast"))
        h.faults.answer(
            503, method="PATCH", path="/persistentvolumeclaims/data$", client="scheduler", times=2
        )
        h.create(h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until_running("a")
        assert len(h.attempts("a")) == 1


def test_a_new_scheduler_finishes_what_the_old_one_began() -> None:
    with outside() as h:
        h.create(h.node("n1"), h.node("n2"), claim("data", "slow"))
        h.create(h.pod("a", cpu=1, volumes=uses("data")))
        h.run_until(lambda: selected(h, "data"))
        node = selected(h, "data")
        h.restart_scheduler()
        h.run_for(2)
        h.create(made_for(h, "data"))
        h.run_until_running("a")
        assert h.pod_state("a").node == node


def test_two_pods_share_a_claim() -> None:
    """Where the first sends it, the second has to go; one write serves both."""
    with outside() as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), claim("data", "slow"))
        h.create(*(h.pod(name, cpu=1, volumes=uses("data")) for name in "ab"))
        h.run_until(lambda: selected(h, "data"))
        h.settle()
        h.create(made_for(h, "data"))
        h.run_until_running("a", "b")
        assert h.pod_state("a").node == h.pod_state("b").node
        h.settle()
        h.check_converged()


def test_e8_a_claim_for_one_pod_only() -> None:
    """Its user blocks the equal, who is woken by its end; the higher one preempts it, and only it."""
    with Harness(seed=8) as h:
        h.create(h.node("n1"), h.node("n2"), storage_class("fast"))
        h.create(claim("data", "fast", mode="ReadWriteOncePod"))
        h.create(h.pod("other", cpu=1), h.pod("low", cpu=1, volumes=uses("data"), grace=0))
        h.run_until_running("low", "other")
        h.create(h.pod("equal", cpu=1, volumes=uses("data")))
        h.run_until(lambda: h.pod_state("equal").message)
        text = "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        assert text in h.pod_state("equal").message
        h.create(h.pod("high", cpu=1, priority=100, volumes=uses("data"), grace=0))
        h.run_until_running("high")
        assert not h.pod_state("low").exists
        assert h.pod_state("other").phase == "Running"
        assert h.pod_state("equal").node == ""
        h.delete("pods", "high", grace=0)
        h.run_until_running("equal")


def test_e8_an_assumed_user_counts_and_namespaces_do_not_mix() -> None:
    with outside() as h:
        h.create(h.node("n1"), storage_class("fast"))
        for namespace in ("one", "two"):
            h.create(claim("data", "fast", mode="ReadWriteOncePod", namespace=namespace))
        h.create(claim("slow", "slow"))
        h.create(h.pod("first", cpu=1, namespace="one", volumes=uses("data")))
        h.create(h.pod("second", cpu=1, namespace="one", volumes=uses("data")))
        h.create(h.pod("third", cpu=1, namespace="two", volumes=uses("data")))
        h.run_until_running("first", namespace="one")
        h.run_until_running("third", namespace="two")
        h.run_for(5)
        assert "ReadWriteOncePod" in h.pod_state("second", "one").message


def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    with Harness(seed=9) as h:
        spec = claim("x", "fast")["spec"]
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        h.create(h.node("n1"), storage_class("fast"), h.pod("a", cpu=1, volumes=[volume]))
        h.run_until_running("a")
        assert phase(h, "pvc", "a-scratch") == "Bound"
        h.delete("pods", "a", grace=0)
        h.run_until(lambda: h.find("pvc", "a-scratch") is None and not h.objects("pv"))


def test_a_stateful_set_with_claims() -> None:
    with Harness(seed=10) as h:
        h.create(h.node("n1", zone="a", cpu=2), h.node("n2", zone="b", cpu=2), storage_class("fast"))
        template = {"metadata": {"name": "data"}, "spec": claim("x", "fast")["spec"]}
        pod = h.pod("db", cpu=1)
        h.create(h.stateful_set("db", 3, pod, volumeClaimTemplates=[template]))
        h.run_until_running("db-0", "db-1", "db-2")
        assert [phase(h, "pvc", f"data-db-{n}") for n in range(3)] == ["Bound"] * 3
        before = {f"db-{n}": h.pod_state(f"db-{n}").node for n in range(3)}
        # Another pod of the same name finds its data again.
        h.delete("pods", "db-1", grace=0)
        h.run_until_running("db-0", "db-1", "db-2")
        assert h.pod_state("db-1").node == before["db-1"]
        h.settle()
        h.check_converged()


def test_a_released_volume_goes_with_its_class_policy() -> None:
    with Harness(seed=11) as h:
        h.create(h.node("n1"), storage_class("fast"), storage_class("kept", reclaimPolicy="Retain"))
        h.create(claim("one", "fast"), claim("two", "kept"))
        h.create(h.pod("a", cpu=1, volumes=uses("one", "two")))
        h.run_until_running("a")
        h.delete("pods", "a", grace=0)
        h.delete("pvc", "one")
        h.delete("pvc", "two")
        h.run_until(lambda: [one["status"]["phase"] for one in h.objects("pv")] == ["Released"])
