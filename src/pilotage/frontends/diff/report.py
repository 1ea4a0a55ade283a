"""The comparison for people and as JSON (docs/reference/explain.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pilotage.frontends.diff.compare import Comparison, PodDiff, ScoreChange
from pilotage.frontends.explain.amounts import names, number_of
from pilotage.frontends.explain.layout import heading, pairs, width

SCHEMA: Final = "pilotage.dev/diff/v1"
_EXAMPLES: Final = 3
_SIDES: Final = ("A", "B")


def lines(comparison: Comparison, files: tuple[str, str], *, in_sequence: bool) -> list[str]:
    """Pods that differ in the same way are told once."""
    columns = width()
    found = [heading(f"A: {files[0]}"), heading(f"B: {files[1]}"), ""]
    by_text: dict[tuple[str, ...], list[PodDiff]] = {}
    for difference in comparison.differences:
        by_text.setdefault(tuple(pairs(_rows(difference), columns)), []).append(difference)
    for text, alike in by_text.items():
        found += [heading(names([f"{one.namespace}/{one.name}" for one in alike])), *text, ""]
    return [*found, *_summary(comparison, in_sequence=in_sequence)]


def _rows(one: PodDiff) -> Iterator[tuple[str, str]]:
    if one.winners is not None:
        before, after = (names(side) or "none" for side in one.winners)
        yield "goes to", f"{before} -> {after}"
    elif one.nodes[0] != one.nodes[1]:
        yield "goes to", f"{one.nodes[0] or 'none'} -> {one.nodes[1] or 'none'}"
    if one.only_a:
        yield "fits", f"only with A: {names(one.only_a)}"
    if one.only_b:
        yield "fits" if not one.only_a else "", f"only with B: {names(one.only_b)}"
    for index, change in enumerate(one.scores):
        yield "scores" if index == 0 else "", _score_text(change)
    if one.messages is not None:
        for index, message in enumerate(one.messages):
            yield "message" if index == 0 else "", f"{_SIDES[index]}: {message or 'none'}"
    if one.preemption is not None:
        for index, answer in enumerate(one.preemption):
            victims = f"{names(answer[1:])} on {answer[0]}" if answer[0] else "nobody"
            yield "preempts" if index == 0 else "", f"{_SIDES[index]}: {victims}"


def _score_text(change: ScoreChange) -> str:
    some = list(change.nodes.items())[:_EXAMPLES]
    shown = ", ".join(f"{node} {before} -> {after}" for node, (before, after) in some)
    more = len(change.nodes) - len(some)
    return f"{change.plugin}: {shown}{f' and {more:,} more' if more else ''}"


def _summary(comparison: Comparison, *, in_sequence: bool) -> list[str]:
    decided = number_of(comparison.decided, "pod")
    found = comparison.differences
    if not found:
        return [f"{decided} decided, no difference"]
    counts = {
        "node": sum(one.winners is not None for one in found),
        "feasible nodes": sum(one.is_feasible_different for one in found),
        "scores": sum(bool(one.scores) for one in found),
        "message": sum(one.messages is not None for one in found),
        "preemption": sum(one.preemption is not None for one in found),
    }
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items() if number)
    summary = [f"{decided} decided, {len(found):,} differently: {kinds}"]
    if in_sequence:
        sides = zip(_SIDES, comparison.placed, comparison.used, strict=True)
        summary += [
            f"{side} places {number_of(placed, 'pod')} on {number_of(used, 'node')}"
            for side, placed, used in sides
        ]
    return summary


def document(comparison: Comparison, files: tuple[str, str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "a": {"config": files[0], "placed": comparison.placed[0], "nodes": comparison.used[0]},
        "b": {"config": files[1], "placed": comparison.placed[1], "nodes": comparison.used[1]},
        "decided": comparison.decided,
        "different": len(comparison.differences),
        "pods": [_pod(one) for one in comparison.differences],
    }


def _pod(one: PodDiff) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "namespace": one.namespace,
        "name": one.name,
        "node": {"a": one.nodes[0] or None, "b": one.nodes[1] or None},
    }
    if one.winners is not None:
        tree["winners"] = _two(one.winners)
    if one.is_feasible_different:
        tree["feasible"] = {"onlyA": list(one.only_a), "onlyB": list(one.only_b)}
    if one.scores:
        tree["scores"] = {change.plugin: _score_tree(change) for change in one.scores}
    if one.messages is not None:
        tree["message"] = {"a": one.messages[0], "b": one.messages[1]}
    if one.preemption is not None:
        sides = zip(("a", "b"), one.preemption, strict=True)
        tree["preemption"] = {
            side: {"node": answer[0], "victims": list(answer[1:])} if answer[0] else None
            for side, answer in sides
        }
    return tree


def _two(sides: tuple[Sequence[str], Sequence[str]]) -> dict[str, list[str]]:
    return {"a": list(sides[0]), "b": list(sides[1])}


def _score_tree(change: ScoreChange) -> dict[str, dict[str, int]]:
    return {node: {"a": before, "b": after} for node, (before, after) in change.nodes.items()}
