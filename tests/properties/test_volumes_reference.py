"""The volume plugins equal a plain reference, node by node, on random clusters and pods in sequence."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.plugins.volumes.placement import Placement
from pilotage.state.cluster import ClusterState
from reference.plain_volumes import Answer, PlainCluster, decide
from statekit import cluster, node, pod, profile
from volumekit import attachment, capacity, csi, csi_driver, csi_node, put, pv, pvc, ref, sc, uses

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
DRIVER, OTHER = "csi.example.com", "other.example.com"
LOCAL = "kubernetes.io/no-provisioner"
CASES = 400
VOLUME_PLUGINS = {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}
SELECTED = "volume.kubernetes.io/selected-node"


class Generated:
    """One random cluster, as plain dictionaries and as state."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.plain = PlainCluster()
        self.state = cluster()
        self._nodes()
        self._classes()
        for number in range(self.rng.randint(0, 8)):
            self._volume(f"v{number}")
        for number in range(self.rng.randint(1, 8)):
            self._claim(f"c{number}")
        self._room()
        for number in range(self.rng.randint(0, 4)):
            names = self.rng.sample(sorted(self.plain.claims), k=min(2, len(self.plain.claims)))
            on = self.rng.choice(sorted(self.plain.nodes))
            self.plain.pods.append((on, names))
            self.state.upsert_pod(pod(f"old{number}", on=on, volumes=uses(*names)))

    def put(self, tree: dict[str, Any]) -> dict[str, Any]:
        put(self.state, tree)
        return tree

    def _nodes(self) -> None:
        rng = self.rng
        for number in range(rng.randint(1, 6)):
            name = f"n{number}"
            labels = {"kubernetes.io/hostname": name}
            if rng.random() < 0.8:
                labels[rng.choice((ZONE, ZONE, OLD_ZONE))] = rng.choice("abc")
            if rng.random() < 0.3:
                labels["topology.kubernetes.io/region"] = "r"
            self.plain.nodes[name] = labels
            self.state.upsert_node(node(name, labels=labels))
            if rng.random() < 0.6:
                counts = {key: rng.randint(0, 3) for key in ("csi", "other") if rng.random() < 0.7}
                self.put(csi_node(name, **counts))
                self.plain.limits[name] = {f"{key}.example.com": limit for key, limit in counts.items()}

    def _classes(self) -> None:
        rng = self.rng
        for name in ("one", "two", "three"):
            topologies = [{ZONE: rng.sample("abc", 2)}] if rng.random() < 0.3 else []
            provisioner = rng.choice((DRIVER, OTHER, LOCAL))
            waits = rng.random() < 0.85
            tree = sc(name, provisioner=provisioner, waits=waits, topologies=topologies)
            self.plain.classes[name] = self.put(tree)

    def _affinity(self) -> dict[str, Any]:
        rng = self.rng
        key, values = ZONE, rng.sample("abc", 2)
        if rng.random() < 0.4:
            key, values = "kubernetes.io/hostname", [rng.choice(sorted(self.plain.nodes))]
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if rng.random() < 0.6 else {}

    def _volume(self, name: str) -> None:
        rng = self.rng
        more: dict[str, Any] = self._affinity()
        if rng.random() < 0.3:
            more["csi"] = csi(f"h{rng.randint(0, 5)}", rng.choice((DRIVER, OTHER)))
        if rng.random() < 0.25:
            reference = f"c{rng.randint(0, 7)}"
            more["claimRef"] = ref(reference, rng.choice((f"uid-{reference}", "older")))
        if rng.random() < 0.15:
            more["volumeMode"] = "Block"
        labels = {"tier": rng.choice(("gold", "silver"))}
        if rng.random() < 0.4:
            labels[rng.choice((ZONE, OLD_ZONE))] = rng.choice(("a", "b", "a__b"))
        tree = pv(
            name,
            rng.choice(("one", "two", "three")),
            size=f"{rng.randint(1, 5)}Gi",
            mode=rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod")),
            phase=rng.choice(("Available", "Available", "Available", "Pending", "Released")),
            labels=labels,
            **more,
        )
        self.plain.volumes[name] = self.put(tree)
        if rng.random() < 0.2:
            on = rng.choice(sorted(self.plain.nodes))
            driver = more["csi"]["driver"] if "csi" in more else DRIVER
            self.put(attachment(f"a-{name}", on, name, driver))
            self.plain.attached.append((on, name))

    def _claim(self, name: str) -> None:
        rng = self.rng
        more: dict[str, Any] = {}
        if rng.random() < 0.35:
            known = sorted(self.plain.volumes) or ["gone"]
            more["to"] = rng.choice([*known, "gone"]) if rng.random() < 0.1 else rng.choice(known)
        elif rng.random() < 0.15:
            more["annotations"] = {SELECTED: f"n{rng.randint(0, 6)}"}
        if rng.random() < 0.15:
            more["selector"] = {"matchLabels": {"tier": "gold"}}
        if rng.random() < 0.1:
            more["volumeMode"] = "Block"
        mode = rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        kind = rng.choice(("one", "two", "three"))
        self.plain.claims[name] = self.put(pvc(name, kind, size=f"{rng.randint(1, 5)}Gi", mode=mode, **more))

    def _room(self) -> None:
        rng = self.rng
        for driver in (DRIVER, OTHER):
            if rng.random() < 0.4:
                self.plain.counting.add(driver)
                self.put(csi_driver(driver, storageCapacity=True))
        for number in range(rng.randint(0, 4)):
            more = {"maximumVolumeSize": f"{rng.randint(1, 5)}Gi"} if rng.random() < 0.3 else {}
            labels = {ZONE: rng.choice("abc")} if rng.random() < 0.8 else {}
            tree = capacity(
                f"r{number}", rng.choice(("one", "two")), f"{rng.randint(1, 5)}Gi", labels, **more
            )
            self.plain.room.append(self.put(tree))


def vector(state: ClusterState, names: list[str]) -> tuple[Answer, CycleState]:
    """What the default profile says of a pod with these claims."""
    built, cycle, info = profile(state), CycleState(), pod("p", volumes=uses(*names))
    outcome = built.run_pre_filter(cycle, info, state.nodes)
    if not outcome.status.is_success:
        return Answer(outcome.status.message), cycle
    failures = NodeFailures(state.nodes, info)
    rows = built.run_filters(cycle, info, state.nodes, state.nodes.live_rows, failures)
    answer = Answer(reasons={})
    found = cycle.get("VolumeBinding/claims")
    placement = getattr(found, "placement", None)
    for row in state.nodes.live_rows.tolist():
        name = state.nodes.name(row)
        if row not in rows:
            status = failures.status(row)
            assert status.plugin in VOLUME_PLUGINS
            answer.reasons[name] = status.reasons
            continue
        answer.reasons[name] = ()
        answer.choices[name] = _choices(placement, row)
    return answer, cycle


def _choices(placement: Placement | None, row: int) -> dict[str, str]:
    if placement is None:
        return {}
    given = {claim.metadata.name: volume.name for volume, claim in placement.volumes_at(row)}
    return {**given, **{claim.metadata.name: "" for claim in placement.provisioned_at(row)}}


def place(case: Generated, number: int, names: list[str], answer: Answer) -> None:
    """Lets a pod have its node: promised in the state, written down in the plain cluster."""
    on = case.rng.choice(sorted(answer.choices))
    built, info = profile(case.state), pod(f"new{number}", volumes=uses(*names))
    cycle = CycleState()
    assert built.run_pre_filter(cycle, info, case.state.nodes).status.is_success
    case.state.upsert_pod(info)
    case.state.assume(info, on)
    assert built.run_reserve(cycle, info, on).is_success
    case.plain.pods.append((on, names))
    for claim, volume in answer.choices[on].items():
        if volume:
            spec = {**case.plain.volumes[volume]["spec"], "claimRef": ref(claim)}
            case.plain.volumes[volume] = {**case.plain.volumes[volume], "spec": spec}
        else:
            meta = case.plain.claims[claim]["metadata"]
            notes = {**(meta.get("annotations") or {}), SELECTED: on}
            case.plain.claims[claim] = {
                **case.plain.claims[claim],
                "metadata": {**meta, "annotations": notes},
            }


@pytest.mark.parametrize("block", range(8))
def test_volumes_equal_the_plain_reference(block: int) -> None:
    size = CASES // 8
    feasible = rejected = 0
    for seed in range(block * size, (block + 1) * size):
        case = Generated(seed)
        for number in range(4):
            known = [*sorted(case.plain.claims), *(["missing"] if case.rng.random() < 0.05 else [])]
            names = case.rng.sample(known, k=min(len(known), case.rng.choice((1, 1, 2, 3))))
            expected = decide(case.plain, names)
            answer, _ = vector(case.state, names)
            assert answer == expected, f"seed {seed}, pod {number} with {names}"
            feasible += bool(expected.choices)
            rejected += any(expected.reasons.values())
            if expected.choices:
                place(case, number, names, expected)
        case.state.check_invariants()
    assert feasible > size // 2, "the generator makes clusters in which pods fit"
    assert rejected > size // 2, "and nodes that do not"
