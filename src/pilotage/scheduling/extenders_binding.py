"""The bind verb: an extender binds in place of the Bind plugins.

Laws: the pod is read afterwards, whatever the extender said (`framework.binding_calls`); an ignorable
extender that fails leaves the pod to the Bind plugins, whose own call finds out what it did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from pilotage.framework.binding_calls import ConfirmBinding
from pilotage.framework.cycle import CycleState
from pilotage.framework.settings import ExtenderSettings
from pilotage.framework.status import SKIP, Status
from pilotage.scheduling.extenders import BindQuery, is_interested, label
from pilotage.scheduling.statuswriter import pod_key
from pilotage.state.podinfo import PodInfo

Send: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Carries a query to its extender; raises whatever went wrong."""


class ExtenderBinder:
    """A Bind plugin in front of the others."""

    def __init__(self, extender: ExtenderSettings, send: Send) -> None:
        self._extender = extender
        self._send = send
        self.name = f"Extender {extender.url_prefix}"
        self._label = label(extender, extender.bind_verb)

    def is_interested(self, pod: PodInfo) -> bool:
        return is_interested(self._extender, pod)

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> ConfirmBinding | Status:
        failure = ""
        try:
            await self._send(BindQuery(self._extender, self._extender.bind_verb, pod, node_name))
        except Exception as exc:  # an extender may fail in any way; it fails its pod, not us
            if self._extender.ignorable:
                return SKIP
            failure = f"{self._label}: {exc}"
        return ConfirmBinding(pod_key(pod), node_name, failure)


Binders: TypeAlias = Sequence[ExtenderBinder]
