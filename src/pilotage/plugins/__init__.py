"""Built-in plugins, one file each; none imports another. Parts of the larger ones are in packages.

`DEFAULT_MULTIPOINT` is kube-scheduler's order and weights. Plugins not built yet are left out of it and
named in `NOT_BUILT_YET`; pods that need one of them are kept pending by `NotBuiltYet`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pilotage.framework.registry import Registry
from pilotage.framework.settings import PluginRef
from pilotage.plugins.default_binder import DefaultBinder
from pilotage.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from pilotage.plugins.deferred_pod_scheduling import DeferredPodScheduling
from pilotage.plugins.dynamic_resources import DynamicResources
from pilotage.plugins.image_locality import ImageLocality
from pilotage.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from pilotage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from pilotage.plugins.node_declared_features import NodeDeclaredFeatures
from pilotage.plugins.node_name import NodeName
from pilotage.plugins.node_ports import NodePorts
from pilotage.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from pilotage.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from pilotage.plugins.node_unschedulable import NodeUnschedulable
from pilotage.plugins.node_volume_limits import NodeVolumeLimits
from pilotage.plugins.not_built_yet import NotBuiltYet
from pilotage.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from pilotage.plugins.priority_sort import PrioritySort
from pilotage.plugins.scheduling_gates import SchedulingGates
from pilotage.plugins.taint_toleration import TaintToleration
from pilotage.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from pilotage.plugins.volume_restrictions import VolumeRestrictions
from pilotage.plugins.volume_zone import VolumeZone

_BUILT_IN = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    NotBuiltYet,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    DeferredPodScheduling,
)

_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

DEFAULT_MULTIPOINT: tuple[PluginRef, ...] = tuple(
    PluginRef(plugin.name, _WEIGHTS.get(plugin.name, 0)) for plugin in _BUILT_IN
)

NOT_BUILT_YET: tuple[str, ...] = (
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)
"""Names that a configuration may mention: known to kube-scheduler, without effect here so far."""

ARGS: Mapping[str, type[msgspec.Struct]] = {
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "DefaultPreemption": DefaultPreemptionArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""Args by plugin name; plugins that are not here take none."""


def default_registry() -> Registry:
    """All built-in plugins."""
    registry = Registry()
    for plugin in _BUILT_IN:
        registry.register(plugin.name, plugin)
    return registry


__all__ = ["ARGS", "DEFAULT_MULTIPOINT", "NOT_BUILT_YET", "default_registry"]
