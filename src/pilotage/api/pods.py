"""Pod view: spec and status fields that filtering, scoring, preemption and resizing read.

Quantities stay as they were written (`str | int | float`); `requests.py` parses them with their field
path, so that a nonsense quantity becomes a reason on the pod and not a decode error of a list.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import field

from pilotage.api.meta import Condition, KubeObject, LabelSelector, View
from pilotage.api.quantity import RawQuantity

ResourceList: TypeAlias = dict[str, RawQuantity]


class ResourceRequirements(View, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPort(View, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(View, frozen=True):
    action: str = ""


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] | None = None


class NodeSelectorRequirement(View, frozen=True):
    key: str
    operator: str
    values: list[str] | None = None


class NodeSelectorTerm(View, frozen=True):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(View, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(View, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(View, frozen=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(View, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(View, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(View, frozen=True):
    """Shape of both podAffinity and podAntiAffinity."""

    required: list[PodAffinityTerm] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(View, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGate(View, frozen=True):
    name: str = ""


class ClaimVolumeSource(View, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(View, frozen=True):
    reference: str = ""


class Volume(View, frozen=True):
    """Sources that scheduling reads; the raw disks are kept for VolumeRestrictions and NodeVolumeLimits."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: dict[str, object] | None = None
    image: ImageVolumeSource | None = None
    gce_persistent_disk: dict[str, object] | None = None
    aws_elastic_block_store: dict[str, object] | None = None
    azure_disk: dict[str, object] | None = None
    cinder: dict[str, object] | None = None
    vsphere_volume: dict[str, object] | None = None
    iscsi: dict[str, object] | None = None
    rbd: dict[str, object] | None = None


class PodResourceClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(View, frozen=True):
    pod_group_name: str | None = None


class PodSpec(View, frozen=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    host_network: bool = False
    host_users: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: dict[str, object] | None = None
    termination_grace_period_seconds: int | None = None


class ContainerStatus(View, frozen=True):
    name: str = ""
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodStatus(View, frozen=True):
    phase: str = ""
    conditions: list[Condition] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, or None."""
        return next((c for c in self.status.conditions or () if c.type == kind), None)

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")
