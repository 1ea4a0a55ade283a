"""Interned taint sets, and how many taints of each set a pod does not tolerate.

Laws: a set gets its id once; id 0 is the empty set. Many nodes share few sets, so a pod's tolerations are
compared with sets, never with nodes; answers are kept per list of tolerations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pilotage.api.nodes import Taint
from pilotage.api.pods import Toleration
from pilotage.api.tolerations import HARD_EFFECTS, is_tolerated
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, Int64, NodeView

_CACHED_ANSWERS = 512

_Question = tuple[tuple[Toleration, ...], tuple[str, ...]]


class TaintSets:
    """Taint sets by id."""

    __slots__ = ("_answers", "_ids", "_sets")

    def __init__(self) -> None:
        self._sets: list[tuple[Taint, ...]] = [()]
        self._ids: dict[tuple[Taint, ...], int] = {(): 0}
        self._answers: dict[_Question, Int64] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, taint_set: int) -> tuple[Taint, ...]:
        return self._sets[taint_set]

    def intern(self, taints: Sequence[Taint]) -> int:
        key = tuple(taints)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._sets)
            self._sets.append(key)
        return found

    def untolerated_counts(self, tolerations: tuple[Toleration, ...], effects: tuple[str, ...]) -> Int64:
        """[sets] taints with one of `effects` that nothing tolerates."""
        question = (tolerations, effects)
        known = self._answers.get(question)
        if known is not None and len(known) == len(self._sets):
            return known
        counts = [_count_untolerated(taints, tolerations, effects) for taints in self._sets]
        if len(self._answers) >= _CACHED_ANSWERS:
            self._answers.clear()
        answer = self._answers[question] = np.array(counts, np.int64)
        return answer


def _count_untolerated(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], effects: Collection[str]
) -> int:
    return sum(t.effect in effects and not is_tolerated(t, tolerations) for t in taints)


def untolerated_mask(view: NodeView, info: PodInfo, effects: tuple[str, ...] = HARD_EFFECTS) -> Bool | None:
    """[n_rows] nodes with a taint of those effects that the pod does not tolerate; None: no such taints."""
    counts = view.untolerated_counts(info.tolerations, effects)
    if not counts.any():
        return None
    is_untolerated: Bool = counts > 0
    return is_untolerated[view.taint_set]
