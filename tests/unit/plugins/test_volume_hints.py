"""Which events wake a pod that a volume plugin rejected."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.framework.events import Action, Hint, Resource
from pilotage.framework.plugin import Plugin
from pilotage.plugins.node_volume_limits import NodeVolumeLimits
from pilotage.plugins.volume_binding import VolumeBinding
from pilotage.plugins.volume_restrictions import VolumeRestrictions
from pilotage.plugins.volume_zone import VolumeZone
from pilotage.state.podinfo import PodInfo
from statekit import node, pod
from volumekit import attachment, capacity, csi_driver, csi_node, pv, pvc, sc, uses, view_of

ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE_OTHER, Action.DELETE
EPHEMERAL = [{"name": "scratch", "ephemeral": {}}]
ZONE = "topology.kubernetes.io/zone"
BINDING, ZONES = VolumeBinding(), VolumeZone()
LIMITS, RESTRICTIONS = NodeVolumeLimits(), VolumeRestrictions()


def waiting() -> PodInfo:
    return pod("p", volumes=[*uses("c"), *EPHEMERAL])


def wakes(plugin: Plugin, resource: Resource, action: Action, old: Any, new: Any) -> bool:
    old, new = (view_of(one) if isinstance(one, dict) else one for one in (old, new))
    matching = [
        one
        for one in plugin.events_to_register()
        if one.event.resource is resource and one.event.action & action
    ]
    return any(one.hint is None or one.hint(waiting(), old, new) is Hint.QUEUE for one in matching)


@pytest.mark.parametrize("plugin", [BINDING, ZONES, LIMITS, RESTRICTIONS])
@pytest.mark.parametrize(
    ("claim", "is_own"),
    [(pvc("c"), True), (pvc("d"), False), (pvc("c", namespace="elsewhere"), False), (pvc("p-scratch"), True)],
)
def test_claims_of_the_pod(plugin: Plugin, claim: dict[str, Any], is_own: bool) -> None:
    expected = is_own and not (plugin is RESTRICTIONS and claim["metadata"]["name"] == "p-scratch")
    assert wakes(plugin, Resource.PVC, ADD, None, claim) == expected
    hears_updates = plugin in (BINDING, ZONES)
    assert wakes(plugin, Resource.PVC, UPDATE, claim, claim) == (expected and hears_updates)
    assert not wakes(plugin, Resource.PVC, DELETE, claim, None)


TOPOLOGY = [{ZONE: ["a"]}]


@pytest.mark.parametrize(
    ("plugin", "old", "new", "expected"),
    [
        (BINDING, None, sc("x"), True),
        (BINDING, sc("x"), sc("x", topologies=TOPOLOGY), True),
        (BINDING, sc("x"), sc("x", mountOptions=["ro"]), False),
        (ZONES, None, sc("x"), True),
        (ZONES, None, sc("x", waits=False), False),
        (ZONES, sc("x"), sc("x", topologies=TOPOLOGY), False),
        (LIMITS, None, sc("x"), False),
    ],
)
def test_classes(plugin: Plugin, old: Any, new: Any, expected: bool) -> None:
    assert wakes(plugin, Resource.STORAGE_CLASS, UPDATE if old else ADD, old, new) == expected


@pytest.mark.parametrize(
    ("plugin", "old", "new", "expected"),
    [
        (BINDING, None, pv("v"), True),
        (BINDING, pv("v"), pv("v"), True),
        (ZONES, None, pv("v"), True),
        (ZONES, pv("v"), pv("v"), False),
        (ZONES, pv("v"), pv("v", labels={ZONE: "a"}), True),
        (ZONES, pv("v", labels={"x": "y"}), pv("v"), False),
        (RESTRICTIONS, None, pv("v"), False),
    ],
)
def test_volumes(plugin: Plugin, old: Any, new: Any, expected: bool) -> None:
    assert wakes(plugin, Resource.PV, UPDATE if old else ADD, old, new) == expected


@pytest.mark.parametrize(
    ("plugin", "old", "new", "expected"),
    [
        (LIMITS, None, csi_node("n", csi=1), True),
        (LIMITS, csi_node("n", csi=1), csi_node("n", csi=2), True),
        (LIMITS, csi_node("n", csi=2), csi_node("n", csi=1), False),
        (LIMITS, csi_node("n", csi=2), csi_node("n", csi=2), False),
        (LIMITS, csi_node("n", csi=1), csi_node("n", csi=None), True),
        (LIMITS, csi_node("n", csi=1), csi_node("n", csi=1, other=0), True),
        (BINDING, None, csi_node("n"), True),
        (BINDING, csi_node("n", csi=1), csi_node("n", csi=2), False),
        (ZONES, None, csi_node("n"), False),
    ],
)
def test_csi_nodes(plugin: Plugin, old: Any, new: Any, expected: bool) -> None:
    assert wakes(plugin, Resource.CSI_NODE, UPDATE if old else ADD, old, new) == expected


def test_capacity_and_drivers() -> None:
    small, large = capacity("r", "fast", "1Gi"), capacity("r", "fast", "2Gi")
    room = Resource.CSI_STORAGE_CAPACITY
    assert wakes(BINDING, room, ADD, None, small)
    assert wakes(BINDING, room, UPDATE, small, large)
    assert not wakes(BINDING, room, UPDATE, large, small)
    assert not wakes(BINDING, room, UPDATE, small, {**large, "maximumVolumeSize": "1Gi"})
    counting, not_counting = csi_driver("d", storageCapacity=True), csi_driver("d", storageCapacity=False)
    assert wakes(BINDING, Resource.CSI_DRIVER, UPDATE, counting, not_counting)
    assert not wakes(BINDING, Resource.CSI_DRIVER, UPDATE, not_counting, counting)
    assert not wakes(BINDING, Resource.CSI_DRIVER, ADD, None, not_counting)
    assert wakes(LIMITS, Resource.VOLUME_ATTACHMENT, DELETE, attachment("a", "n", "v"), None)
    assert not wakes(LIMITS, Resource.VOLUME_ATTACHMENT, ADD, None, attachment("a", "n", "v"))


def test_nodes() -> None:
    for plugin in (BINDING, ZONES):
        assert wakes(plugin, Resource.NODE, ADD, None, node("n"))
        assert wakes(plugin, Resource.NODE, Action.UPDATE_NODE_LABEL, node("n"), node("n"))
        assert not wakes(plugin, Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, node("n"), node("n"))
    assert wakes(RESTRICTIONS, Resource.NODE, ADD, None, node("n"))
    assert not wakes(LIMITS, Resource.NODE, ADD, None, node("n"))


@pytest.mark.parametrize(
    ("gone", "restrictions", "limits"),
    [
        (pod("x", on="n"), False, False),
        (pod("x", on="n", volumes=uses("c")), True, True),
        (pod("x", on="n", volumes=uses("d")), False, True),
        (pod("x", on="n", namespace="elsewhere", volumes=uses("c")), False, True),
        (pod("x", volumes=uses("d")), False, False),
    ],
)
def test_pods_that_leave(gone: PodInfo, restrictions: bool, limits: bool) -> None:
    assert wakes(RESTRICTIONS, Resource.POD, DELETE, gone, None) == restrictions
    assert wakes(LIMITS, Resource.POD, DELETE, gone, None) == limits


def test_a_disk_that_leaves() -> None:
    disk = [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]
    (registration, *_) = RESTRICTIONS.events_to_register()
    assert registration.hint is not None
    gone = pod("x", on="n", namespace="elsewhere", volumes=disk)
    assert registration.hint(pod("p", volumes=disk), gone, None) is Hint.QUEUE
