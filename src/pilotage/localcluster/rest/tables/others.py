"""The remaining kinds that have columns of their own."""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.tables.layout import AGE, NAME, Column, Layout, join, number, text, wide
from pilotage.localcluster.rest.tables.workloads import selector_text
from pilotage.localcluster.rest.timestamps import age_text
from pilotage.localcluster.rest.trees import child, children, texts
from pilotage.localcluster.rest.trees import text as text_of
from pilotage.localcluster.store import Tree

_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _parts(tree: Tree, now: float) -> tuple[str, Tree, Tree, str]:
    """Name, spec, status and age."""
    meta = tree["metadata"]
    age = age_text(meta.get("creationTimestamp"), now)
    return meta["name"], child(tree, "spec") or {}, child(tree, "status") or {}, age


def _namespace(tree: Tree, now: float) -> list[Any]:
    name, _, status, age = _parts(tree, now)
    return [name, text_of(status, "phase"), age]


def _budget(tree: Tree, now: float) -> list[Any]:
    name, spec, status, age = _parts(tree, now)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        name,
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status.get("disruptionsAllowed", 0),
        age,
    ]


def _priority_class(tree: Tree, now: float) -> list[Any]:
    name, _, _, age = _parts(tree, now)
    policy = text_of(tree, "preemptionPolicy") or "PreemptLowerPriority"
    return [name, tree.get("value", 0), bool(tree.get("globalDefault", False)), age, policy]


def _lease(tree: Tree, now: float) -> list[Any]:
    name, spec, _, age = _parts(tree, now)
    return [name, text_of(spec, "holderIdentity"), age]


def _service(tree: Tree, now: float) -> list[Any]:
    name, spec, status, age = _parts(tree, now)
    ingress = children(child(status, "loadBalancer"), "ingress")
    outside = [text_of(entry, "ip") or text_of(entry, "hostname") for entry in ingress]
    kind = text_of(spec, "type") or "ClusterIP"
    external = join(outside + texts(spec, "externalIPs"), "<pending>" if kind == "LoadBalancer" else "<none>")
    selector = selector_text(spec.get("selector"))
    return [name, kind, text_of(spec, "clusterIP") or "<none>", external, _ports(spec), age, selector]


def _ports(spec: Tree) -> str:
    shown = []
    for port in children(spec, "ports"):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return join(shown)


def _modes(spec: Tree) -> str:
    return ",".join(_SHORT_MODES.get(mode, mode) for mode in texts(spec, "accessModes"))


def _volume(tree: Tree, now: float) -> list[Any]:
    name, spec, status, age = _parts(tree, now)
    claim = child(spec, "claimRef")
    return [
        name,
        text_of(child(spec, "capacity"), "storage"),
        _modes(spec),
        text_of(spec, "persistentVolumeReclaimPolicy"),
        "Terminating" if "deletionTimestamp" in tree["metadata"] else text_of(status, "phase"),
        f"{text_of(claim, 'namespace')}/{text_of(claim, 'name')}" if claim else "",
        text_of(spec, "storageClassName"),
        text_of(spec, "volumeAttributesClassName") or "<unset>",
        text_of(status, "reason"),
        age,
        text_of(spec, "volumeMode"),
    ]


def _claim(tree: Tree, now: float) -> list[Any]:
    name, spec, status, age = _parts(tree, now)
    is_bound = bool(spec.get("volumeName"))
    return [
        name,
        "Terminating" if "deletionTimestamp" in tree["metadata"] else text_of(status, "phase"),
        text_of(spec, "volumeName"),
        text_of(child(status, "capacity"), "storage") if is_bound else "",
        _modes(status) if is_bound else "",
        text_of(spec, "storageClassName"),
        text_of(spec, "volumeAttributesClassName") or "<unset>",
        age,
        text_of(spec, "volumeMode"),
    ]


def _storage_class(tree: Tree, now: float) -> list[Any]:
    name, _, _, age = _parts(tree, now)
    annotations = child(tree["metadata"], "annotations")
    is_default = text_of(annotations, "storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{name} (default)" if is_default else name,
        text_of(tree, "provisioner"),
        text_of(tree, "reclaimPolicy") or "Delete",
        text_of(tree, "volumeBindingMode") or "Immediate",
        bool(tree.get("allowVolumeExpansion", False)),
        age,
    ]


def _config_map(tree: Tree, now: float) -> list[Any]:
    name, _, _, age = _parts(tree, now)
    return [name, len(child(tree, "data") or {}) + len(child(tree, "binaryData") or {}), age]


def _secret(tree: Tree, now: float) -> list[Any]:
    name, _, _, age = _parts(tree, now)
    return [name, text_of(tree, "type") or "Opaque", len(child(tree, "data") or {}), age]


def _csi_node(tree: Tree, now: float) -> list[Any]:
    name, spec, _, age = _parts(tree, now)
    return [name, len(children(spec, "drivers")), age]


def _plain(tree: Tree, now: float) -> list[Any]:
    name, _, _, age = _parts(tree, now)
    return [name, age]


NAMESPACES = Layout((NAME, text("Status", "Active, or going."), AGE), _namespace)
BUDGETS = Layout(
    (
        NAME,
        text("Min Available", "How many pods must stay."),
        text("Max Unavailable", "How many pods may be missing."),
        number("Allowed Disruptions", "How many evictions are free now."),
        AGE,
    ),
    _budget,
)
PRIORITY_CLASSES = Layout(
    (
        NAME,
        number("Value", "The priority."),
        Column("Global-Default", "Whether pods without a class get it.", type="boolean"),
        AGE,
        text("PreemptionPolicy", "Whether its pods may preempt others."),
    ),
    _priority_class,
)
LEASES = Layout((NAME, text("Holder", "Who holds it."), AGE), _lease)
SERVICES = Layout(
    (
        NAME,
        text("Type", "How it is reached."),
        text("Cluster-IP", "Its address inside the cluster."),
        text("External-IP", "Its address outside."),
        text("Port(s)", "Its ports."),
        AGE,
        wide("Selector", "Which pods stand behind it."),
    ),
    _service,
)
VOLUMES = Layout(
    (
        NAME,
        text("Capacity", "Its size."),
        text("Access Modes", "How it may be mounted."),
        text("Reclaim Policy", "What becomes of it without its claim."),
        text("Status", "Its phase."),
        text("Claim", "The claim that it is bound to."),
        text("StorageClass", "Its class."),
        text("VolumeAttributesClass", "Its attributes class."),
        text("Reason", "Why it is in this phase."),
        AGE,
        wide("VolumeMode", "Filesystem or Block."),
    ),
    _volume,
)
CLAIMS = Layout(
    (
        NAME,
        text("Status", "Its phase."),
        text("Volume", "The volume that it is bound to."),
        text("Capacity", "The volume's size."),
        text("Access Modes", "How the volume may be mounted."),
        text("StorageClass", "Its class."),
        text("VolumeAttributesClass", "Its attributes class."),
        AGE,
        wide("VolumeMode", "Filesystem or Block."),
    ),
    _claim,
)
STORAGE_CLASSES = Layout(
    (
        NAME,
        text("Provisioner", "Who makes its volumes."),
        text("ReclaimPolicy", "What becomes of volumes without their claim."),
        text("VolumeBindingMode", "When claims are bound."),
        Column("AllowVolumeExpansion", "Whether claims may grow.", type="boolean"),
        AGE,
    ),
    _storage_class,
)
CONFIG_MAPS = Layout((NAME, number("Data", "How many entries it has."), AGE), _config_map)
SECRETS = Layout(
    (NAME, text("Type", "What it is for."), number("Data", "How many entries it has."), AGE), _secret
)
CSI_NODES = Layout((NAME, number("Drivers", "How many drivers the node has."), AGE), _csi_node)
AGED = Layout((NAME, AGE), _plain)
