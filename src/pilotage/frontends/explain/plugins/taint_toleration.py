"""TaintToleration: which taints are not tolerated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pilotage.api.nodes import Taint
from pilotage.api.pods import Toleration
from pilotage.api.tolerations import HARD_EFFECTS, PREFER_NO_SCHEDULE, is_tolerated
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, Scenario, with_spec
from pilotage.state.view import Rows

NAME = "TaintToleration"
_TRIED = 8


class TaintToleration(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        taints = _untolerated(look, row, HARD_EFFECTS)
        texts = [taint_text(taint) for taint in taints]
        numbers = {"taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in taints]}
        return Detail(f"{_noun(taints)} {', '.join(texts)}", numbers=numbers)

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        """One for each set of taints, the most common first."""
        sets = Counter(_untolerated(look, row, HARD_EFFECTS) for row in rows.tolist())
        for taints, number in sets.most_common(_TRIED):
            texts = ", ".join(map(taint_text, taints))
            yield Change(f"but for {_noun(taints)} {texts}", NAME, _Tolerating(taints), number)

    def score(self, look: Look, row: int) -> str:
        soft = _untolerated(look, row, (PREFER_NO_SCHEDULE,))
        return f"{_noun(soft)} {', '.join(map(taint_text, soft))} not tolerated" if soft else ""


class _Tolerating:
    def __init__(self, taints: tuple[Taint, ...]) -> None:
        self._tolerations = [
            Toleration(key=t.key, operator="Equal" if t.value else "Exists", value=t.value, effect=t.effect)
            for t in taints
        ]

    def __call__(self, scenario: Scenario) -> Scenario:
        known = scenario.pod.tolerations
        return Scenario(with_spec(scenario.pod, tolerations=[*known, *self._tolerations]), scenario.view)


def _untolerated(look: Look, row: int, effects: tuple[str, ...]) -> tuple[Taint, ...]:
    taints = look.view.taints_of(int(look.view.taint_set[row]))
    return tuple(t for t in taints if t.effect in effects and not is_tolerated(t, look.pod.tolerations))


def taint_text(taint: Taint) -> str:
    """`key=value:effect`, as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _noun(taints: tuple[Taint, ...]) -> str:
    return "taint" if len(taints) == 1 else "taints"
