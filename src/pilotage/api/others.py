"""Views of the other kinds that the scheduler watches so far."""

from __future__ import annotations

from pilotage.api.meta import KubeObject, LabelSelector, View


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
