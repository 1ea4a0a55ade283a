"""The filter verb: an extender narrows the nodes that passed the plugins and the extenders before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotage.framework.settings import ExtenderSettings
from pilotage.scheduling.askers import Screening
from pilotage.scheduling.extenders import REJECTOR, FilterAnswer, FilterQuery, few, is_interested, label
from pilotage.state.podinfo import PodInfo

LEFT_OUT = "node(s) were left out by an extender that gave no reason"


class ExtenderFilter:
    """Implements `askers.Asker`. Who passed is the list of the answer, whatever its reasons say."""

    name = REJECTOR
    timeout = None

    def __init__(self, extender: ExtenderSettings) -> None:
        self._extender = extender
        self.label = label(extender, extender.filter_verb)
        self.is_ignorable = extender.ignorable

    def request(self, pod: PodInfo, node_names: Sequence[str]) -> FilterQuery | None:
        extender = self._extender
        if not is_interested(extender, pod):
            return None
        return FilterQuery(extender, extender.filter_verb, pod, tuple(node_names))

    def screen(self, response: Any, node_names: Sequence[str]) -> Screening:
        """Raises ValueError for nodes that were not asked about."""
        if not isinstance(response, FilterAnswer):
            raise ValueError(f"it was answered by {type(response).__name__}")
        passed, asked = set(response.node_names), set(node_names)
        if not passed <= asked:
            raise ValueError(f"it lets pass {few(sorted(passed - asked))}, which it was not asked about")
        out = asked - passed
        unresolvable = {name: text or LEFT_OUT for name, text in response.unresolvable.items() if name in out}
        failed = {name: text or LEFT_OUT for name, text in response.failed.items() if name in out}
        for name in out - unresolvable.keys() - failed.keys():
            unresolvable[name] = LEFT_OUT
        return Screening(failed, unresolvable)
