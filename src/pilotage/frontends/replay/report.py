"""Results for people and as JSON: one readable block per failed scenario, the count as the last line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from pilotage.frontends.replay.compare import Aspect, Limit, Mismatch, Result


def failure_block(result: Result) -> str:
    """What differs, on which node, by which plugin."""
    scenario = result.scenario
    lines = [f"FAILED {scenario.name} (family {scenario.family}, {scenario.source})"]
    for title, group in groupby(result.mismatches, key=_title):
        lines.append(f"  {title}")
        lines.extend(f"    {line}" for mismatch in group for line in _lines(mismatch))
    return "\n".join(lines)


def _title(mismatch: Mismatch) -> str:
    if mismatch.aspect is Aspect.SCORE:
        return f"score of {mismatch.plugin}"
    return str(mismatch.aspect.value)


def _lines(mismatch: Mismatch) -> Iterator[str]:
    if mismatch.node and mismatch.aspect is not Aspect.WINNER:
        by = f" by {mismatch.plugin}" if mismatch.plugin and mismatch.aspect is Aspect.FEASIBLE else ""
        yield f"node {mismatch.node}: expected {mismatch.expected}, got {mismatch.actual}{by}"
        return
    yield f"expected: {_shown(mismatch.expected)}"
    yield f"got:      {_shown(mismatch.actual)}"


def _shown(value: Any) -> str:
    return "\n              ".join(value) or "none" if isinstance(value, list) else str(value)


def summary_lines(results: Sequence[Result]) -> list[str]:
    """Limits first, the count last."""
    counted = Counter(limit for result in results for limit in result.limits)
    lines = [
        f"limited: in {counted[limit]} of {len(results)} scenarios {limit.value}"
        for limit in Limit
        if counted[limit]
    ]
    lines.append(count_line(results))
    return lines


def count_line(results: Sequence[Result]) -> str:
    passed, failed = _counts(results)
    return f"{passed} passed, {failed} failed"


def _counts(results: Sequence[Result]) -> tuple[int, int]:
    """Passed and failed ones of those that were compared."""
    compared = [result for result in results if result.is_compared]
    passed = sum(result.has_passed for result in compared)
    return passed, len(compared) - passed


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    passed, failed = _counts(results)
    return {
        "passed": passed,
        "failed": failed,
        "notCompared": len(results) - passed - failed,
        "scenarios": [_result_json(result) for result in results],
    }


def _result_json(result: Result) -> dict[str, Any]:
    scenario = result.scenario
    return {
        "name": scenario.name,
        "family": scenario.family,
        "source": scenario.source,
        "passed": result.has_passed,
        "limits": sorted(limit.value for limit in result.limits),
        "mismatches": [
            {
                "what": mismatch.aspect.value,
                "node": mismatch.node or None,
                "plugin": mismatch.plugin or None,
                "expected": mismatch.expected,
                "actual": mismatch.actual,
            }
            for mismatch in result.mismatches
        ],
    }
