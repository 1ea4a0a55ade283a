"""What the explanation of one plugin offers; everything has a default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.scenario import Change
from pilotage.state.view import Rows


class PluginExplanation:
    """`look` is the survey in which the plugin was the first to reject the rows it is asked about."""

    def detail(self, look: Look, row: int, status: Status) -> Detail:
        """The numbers behind the rejection of one node."""
        return Detail()

    def summary(self, details: Sequence[Detail]) -> str:
        """One text for nodes whose details have the same `group`."""
        texts = {detail.text for detail in details}
        first = details[0]
        return first.text if len(texts) == 1 or not first.group else first.group

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        """What could be changed so that rows which the plugin rejects pass: tried, not promised."""
        return ()

    def score(self, look: Look, row: int) -> str:
        """The numbers behind a feasible node's score."""
        return ""


def untie(texts: Iterable[str]) -> list[str]:
    """Each once, in order."""
    return list(dict.fromkeys(texts))
