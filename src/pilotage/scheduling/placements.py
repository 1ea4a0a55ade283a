"""Copies of a pod that show a placement which so far exists in memory alone, for hints to judge."""

from __future__ import annotations

from msgspec.structs import replace

from pilotage.state.podinfo import PodInfo


def placed(pod: PodInfo, node: str) -> PodInfo:
    """The pod as it was assumed: with its node's name."""
    return pod if pod.node_name == node else pod.bound_to(node)


def nominated_to(pod: PodInfo, node: str) -> PodInfo:
    """The pod as it was nominated in memory."""
    if pod.pod.status.nominated_node_name == node:
        return pod
    return PodInfo(replace(pod.pod, status=replace(pod.pod.status, nominated_node_name=node)))
