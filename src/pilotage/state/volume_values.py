"""PersistentVolumes and claims compiled once per version, and the rules by which one fits the other.

Why here: VolumeBinding asks them for all nodes at once, a volume controller for one pair. Laws: never
raises on objects that decoded; what makes no sense becomes `defect`, and a defective one fits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilotage.api.label_matcher import EVERYTHING
from pilotage.api.meta import KubeObject
from pilotage.api.others import PersistentVolume, PersistentVolumeClaim
from pilotage.api.pods import ResourceList
from pilotage.api.quantity import QuantityError, value
from pilotage.api.selectors import (
    LabelMatcher,
    NodeMatcher,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
AVAILABLE: Final = "Available"
LOST: Final = "Lost"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_FILESYSTEM: Final = "Filesystem"


def annotation(view: KubeObject, name: str) -> str:
    """Empty where the object has none of that name."""
    return (view.metadata.annotations or {}).get(name, "")


def has_annotation(view: KubeObject, name: str) -> bool:
    return name in (view.metadata.annotations or ())


def class_of(view: PersistentVolume | PersistentVolumeClaim) -> str:
    """Name of its StorageClass, empty for none; the old annotation comes first."""
    return annotation(view, _CLASS) or view.spec.storage_class_name or ""


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """A volume is named and the controller has finished: before that nobody may use it."""
    return bool(claim.spec.volume_name) and has_annotation(claim, BIND_COMPLETED)


def _storage(amounts: ResourceList | None) -> int:
    """Bytes; 0 where nothing is said. Raises QuantityError."""
    amount = (amounts or {}).get("storage")
    return 0 if amount is None else value(amount)


@dataclass(frozen=True, slots=True)
class Request:
    """What a claim asks for."""

    view: PersistentVolumeClaim
    class_name: str
    size: int = 0  # bytes
    has_size: bool = False
    selector: LabelMatcher = EVERYTHING
    defect: str = ""

    @property
    def key(self) -> str:
        return self.view.key

    @property
    def modes(self) -> frozenset[str]:
        return frozenset(self.view.spec.access_modes or ())


@dataclass(frozen=True, slots=True)
class Volume:
    """What a PersistentVolume offers. `affinity` None: every node reaches it."""

    view: PersistentVolume
    class_name: str
    size: int = 0  # bytes
    affinity: NodeMatcher | None = None
    defect: str = ""

    @property
    def name(self) -> str:
        return self.view.metadata.name

    @property
    def modes(self) -> frozenset[str]:
        return frozenset(self.view.spec.access_modes or ())


def compile_request(claim: PersistentVolumeClaim) -> Request:
    amounts = claim.spec.resources.requests
    try:
        size = _storage(amounts)
        selector = EVERYTHING
        if claim.spec.selector is not None:
            selector = compile_label_selector(claim.spec.selector, "spec.selector")
    except (QuantityError, SelectorError) as problem:
        return Request(claim, class_of(claim), defect=str(problem))
    return Request(claim, class_of(claim), size, "storage" in (amounts or {}), selector)


def compile_volume(volume: PersistentVolume) -> Volume:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    try:
        matcher = None if required is None else compile_node_selector(required)
        return Volume(volume, class_of(volume), _storage(volume.spec.capacity), matcher)
    except (QuantityError, SelectorError) as problem:
        return Volume(volume, class_of(volume), affinity=NodeMatcher(), defect=str(problem))


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume's claimRef names this claim, and no namesake of it."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
        return False
    return reference.uid in ("", meta.uid)


def is_usable(volume: Volume, request: Request) -> bool:
    """Large enough, of the mode asked for and not on its way out: needed of reserved volumes too."""
    offered, asked = volume.view.spec, request.view.spec
    return (
        not volume.defect
        and not request.defect
        and volume.size >= request.size
        and (offered.volume_mode or _FILESYSTEM) == (asked.volume_mode or _FILESYSTEM)
        and (offered.volume_attributes_class_name or "") == (asked.volume_attributes_class_name or "")
        and volume.view.metadata.deletion_timestamp is None
    )


def is_choice(volume: Volume, request: Request) -> bool:
    """Whether a volume that nobody has reserved may be given to the claim."""
    return (
        volume.view.spec.claim_ref is None
        and volume.view.status.phase == AVAILABLE
        and volume.class_name == request.class_name
        and request.selector.matches(volume.view.metadata.labels)
        and request.modes <= volume.modes
        and is_usable(volume, request)
    )
