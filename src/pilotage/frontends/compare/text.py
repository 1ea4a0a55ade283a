"""Differences in full, and how many scenarios of each family agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pilotage.frontends.compare.judging import Agreement, Judgement
from pilotage.frontends.compare.watching import Verdict


def difference_block(judgement: Judgement, names: tuple[str, str]) -> str:
    lines = [f"{judgement.scenario.name} ({judgement.scenario.source}): different"]
    lines += [f"  {reason}" for reason in judgement.reasons]
    for name, verdict in zip(names, (judgement.first, judgement.second), strict=True):
        lines += [f"  {name}:", *(f"    {line}" for line in _told(verdict))]
    return "\n".join(lines)


def _told(verdict: Verdict) -> Iterator[str]:
    yield f"node: {verdict.node or 'none'}"
    if verdict.nominated:
        yield f"nominated: {verdict.nominated}"
    if verdict.victims:
        yield f"victims: {', '.join(sorted(verdict.victims))}"
    if verdict.condition:
        yield f"condition: {verdict.condition[0]}: {verdict.condition[1]}"
    for text in verdict.events:
        yield f"event: {text}"


def summary_lines(judgements: Sequence[Judgement]) -> list[str]:
    """A row per family and the totals."""
    counts = Counter((one.scenario.family, one.agreement) for one in judgements)
    families = sorted({family for family, _ in counts})
    lines = [f"{'family':<16}{'same':>8}{'equal':>8}{'different':>11}"]
    for family in families:
        same, equal, different = (counts[family, agreement] for agreement in Agreement)
        lines.append(f"{family:<16}{same:>8}{equal:>8}{different:>11}")
    return [*lines, "", count_line(judgements)]


def count_line(judgements: Sequence[Judgement]) -> str:
    counts = Counter(one.agreement for one in judgements)
    parts = [f"{counts[agreement]} {agreement.value}" for agreement in Agreement]
    return f"{len(judgements)} scenarios: {', '.join(parts)}"


def as_json(judgements: Sequence[Judgement], names: tuple[str, str]) -> dict[str, Any]:
    return {
        "schedulers": list(names),
        "scenarios": [
            {
                "name": one.scenario.name,
                "family": one.scenario.family,
                "agreement": one.agreement.name.lower(),
                "reasons": list(one.reasons),
                "verdicts": [_as_tree(verdict) for verdict in (one.first, one.second)],
            }
            for one in judgements
        ],
    }


def _as_tree(verdict: Verdict) -> dict[str, Any]:
    return {
        "node": verdict.node,
        "condition": list(verdict.condition) if verdict.condition else None,
        "events": list(verdict.events),
        "victims": sorted(verdict.victims),
        "nominated": verdict.nominated,
    }
