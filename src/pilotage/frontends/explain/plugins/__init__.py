"""The numbers behind the built-in plugins' verdicts, one file each, by plugin name.

A plugin without one shows its reason only; a plugin of somebody else may offer a method
`explain(cycle, pod, node) -> str` instead (`custom.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.frontends.explain.plugins import volumes
from pilotage.frontends.explain.plugins.balanced_allocation import BalancedAllocation
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.plugins.inter_pod_affinity import InterPodAffinity
from pilotage.frontends.explain.plugins.node_affinity import NodeAffinity
from pilotage.frontends.explain.plugins.node_declared_features import NodeDeclaredFeatures
from pilotage.frontends.explain.plugins.node_ports import NodePorts
from pilotage.frontends.explain.plugins.node_resources_fit import NodeResourcesFit
from pilotage.frontends.explain.plugins.node_unschedulable import NodeUnschedulable
from pilotage.frontends.explain.plugins.pod_topology_spread import PodTopologySpread
from pilotage.frontends.explain.plugins.taint_toleration import TaintToleration

EXPLANATIONS: Final[Mapping[str, PluginExplanation]] = {
    "NodeUnschedulable": NodeUnschedulable(),
    "TaintToleration": TaintToleration(),
    "NodeAffinity": NodeAffinity(),
    "NodePorts": NodePorts(),
    "NodeResourcesFit": NodeResourcesFit(),
    "PodTopologySpread": PodTopologySpread(),
    "InterPodAffinity": InterPodAffinity(),
    "NodeDeclaredFeatures": NodeDeclaredFeatures(),
    "NodeResourcesBalancedAllocation": BalancedAllocation(),
    **dict.fromkeys(volumes.PLUGINS, volumes.Volumes()),
}

__all__ = ["EXPLANATIONS", "PluginExplanation"]
