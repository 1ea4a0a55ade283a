"""Disks that a pod mounts by itself, and which two of them cannot be on one node.

GCE disks and iSCSI targets may be shared where both only read, and so may RBD images; an EBS volume never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pilotage.api.pods import Pod, Volume

_SHARING: Final = {"gce": True, "ebs": False, "iscsi": True, "rbd": True}


class Disk(NamedTuple):
    """`identity` within its kind; RBD: pool and image, with the monitors that know them."""

    kind: str
    identity: tuple[str, ...]
    monitors: frozenset[str]
    is_read_only: bool


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    return tuple(disk for volume in pod.spec.volumes or () for disk in _disks(volume))


def collide(one: Disk, other: Disk) -> bool:
    if one.kind != other.kind or one.identity != other.identity:
        return False
    if one.kind == "rbd" and not one.monitors & other.monitors:
        return False
    return not (_SHARING[one.kind] and one.is_read_only and other.is_read_only)


def _disks(volume: Volume) -> Iterator[Disk]:
    if volume.gce_persistent_disk is not None:
        yield _disk("gce", volume.gce_persistent_disk, "pdName")
    if volume.aws_elastic_block_store is not None:
        yield _disk("ebs", volume.aws_elastic_block_store, "volumeID")
    if volume.iscsi is not None:
        yield _disk("iscsi", volume.iscsi, "iqn")
    if volume.rbd is not None:
        image = {"pool": "rbd", **volume.rbd}
        yield _disk("rbd", image, "pool", "image")


def _disk(kind: str, source: Mapping[str, Any], *names: str) -> Disk:
    monitors = source.get("monitors") or ()
    known = frozenset(map(str, monitors)) if isinstance(monitors, list) else frozenset()
    identity = tuple(str(source.get(name, "")) for name in names)
    return Disk(kind, identity, known, source.get("readOnly") is True)
