"""The prioritize verb: what an extender adds to the scores of the feasible nodes.

Extenders score 0 to 10, plugins 0 to 100. As with kube-scheduler, other whole numbers count as they are;
nodes that the answer does not name get nothing, and one that it names twice gets both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pilotage.framework.plugin import MAX_NODE_SCORE
from pilotage.framework.settings import ExtenderSettings
from pilotage.scheduling.extenders import Rating, RatingQuery, is_interested, label
from pilotage.state.podinfo import PodInfo

MAX_EXTENDER_PRIORITY = 10
_LARGEST = 2**53  # far below what would overflow a total


class ExtenderRater:
    """Implements `askers.Rater`."""

    timeout = None

    def __init__(self, extender: ExtenderSettings) -> None:
        self._extender = extender
        self.label = label(extender, extender.prioritize_verb)

    def request(self, pod: PodInfo, node_names: Sequence[str]) -> RatingQuery | None:
        extender = self._extender
        if not is_interested(extender, pod):
            return None
        return RatingQuery(extender, extender.prioritize_verb, pod, tuple(node_names))

    def rate(self, response: Any) -> Mapping[str, int]:
        """Raises ValueError for scores that no total can hold."""
        factor = self._extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
        added: dict[str, int] = {}
        for rating in response:
            if not isinstance(rating, Rating):
                raise ValueError(f"it was answered by {type(rating).__name__}")
            total = added.get(rating.host, 0) + rating.score * factor
            if abs(total) > _LARGEST:
                raise ValueError(f'score {rating.score} of node "{rating.host}" is beyond all bounds')
            added[rating.host] = total
        return added
