"""The volume plugins once more: node by node, object by object, on plain dictionaries, for tests only.

Written from the rules, not from the code under test: no arrays, no compiled values, nothing kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Tree = Mapping[str, Any]
GI = 1024**3
ZONE_KEYS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
SELECTED = "volume.kubernetes.io/selected-node"


@dataclass
class PlainCluster:
    """Objects by name (claims by name in the one namespace); pods on nodes as (node, claims)."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)  # labels
    classes: dict[str, Tree] = field(default_factory=dict)
    claims: dict[str, Tree] = field(default_factory=dict)
    volumes: dict[str, Tree] = field(default_factory=dict)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)  # node -> driver -> count
    counting: set[str] = field(default_factory=set)  # drivers that tell capacities
    room: list[Tree] = field(default_factory=list)
    pods: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    attached: list[tuple[str, str]] = field(default_factory=list)  # node, volume


@dataclass
class Answer:
    """`rejection`: of PreFilter. `reasons` per node otherwise, of the first plugin that rejects it."""

    rejection: str = ""
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)
    choices: dict[str, dict[str, str]] = field(default_factory=dict)  # node -> claim -> volume, "" for made


def gib(amount: str) -> int:
    return int(amount.removesuffix("Gi")) * GI


def decide(of: PlainCluster, names: Sequence[str]) -> Answer:
    rejection = next(_rejections(of, names), "")
    if rejection:
        return Answer(rejection)
    answer = Answer()
    for node, labels in of.nodes.items():
        fit, choice = _binding(of, names, node, labels)
        reasons = _restrictions(of, names) or _limits(of, names, node) or fit or _zones(of, names, labels)
        answer.reasons[node] = reasons
        if not reasons:
            answer.choices[node] = choice
    return answer


def _rejections(of: PlainCluster, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name not in of.claims:
            yield f'persistentvolumeclaim "{name}" not found'
    for name in names:
        claim = of.claims[name]
        if _is_bound(claim):
            continue
        waits = _class(of, claim).get("volumeBindingMode") == "WaitForFirstConsumer"
        if claim["spec"].get("volumeName") or not waits:
            yield "pod has unbound immediate PersistentVolumeClaims"
    for name in names:
        volume = of.claims[name]["spec"].get("volumeName", "")
        if volume and volume not in of.volumes:
            yield f'persistentvolume "{volume}" not found'


def _is_bound(claim: Tree) -> bool:
    notes = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and "pv.kubernetes.io/bind-completed" in notes


def _class(of: PlainCluster, claim: Tree) -> Tree:
    return of.classes.get(claim["spec"].get("storageClassName", ""), {})


def _restrictions(of: PlainCluster, names: Sequence[str]) -> tuple[str, ...]:
    used = {name for _, claims in of.pods for name in claims}
    alone = [n for n in names if "ReadWriteOncePod" in of.claims[n]["spec"]["accessModes"]]
    if used.intersection(alone):
        return (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
            "in-use by another pod",
        )
    return ()


def _identity(of: PlainCluster, name: str) -> tuple[str, str] | None:
    claim = of.claims.get(name)
    if claim is None:
        return None
    volume = of.volumes.get(claim["spec"].get("volumeName", ""))
    if volume is not None:
        source = volume["spec"].get("csi")
        return (source["driver"], source["volumeHandle"]) if source else None
    provisioner = _class(of, claim).get("provisioner")
    return (provisioner, f"claim/{name}") if provisioner else None


def _limits(of: PlainCluster, names: Sequence[str], node: str) -> tuple[str, ...]:
    here = {_identity(of, name) for on, claims in of.pods if on == node for name in claims}
    for on, volume in of.attached:
        source = of.volumes.get(volume, {}).get("spec", {}).get("csi")
        if on == node and source:
            here.add((source["driver"], source["volumeHandle"]))
    new = {_identity(of, name) for name in names} - here
    for driver, limit in of.limits.get(node, {}).items():
        added = sum(one is not None and one[0] == driver for one in new)
        if added and added + sum(one is not None and one[0] == driver for one in here) > limit:
            return ("node(s) exceed max volume count",)
    return ()


def _reaches(volume: Tree, labels: Mapping[str, str]) -> bool:
    affinity = volume["spec"].get("nodeAffinity")
    if not affinity:
        return True
    return any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"])
        for term in affinity["required"]["nodeSelectorTerms"]
    )


def _binding(
    of: PlainCluster, names: Sequence[str], node: str, labels: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    bound = [of.claims[name] for name in names if _is_bound(of.claims[name])]
    waiting = [name for name in names if not _is_bound(of.claims[name])]
    reasons: list[str] = []
    for claim in bound:
        if not _reaches(of.volumes[claim["spec"]["volumeName"]], labels):
            reasons.append("node(s) didn't match PersistentVolume's node affinity")
            break
    problem, choice = _unbound(of, waiting, node, labels)
    return (*reasons, *([problem] if problem else [])), choice


def _selected(of: PlainCluster, name: str) -> str:
    node = (of.claims[name]["metadata"].get("annotations") or {}).get(SELECTED, "")
    return node if node in of.nodes else ""


def _size(claim: Tree) -> int:
    return gib(claim["spec"]["resources"]["requests"]["storage"])


def _unbound(
    of: PlainCluster, names: Sequence[str], node: str, labels: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    nothing = "node(s) didn't find available persistent volumes to bind"
    if any(_selected(of, name) not in ("", node) for name in names):
        return nothing, {}
    made = [name for name in names if _selected(of, name)]
    choice: dict[str, str] = {}
    for name in sorted((n for n in names if not _selected(of, n)), key=lambda n: _size(of.claims[n])):
        volume = _volume_for(of, name, labels, set(choice.values()))
        if volume:
            choice[name] = volume
        else:
            made.append(name)
    for name in made:
        choice[name] = ""
        kind = _class(of, of.claims[name])
        if kind["provisioner"] == "kubernetes.io/no-provisioner" or not _allowed(kind, labels):
            return nothing, {}
        if not _has_room(of, name, kind, labels):
            return "node(s) did not have enough free storage", {}
    return "", choice


def _volume_for(of: PlainCluster, name: str, labels: Mapping[str, str], taken: set[str]) -> str:
    claim = of.claims[name]
    best = ""
    for volume_name in sorted(of.volumes):
        volume = of.volumes[volume_name]
        spec = volume["spec"]
        if volume_name in taken or spec["storageClassName"] != claim["spec"]["storageClassName"]:
            continue
        reference = spec.get("claimRef")
        is_mine = bool(reference) and (reference["name"], reference["uid"]) == (name, f"uid-{name}")
        if (reference and not is_mine) or gib(spec["capacity"]["storage"]) < _size(claim):
            continue
        if spec.get("volumeMode", "Filesystem") != claim["spec"].get("volumeMode", "Filesystem"):
            continue
        if is_mine:
            return volume_name if _reaches(volume, labels) else ""
        wanted = (claim["spec"].get("selector") or {}).get("matchLabels") or {}
        has_labels = wanted.items() <= volume["metadata"]["labels"].items()
        has_modes = set(claim["spec"]["accessModes"]) <= set(spec["accessModes"])
        if volume["status"]["phase"] != "Available" or not has_labels or not has_modes:
            continue
        if not _reaches(volume, labels):
            continue
        if not best or gib(spec["capacity"]["storage"]) < gib(
            of.volumes[best]["spec"]["capacity"]["storage"]
        ):
            best = volume_name
    return best


def _allowed(kind: Tree, labels: Mapping[str, str]) -> bool:
    terms = kind.get("allowedTopologies")
    return not terms or any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in terms
    )


def _has_room(of: PlainCluster, name: str, kind: Tree, labels: Mapping[str, str]) -> bool:
    if kind["provisioner"] not in of.counting:
        return True
    for offer in of.room:
        largest = offer.get("maximumVolumeSize", offer["capacity"])
        is_near = offer["nodeTopology"]["matchLabels"].items() <= labels.items()
        is_large = gib(largest) >= _size(of.claims[name])
        if offer["storageClassName"] == kind["metadata"]["name"] and is_near and is_large:
            return True
    return False


def _zones(of: PlainCluster, names: Sequence[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    if not any(key in labels for key in ZONE_KEYS):
        return ()
    for name in names:
        volume = of.volumes.get(of.claims[name]["spec"].get("volumeName", ""))
        for key in ZONE_KEYS if volume else ():
            text = volume["metadata"]["labels"].get(key) if volume else None
            if text is None:
                continue
            stable = key.replace("failure-domain.beta", "topology")
            if labels.get(key, labels.get(stable)) not in text.split("__"):
                return ("node(s) had no available volume zone",)
    return ()
