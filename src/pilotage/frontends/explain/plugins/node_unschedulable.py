"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.api.pods import Toleration
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, change_pod, with_spec
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Rows

_CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")


class NodeUnschedulable(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        return Detail("cordoned: spec.unschedulable is true", numbers={"unschedulable": True})

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        """Tried with the toleration that passes a cordon, which also covers the taint that comes with it."""
        yield Change("but for the cordon", "NodeUnschedulable", change_pod(_tolerating), len(rows))


def _tolerating(info: PodInfo) -> PodInfo:
    return with_spec(info, tolerations=[*info.tolerations, _CORDON])
