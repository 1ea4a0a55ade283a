"""Scenarios like the recorded ones but different: drawn from a seed, valid for any API server.

Each variation makes a few small changes: nodes and pods go, come twice, grow, shrink or move to another
zone; taints and tolerations appear; the pod asks for more or less. What belongs together goes together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pilotage.frontends.replay.scenarios import Scenario

Tree = dict[str, Any]
_ZONE = "topology.kubernetes.io/zone"
_MOST_CHANGES = 4


def vary(scenario: Scenario, number: int, seed: int) -> Scenario:
    """Variation `number` of a scenario; the same arguments give the same one."""
    random = Random(f"{seed}/{scenario.name}/{number}")
    draft = _Draft(copy.deepcopy(scenario.objects), copy.deepcopy(scenario.pod), random)
    for change in random.choices(_CHANGES, k=random.randint(1, _MOST_CHANGES)):
        change(draft)
    name = f"{scenario.name}~{seed}.{number}"
    return replace(scenario, name=name, objects=draft.objects, pod=draft.pod, expect=None)


@dataclass(slots=True)
class _Draft:
    """A scenario that is being changed."""

    objects: list[Tree]
    pod: Tree
    random: Random

    def _of_kind(self, kind: str) -> list[Tree]:
        return [tree for tree in self.objects if tree["kind"] == kind]

    def _some(self, kind: str) -> Tree | None:
        found = self._of_kind(kind)
        return self.random.choice(found) if found else None

    def drop_node(self) -> None:
        nodes = self._of_kind("Node")
        if len(nodes) < 2:
            return
        name = self.random.choice(nodes)["metadata"]["name"]
        gone = [
            tree
            for tree in self.objects
            if (tree["kind"] in ("Node", "CSINode") and tree["metadata"]["name"] == name)
            or (tree["kind"] == "Pod" and tree["spec"].get("nodeName") == name)
        ]
        self.objects[:] = [tree for tree in self.objects if not any(tree is one for one in gone)]

    def drop_pod(self) -> None:
        found = self._some("Pod")
        if found is not None:
            self.objects[:] = [tree for tree in self.objects if tree is not found]

    def copy_pod(self) -> None:
        found, node = self._some("Pod"), self._some("Node")
        if found is None or node is None or found["spec"].get("volumes"):
            return
        twin = copy.deepcopy(found)
        twin["metadata"]["name"] += f"-{len(self.objects)}"
        twin["spec"]["nodeName"] = node["metadata"]["name"]
        self.objects.append(twin)

    def resize_node(self) -> None:
        node = self._some("Node")
        if node is not None:
            room = {"cpu": f"{self.random.choice((500, 1000, 2000, 3500, 8000))}m"}
            room["memory"] = f"{self.random.choice((1, 2, 6, 12, 32))}Gi"
            for part in ("capacity", "allocatable"):
                node.setdefault("status", {}).setdefault(part, {}).update(room)

    def limit_pods(self) -> None:
        node = self._some("Node")
        if node is not None:
            for part in ("capacity", "allocatable"):
                node.setdefault("status", {}).setdefault(part, {})["pods"] = str(self.random.randint(0, 4))

    def move_node(self) -> None:
        node = self._some("Node")
        if node is not None:
            labels = node["metadata"].setdefault("labels", {})
            labels[_ZONE] = self.random.choice(("z0", "z1", "z2", "z3"))

    def taint_node(self) -> None:
        node = self._some("Node")
        if node is not None:
            effect = self.random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
            taint = {"key": "varied", "value": self.random.choice("xy"), "effect": effect}
            others = [one for one in node["spec"].get("taints") or () if one["key"] != "varied"]
            node["spec"]["taints"] = [*others, taint]

    def cordon_node(self) -> None:
        node = self._some("Node")
        if node is not None:
            node["spec"]["unschedulable"] = True

    def tolerate(self) -> None:
        toleration = {"key": "varied", "operator": self.random.choice(("Equal", "Exists"))}
        if toleration["operator"] == "Equal":
            toleration["value"] = self.random.choice("xy")
        self.pod["spec"].setdefault("tolerations", []).append(toleration)

    def ask_otherwise(self) -> None:
        for container in self.pod["spec"]["containers"]:
            container.setdefault("resources", {}).pop("limits", None)
            container["resources"]["requests"] = {
                **container["resources"].get("requests", {}),
                "cpu": f"{self.random.choice((50, 500, 1000, 1500, 3000))}m",
                "memory": f"{self.random.choice((64, 512, 1500, 4000))}Mi",
            }

    def select_zone(self) -> None:
        self.pod["spec"].setdefault("nodeSelector", {})[_ZONE] = self.random.choice(("z0", "z1", "z2"))


_CHANGES: tuple[Callable[[_Draft], None], ...] = (
    _Draft.drop_node,
    _Draft.drop_pod,
    _Draft.drop_pod,
    _Draft.copy_pod,
    _Draft.copy_pod,
    _Draft.copy_pod,
    _Draft.resize_node,
    _Draft.resize_node,
    _Draft.limit_pods,
    _Draft.move_node,
    _Draft.taint_node,
    _Draft.cordon_node,
    _Draft.tolerate,
    _Draft.ask_otherwise,
    _Draft.select_zone,
)
