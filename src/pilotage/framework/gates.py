"""Feature gates: names, stages and defaults, as a literal table.

Laws:
- Every gate that kube-scheduler's decisions depend on stands here, whether the feature is built or not;
  `Settings.gates` holds a value for each of them.
- Two defaults differ from kube-scheduler's on purpose: what this scheduler was built for is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Stage(StrEnum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""  # as kube-scheduler's kubernetes_feature_enabled metric writes it


@dataclass(frozen=True, slots=True)
class Gate:
    """`is_locked`: may not be set to anything but its default."""

    name: str
    stage: Stage
    default: bool
    is_locked: bool = False


ASYNC_API_CALLS = "SchedulerAsyncAPICalls"
ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
POP_FROM_BACKOFF = "SchedulerPopFromBackoffQ"
NOMINATION_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
RESIZE_PREEMPTION = "InPlacePodVerticalScalingSchedulerPreemption"
STORAGE_CAPACITY_SCORING = "StorageCapacityScoring"
DRA_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
DRA_BINDING_CONDITIONS = "DRADeviceBindingConditions"

_LOCKED = (
    "SchedulerQueueingHints",
    "DynamicResourceAllocation",
    "InPlacePodVerticalScaling",
    "MatchLabelKeysInPodAffinity",
    "PodSchedulingReadiness",
    "SidecarContainers",
    "PodObservedGenerationTracking",
)
_BETA = (
    ASYNC_API_CALLS,  # off in kube-scheduler
    ASYNC_PREEMPTION,
    POP_FROM_BACKOFF,
    "OpportunisticBatching",
    NOMINATION_FOR_EXPECTATION,
    "ClearingNominatedNodeNameAfterBinding",
    "DRAExtendedResource",
    "DRAConsumableCapacity",
    DRA_BINDING_CONDITIONS,
    "DRADeviceTaints",
    DRA_FILTER_TIMEOUT,
    "InPlacePodLevelResourcesVerticalScaling",
    "PodLevelResources",
    "NodeDeclaredFeatures",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "WatchListClient",
)
_ALPHA = (
    "GenericWorkload",
    "GangScheduling",
    "WorkloadAwarePreemption",
    "TopologyAwareWorkloadScheduling",
    "DRANodeAllocatableResources",
    "TaintTolerationComparisonOperators",
    STORAGE_CAPACITY_SCORING,
    "VolumeLimitScaling",
    "InPlacePodVerticalScalingMemoryBackedVolumes",
)

GATES: Mapping[str, Gate] = MappingProxyType(
    {
        gate.name: gate
        for gate in (
            *(Gate(name, Stage.GA, True, is_locked=True) for name in _LOCKED),
            *(Gate(name, Stage.BETA, True) for name in _BETA),
            *(Gate(name, Stage.ALPHA, False) for name in _ALPHA),
            Gate(RESIZE_PREEMPTION, Stage.ALPHA, True),  # off in kube-scheduler
        )
    }
)

ALIASES: Mapping[str, str] = MappingProxyType({"SchedulerPreemptionForPodResize": RESIZE_PREEMPTION})
"""Other names of gates that a command line may use: KEP-5836 calls its gate so."""

DEFAULT_GATES: Mapping[str, bool] = MappingProxyType({gate.name: gate.default for gate in GATES.values()})
