"""NodeResourcesBalancedAllocation: the shares of cpu and memory that it compares."""

from __future__ import annotations

from pilotage.frontends.explain.amounts import amount
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.plugins.base import PluginExplanation


class BalancedAllocation(PluginExplanation):
    def score(self, look: Look, row: int) -> str:
        """Real requests: containers that ask for nothing count as nothing."""
        parts = []
        for resource in ("cpu", "memory"):
            column = look.view.column(resource)
            if column is None:
                continue
            offered = int(look.view.allocatable[row, column])
            used = int(look.view.requested[row, column]) + look.pod.requests.get(resource, 0)
            parts.append(f"{resource} {amount(resource, used)} of {amount(resource, offered)} with the pod")
        return f"{', '.join(parts)} (real requests)"
