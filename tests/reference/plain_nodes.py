"""Filters that look at one node and the pods on it: cordon, taints, affinity, ports, resources, features."""

from __future__ import annotations

from reference.plain_amounts import Amounts, exact, whole
from reference.plain_matching import (
    HARD,
    REQUIRED,
    node_affinity,
    selector_matches_node,
    tolerates,
    untolerated,
    wants_node,
)
from reference.plain_world import PlainWorld, Rejection, Tree, name_of

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NATIVE = ("cpu", "memory", "ephemeral-storage")


def by_cordon(_world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    if not node["spec"].get("unschedulable") or tolerates(pod, CORDON):
        return None
    return Rejection("NodeUnschedulable", False, ("node(s) were unschedulable",))


def by_taints(_world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    if not untolerated(pod, node, HARD):
        return None
    return Rejection("TaintToleration", False, ("node(s) had untolerated taint(s)",))


def by_node_affinity(world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    added = ((world.args.get("NodeAffinity") or {}).get("addedAffinity") or {}).get(REQUIRED)
    if added is not None and not selector_matches_node(added, node):
        return Rejection("NodeAffinity", False, ("node(s) didn't match scheduler-enforced node affinity",))
    if not wants_node(pod, node):
        return Rejection("NodeAffinity", False, ("node(s) didn't match Pod's node affinity/selector",))
    return None


def pinned_names(pod: Tree) -> set[str] | None:
    """The only nodes that the required terms leave when each of them names nodes."""
    required = node_affinity(pod).get(REQUIRED)
    if required is None:
        return None
    union: set[str] = set()
    for term in required["nodeSelectorTerms"]:
        lists = [set(f["values"]) for f in term.get("matchFields") or [] if f["operator"] == "In"]
        if not lists:
            return None
        union |= set.intersection(*lists)
    return union


def by_ports(world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    wanted = host_ports(pod)
    for other in world.pods_on(node) if wanted else []:
        if any(_collide(one, two) for one in wanted for two in host_ports(other)):
            text = "node(s) didn't have free ports for the requested pod ports"
            return Rejection("NodePorts", True, (text,))
    return None


def host_ports(pod: Tree) -> list[tuple[str, str, int]]:
    sidecars = [c for c in pod["spec"].get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    ports = [p for c in sidecars + pod["spec"]["containers"] for p in c.get("ports") or []]
    return [
        (p.get("hostIP") or "0.0.0.0", p.get("protocol") or "TCP", p["hostPort"])
        for p in ports
        if p.get("hostPort")
    ]


def _collide(one: tuple[str, str, int], two: tuple[str, str, int]) -> bool:
    return one[1:] == two[1:] and (one[0] == two[0] or "0.0.0.0" in (one[0], two[0]))


# Resources


def offered(node: Tree) -> Amounts:
    return whole(exact(node["status"]["allocatable"]))


def by_resources(world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    capacity, used = offered(node), world.requested(node)
    reasons, is_hopeless = [], False
    if len(world.pods_on(node)) + 1 > capacity.get("pods", 0):
        reasons.append("Too many pods")
    for resource, amount in world.requests(pod).items():
        if amount <= 0 or not _is_compared(world, resource):
            continue
        if amount > capacity.get(resource, 0) - used.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            is_hopeless = is_hopeless or amount > capacity.get(resource, 0)
    return Rejection("NodeResourcesFit", not is_hopeless, tuple(reasons)) if reasons else None


def _is_compared(world: PlainWorld, resource: str) -> bool:
    if resource in NATIVE or resource.startswith("hugepages-"):
        return True
    args = world.args.get("NodeResourcesFit") or {}
    group = resource.split("/", maxsplit=1)[0]
    is_ignored = resource in args.get("ignoredResources", []) or group in args.get(
        "ignoredResourceGroups", []
    )
    return not is_ignored


def by_features(_world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    spec = pod["spec"]
    needed = set()
    containers = spec["containers"] + (spec.get("initContainers") or [])
    if any(
        r["action"] == "RestartAllContainers" for c in containers for r in c.get("restartPolicyRules") or []
    ):
        needed.add("RestartAllContainersOnContainerExits")
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        needed.add("UserNamespacesHostNetworkSupport")
    if needed <= set(node["status"].get("declaredFeatures") or []):
        return None
    return Rejection("NodeDeclaredFeatures", False, ("node(s) didn't match Pod's required features",))


def by_name(_world: PlainWorld, pod: Tree, node: Tree) -> Rejection | None:
    if pod["spec"].get("nodeName", name_of(node)) == name_of(node):
        return None
    return Rejection("NodeName", False, ("node(s) didn't match the requested node name",))
