"""What kube-scheduler knows of its own plugins: extension points of each, and names that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.framework.gates import STORAGE_CAPACITY_SCORING

_POINTS: Mapping[str, str] = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "preFilter filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter preScore score reserve preBind",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter reserve preBind score",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
    "DeferredPodScheduling": "preFilter filter permit",
}

UPSTREAM_POINTS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(points.split()) for name, points in _POINTS.items()
}
"""Plugin -> points at which a configuration may list it, whether ours does something there or not."""

GATED_POINTS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "VolumeBinding": (STORAGE_CAPACITY_SCORING, frozenset({"preScore", "score"}))
}
"""Plugin -> gate without which it does nothing at these points."""

REMOVED: Final[Mapping[str, str]] = {
    name: "is gone from kubescheduler.config.k8s.io/v1: NodeVolumeLimits does its work"
    for name in ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
}
