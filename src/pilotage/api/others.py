"""Views of the other kinds that the scheduler watches so far."""

from __future__ import annotations

from msgspec import field

from pilotage.api.meta import KubeObject, LabelSelector, View
from pilotage.api.pods import NodeSelector, ResourceList, ResourceRequirements


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


class VolumeSpec(View, frozen=True):
    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None


class VolumeStatus(View, frozen=True):
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class StorageClass(KubeObject, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None


class CSINodeDriver(View, frozen=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: list[str] | None = None


class CSINodeSpec(View, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()
