"""Views of the other kinds that the scheduler watches so far."""

from __future__ import annotations

from msgspec import field

from pilotage.api.meta import KubeObject, LabelSelector, View
from pilotage.api.pods import NodeSelector, ResourceList, ResourceRequirements
from pilotage.api.quantity import RawQuantity


class Namespace(KubeObject, frozen=True):
    pass


class ServiceSpec(View, frozen=True):
    selector: dict[str, str] | None = None


class Service(KubeObject, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(KubeObject, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(View, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(KubeObject, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(KubeObject, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class PriorityClass(KubeObject, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ClaimSpec(View, frozen=True):
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()


class ClaimStatus(View, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimReference(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeNodeAffinity(View, frozen=True):
    required: NodeSelector | None = None


class CSIVolumeSource(View, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(View, frozen=True):
    """The in-tree sources are those that a CSI driver serves by now; NodeVolumeLimits counts them."""

    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: dict[str, object] | None = None
    aws_elastic_block_store: dict[str, object] | None = None
    azure_disk: dict[str, object] | None = None
    cinder: dict[str, object] | None = None
    vsphere_volume: dict[str, object] | None = None


class VolumeStatus(View, frozen=True):
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyExpression(View, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologyTerm(View, frozen=True):
    match_label_expressions: list[TopologyExpression] | None = None


class StorageClass(KubeObject, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None
    reclaim_policy: str | None = None


class CSINodeAllocatable(View, frozen=True):
    count: int | None = None


class CSINodeDriver(View, frozen=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(View, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(View, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    """Namespaced, but its namespace means nothing to scheduling."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class AttachmentSource(View, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(View, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachmentStatus(View, frozen=True):
    attached: bool = False


class VolumeAttachment(KubeObject, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
