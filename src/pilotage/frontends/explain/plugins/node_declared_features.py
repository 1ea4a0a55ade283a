"""NodeDeclaredFeatures: which features of the node's agent the pod needs and the node does not declare."""

from __future__ import annotations

from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation

NAME = "NodeDeclaredFeatures"


class NodeDeclaredFeatures(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        needed = look.cycle.get(NAME)
        if not isinstance(needed, frozenset):
            return Detail()
        missing = sorted(needed - frozenset(look.view.node(row).status.declared_features or ()))
        return Detail(f"does not declare {', '.join(missing)}", numbers={"missingFeatures": missing})
