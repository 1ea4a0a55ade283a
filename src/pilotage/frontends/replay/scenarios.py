"""Recorded scenarios, one JSON document a line, read with errors that name file and line.

A decision has `objects`, `pod` and `expect`; a line with `event` instead records which events wake a pod.
Files that end in .gz are unpacked.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec


class ScenarioError(Exception):
    """A file or line that is no recorded scenario. The text names both."""


class Condition(msgspec.Struct, frozen=True):
    """The first PodScheduled=False condition."""

    status: str
    reason: str
    message: str


class Expectation(msgspec.Struct, frozen=True):
    """What kube-scheduler did. `best` is absent when fewer than two nodes were feasible."""

    bound: str | None
    scores: dict[str, dict[str, int]] = {}
    total: dict[str, int] = {}
    best: list[str] | None = None
    condition: Condition | None = None
    events: list[str] = []
    nominated: str | None = None
    victims: list[str] = []

    @property
    def feasible(self) -> frozenset[str]:
        """Nodes that passed all filters in the first attempt."""
        if self.scores:
            return frozenset(node for by_node in self.scores.values() for node in by_node)
        if self.victims or self.condition is not None:
            return frozenset()
        chosen = self.bound or self.nominated
        return frozenset((chosen,)) if chosen else frozenset()

    @property
    def winners(self) -> frozenset[str]:
        """Nodes any of which is right; empty when no node was feasible."""
        return frozenset(self.best) if self.best is not None else self.feasible


class HintExpectation(msgspec.Struct, frozen=True):
    """Whether a request took the pod out of the unschedulable pool, and under which event."""

    moved: bool
    label: str | None = None
    bound: str | None = None


class RecordedRequest(msgspec.Struct, frozen=True):
    """An API request that was made while the pod waited."""

    method: str
    path: str
    body: Any = None
    type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`source` is file and line. `is_hint`: it tells which requests wake a pod, not what was decided.

    A decision has `expect`; a hint has `reason`, `requests` and `expect_hint`.
    """

    source: str
    name: str
    family: str
    objects: list[dict[str, Any]]
    pod: dict[str, Any]
    expect: Expectation | None = None
    reason: str = ""
    requests: tuple[RecordedRequest, ...] = ()
    expect_hint: HintExpectation | None = None

    @property
    def is_hint(self) -> bool:
        return self.expect_hint is not None


class _DecisionLine(msgspec.Struct):
    name: str
    family: str
    objects: list[dict[str, Any]]
    pod: dict[str, Any]
    expect: Expectation


class _HintLine(msgspec.Struct):
    name: str
    reason: str
    objects: list[dict[str, Any]]
    pod: dict[str, Any]
    event: list[RecordedRequest]
    expect: HintExpectation


_decode_any: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_decision: Final = msgspec.json.Decoder(_DecisionLine).decode
_decode_hint: Final = msgspec.json.Decoder(_HintLine).decode


def read_scenarios(path: Path) -> list[Scenario]:
    """All scenarios of a file, in order. Raises ScenarioError."""
    found = []
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            found.append(_scenario(f"{path}:{number}", line))
    if not found:
        raise ScenarioError(f"{path}: no scenarios in it")
    return found


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with _open(path) as file:
            yield from file
    except (OSError, EOFError) as exc:
        raise ScenarioError(f"{path}: {getattr(exc, 'strerror', None) or exc}") from exc


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _scenario(source: str, line: bytes) -> Scenario:
    try:
        if "event" in _decode_any(line):
            hint = _decode_hint(line)
            return _checked(_hint_scenario(source, hint))
        decision = _decode_decision(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ScenarioError(f"{source}: not a recorded scenario: {exc}") from exc
    return _checked(
        Scenario(source, decision.name, decision.family, decision.objects, decision.pod, decision.expect)
    )


def _hint_scenario(source: str, hint: _HintLine) -> Scenario:
    return Scenario(
        source,
        hint.name,
        "hints",
        hint.objects,
        hint.pod,
        reason=hint.reason,
        requests=tuple(hint.event),
        expect_hint=hint.expect,
    )


def _checked(scenario: Scenario) -> Scenario:
    """Every object has a kind and a name. Raises ScenarioError."""
    for index, tree in enumerate((*scenario.objects, scenario.pod)):
        metadata = tree.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not (isinstance(name, str) and isinstance(tree.get("kind"), str)):
            where = f"objects[{index}]" if index < len(scenario.objects) else "pod"
            raise ScenarioError(f"{scenario.source}: {where} has no kind or no metadata.name")
    return scenario
