"""What a driver has to attach for a pod: each volume once, by driver and identity.

Laws: a claim without a volume counts under its class's provisioner, as itself. In-tree disks count for the
CSI driver that serves them by now. What no CSI driver attaches counts nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pilotage.api.others import PersistentVolumeClaim, VolumeSpec
from pilotage.api.pods import Volume
from pilotage.state.podinfo import PodInfo
from pilotage.state.volume_values import class_of
from pilotage.state.volumes import Volumes


class Attached(NamedTuple):
    """One volume of one driver."""

    driver: str
    identity: str


class _InTree(NamedTuple):
    field: str
    identity: str  # the source's field that tells two disks apart
    driver: str
    provisioner: str


_IN_TREE: Final = (
    _InTree("aws_elastic_block_store", "volumeID", "ebs.csi.aws.com", "kubernetes.io/aws-ebs"),
    _InTree("gce_persistent_disk", "pdName", "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"),
    _InTree("azure_disk", "diskURI", "disk.csi.azure.com", "kubernetes.io/azure-disk"),
    _InTree("cinder", "volumeID", "cinder.csi.openstack.org", "kubernetes.io/cinder"),
    _InTree("vsphere_volume", "volumePath", "csi.vsphere.vmware.com", "kubernetes.io/vsphere-volume"),
)
_DRIVERS: Final = {one.provisioner: one.driver for one in _IN_TREE}


def has_attachable(pod: PodInfo) -> bool:
    return bool(pod.claims) or any(_of_source(volume) for volume in pod.pod.spec.volumes or ())


def attached_by(volumes: Volumes, pod: PodInfo) -> Iterator[Attached]:
    """Everything that is attached for the pod; claims that do not exist are left out."""
    if not pod.pod.spec.volumes:
        return
    for volume in pod.pod.spec.volumes:
        yield from _of_source(volume)
    for use in pod.claims:
        claim = volumes.claim(pod.namespace, use.name)
        if claim is not None:
            yield from of_claim(volumes, claim)


def of_claim(volumes: Volumes, claim: PersistentVolumeClaim) -> tuple[Attached, ...]:
    """The one volume behind a claim, or none."""
    volume = volumes.volume(claim.spec.volume_name) if claim.spec.volume_name else None
    return _of_class(volumes, claim) if volume is None else of_volume(volume.view.spec)


def of_volume(spec: VolumeSpec) -> tuple[Attached, ...]:
    if spec.csi is not None:
        return (Attached(spec.csi.driver, spec.csi.volume_handle),)
    return _of_source(spec)


def _of_class(volumes: Volumes, claim: PersistentVolumeClaim) -> tuple[Attached, ...]:
    name = class_of(claim)
    found = volumes.storage_class(name) if name else None
    if found is None or not found.provisioner:
        return ()
    return (Attached(_DRIVERS.get(found.provisioner, found.provisioner), f"claim {claim.key}"),)


def _of_source(source: VolumeSpec | Volume) -> tuple[Attached, ...]:
    found: list[tuple[_InTree, Mapping[str, Any]]] = [
        (one, disk) for one in _IN_TREE if (disk := getattr(source, one.field)) is not None
    ]
    return tuple(Attached(one.driver, _plain(str(disk.get(one.identity, "")))) for one, disk in found)


def _plain(identity: str) -> str:
    """`aws://zone/vol-1` is `vol-1`."""
    return identity.rpartition("/")[2] if identity.startswith("aws://") else identity


def attachments_of(volumes: Volumes, drivers: Iterable[str]) -> dict[str, set[Attached]]:
    """Node name -> what VolumeAttachments say is on it, or on its way there, of these drivers."""
    wanted = frozenset(drivers)
    found: dict[str, set[Attached]] = {}
    for attachment in volumes.attachments():
        spec = attachment.spec
        if spec.attacher not in wanted or not spec.source.persistent_volume_name:
            continue
        volume = volumes.volume(spec.source.persistent_volume_name)
        if volume is not None and volume.view.spec.csi is not None:
            one = Attached(spec.attacher, volume.view.spec.csi.volume_handle)
            found.setdefault(spec.node_name, set()).add(one)
    return found
