"""Storage as decisions see it: what informers show, with what Reserve promised and nobody has written yet.

Laws:
- A promise (a volume for a claim, a node for a claim) is made and taken back per pod; several pods may
  have made the same one, it holds while any of them stands.
- A promise is seen by the very next decision, and never changes an object itself.
- Users of a claim are the pods that count on a node, bound or assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.others import (
    ClaimReference,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from pilotage.state.objects import ObjectStore
from pilotage.state.podinfo import PodInfo
from pilotage.state.volume_values import SELECTED_NODE, Volume, annotation, compile_volume

T = TypeVar("T", bound=KubeObject)
P = TypeVar("P")

CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses.storage.k8s.io"
CSI_NODES: Final = "csinodes.storage.k8s.io"
CSI_DRIVERS: Final = "csidrivers.storage.k8s.io"
CAPACITIES: Final = "csistoragecapacities.storage.k8s.io"
ATTACHMENTS: Final = "volumeattachments.storage.k8s.io"


class Volumes:
    """Claims, volumes and classes by name, promises, and who uses a claim."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        # Volume name -> pod UID -> the claim that the pod's Reserve gave it to.
        self._given: dict[str, dict[str, PersistentVolumeClaim]] = {}
        # Claim UID -> pod UID -> node for which the pod's Reserve wants it provisioned.
        self._sent: dict[str, dict[str, str]] = {}
        # "namespace/claim" -> UIDs of the pods on nodes that name it in a volume.
        self._users: dict[str, set[str]] = {}
        # Node name -> number of volumes of its pods that may have to be attached; no zeros.
        self._attachable: dict[str, int] = {}
        # Driver -> node name -> its limit there (None: none), as of the revision of the kind.
        self._drivers: dict[str, dict[str, int | None]] = {}
        self._drivers_revision = -1
        # Compiled volumes by name, as of the revision of the kind; by class in order of name.
        self._compiled: dict[str, Volume] = {}
        self._by_class: dict[str, list[Volume]] = {}
        self._revision = -1

    # Objects

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._get(CLAIMS, PersistentVolumeClaim, name, namespace)

    def volume(self, name: str) -> Volume | None:
        """As the informer shows it; `claim_of` tells what is promised."""
        self._refresh()
        return self._compiled.get(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._get(CLASSES, StorageClass, name)

    def csi_driver(self, name: str) -> CSIDriver | None:
        return self._get(CSI_DRIVERS, CSIDriver, name)

    def csi_node(self, name: str) -> CSINode | None:
        return self._get(CSI_NODES, CSINode, name)

    def nodes_with(self, driver: str) -> Mapping[str, int | None]:
        """Node name -> how many volumes the driver takes there; None for any number."""
        revision = self._objects.revision(CSI_NODES)
        if revision != self._drivers_revision:
            self._drivers_revision, self._drivers = revision, {}
            for node in cast(Iterable[CSINode], self._objects.in_namespace(CSI_NODES)):
                for one in node.spec.drivers:
                    limit = one.allocatable.count if one.allocatable is not None else None
                    self._drivers.setdefault(one.name, {})[node.metadata.name] = limit
        return self._drivers.get(driver, {})

    def capacities(self) -> Iterable[CSIStorageCapacity]:
        """Of all namespaces."""
        for names in self._objects.namespaces(CAPACITIES).values():
            yield from cast(Iterable[CSIStorageCapacity], names.values())

    def attachments(self) -> Iterable[VolumeAttachment]:
        return cast(Iterable[VolumeAttachment], self._objects.in_namespace(ATTACHMENTS))

    def _get(self, resource: str, kind: type[T], name: str, namespace: str = "") -> T | None:
        found = self._objects.get(resource, name, namespace)
        return found if isinstance(found, kind) else None

    def volumes_of_class(self, name: str) -> Sequence[Volume]:
        """In order of name, promised ones shown as reserved for their claim."""
        self._refresh()
        found = self._by_class.get(name, ())
        if not self._given:
            return found
        return [self._as_promised(volume) for volume in found]

    def _as_promised(self, volume: Volume) -> Volume:
        claim = self.claim_of(volume.name)
        if claim is None or volume.view.spec.claim_ref is not None:
            return volume
        meta = claim.metadata
        reference = ClaimReference(name=meta.name, namespace=meta.namespace, uid=meta.uid)
        replace = msgspec.structs.replace
        view = replace(volume.view, spec=replace(volume.view.spec, claim_ref=reference))
        return Volume(view, volume.class_name, volume.size, volume.affinity, volume.defect)

    def _refresh(self) -> None:
        revision = self._objects.revision(VOLUMES)
        if revision == self._revision:
            return
        self._revision = revision
        before, self._compiled, self._by_class = self._compiled, {}, {}
        views = cast(Mapping[str, PersistentVolume], self._objects.namespaces(VOLUMES).get("", {}))
        for name in sorted(views):
            known = before.get(name)
            volume = known if known is not None and known.view is views[name] else compile_volume(views[name])
            self._compiled[name] = volume
            self._by_class.setdefault(volume.class_name, []).append(volume)

    # Promises

    def claim_of(self, volume: str) -> PersistentVolumeClaim | None:
        """The claim that some pod's Reserve gave the volume to."""
        given = self._given.get(volume)
        return next(iter(given.values())) if given else None

    def selected_node(self, claim: PersistentVolumeClaim) -> str:
        """Where the claim is to be provisioned: promised, else written; empty when neither."""
        sent = self._sent.get(claim.metadata.uid)
        return next(iter(sent.values())) if sent else annotation(claim, SELECTED_NODE)

    def give(self, pod: str, volume: str, claim: PersistentVolumeClaim) -> None:
        """Promises the volume to the claim, on behalf of the pod (UID)."""
        self._given.setdefault(volume, {})[pod] = claim

    def send(self, pod: str, claim: PersistentVolumeClaim, node: str) -> None:
        """Promises that the claim will be provisioned for the node, on behalf of the pod (UID)."""
        self._sent.setdefault(claim.metadata.uid, {})[pod] = node

    def release(self, pod: str) -> None:
        """Takes back what was promised on behalf of the pod. Nothing when it has no promises."""
        _take_back(self._given, pod)
        _take_back(self._sent, pod)

    @property
    def promising(self) -> frozenset[str]:
        """UIDs of the pods on whose behalf something is promised."""
        given = (pod for pods in self._given.values() for pod in pods)
        sent = (pod for pods in self._sent.values() for pod in pods)
        return frozenset((*given, *sent))

    # Users

    def pod_counted(self, info: PodInfo, node: str) -> None:
        if not info.pod.spec.volumes:
            return
        for use in info.claims:
            self._users.setdefault(f"{info.namespace}/{use.name}", set()).add(info.uid)
        if number := info.attachable_volumes:
            self._attachable[node] = self._attachable.get(node, 0) + number

    def pod_uncounted(self, info: PodInfo, node: str) -> None:
        if not info.pod.spec.volumes:
            return
        for use in info.claims:
            users = self._users.get(f"{info.namespace}/{use.name}")
            if users is not None:
                users.discard(info.uid)
                if not users:
                    del self._users[f"{info.namespace}/{use.name}"]
        if number := info.attachable_volumes:
            left = self._attachable[node] - number
            self._attachable[node] = left
            if not left:
                del self._attachable[node]

    def attachable_on(self, node: str) -> int:
        """At most so many volumes are attached for the pods on the node, bound or assumed."""
        return self._attachable.get(node, 0)

    def is_used(self, namespace: str, claim: str) -> bool:
        """Whether a pod on a node, bound or assumed, uses the claim."""
        return f"{namespace}/{claim}" in self._users

    def check_invariants(self, counted: Iterable[tuple[PodInfo, str]]) -> None:
        """`counted`: the pods that are on nodes, with the node. Raises AssertionError."""
        rebuilt = Volumes(self._objects)
        for info, node in counted:
            rebuilt.pod_counted(info, node)
        assert self._users == rebuilt._users, "users of claims"
        assert self._attachable == rebuilt._attachable, "volumes to attach"
        assert all(self._given.values())
        assert all(self._sent.values())


def _take_back(promises: dict[str, dict[str, P]], pod: str) -> None:
    for name in [name for name, by_pod in promises.items() if pod in by_pod]:
        del promises[name][pod]
        if not promises[name]:
            del promises[name]
