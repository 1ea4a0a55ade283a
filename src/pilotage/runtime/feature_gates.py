"""`--feature-gates A=true,B=false` into a value for every gate.

Laws: an unknown gate, a value that is no boolean and a locked gate set otherwise are refused, all at once;
`AllAlpha` and `AllBeta` set what is not named itself; nothing given means the defaults.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pilotage.framework.gates import ALIASES, DEFAULT_GATES, GATES, RESIZE_PREEMPTION, Gate, Stage
from pilotage.runtime.config_errors import ConfigError, Problem

FIELD = "--feature-gates"
_GROUPS = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
# Go's strconv.ParseBool
_WORDS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
# Gates that this scheduler acts upon; the others are accepted and change nothing.
ACTED_UPON = frozenset(
    {
        RESIZE_PREEMPTION,
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "NominatedNodeNameForExpectation",
        "StorageCapacityScoring",
        "VolumeLimitScaling",
    }
)


@dataclass(frozen=True, slots=True)
class GateChoice:
    values: Mapping[str, bool]
    warnings: tuple[str, ...] = ()


def parse_feature_gates(texts: Iterable[str]) -> GateChoice:
    """`texts`: values of the flag, in order; later ones win. Raises ConfigError with all that is wrong."""
    given: dict[str, bool] = {}
    problems: list[Problem] = []
    for text in texts:
        for pair in text.split(","):
            if pair.strip():
                problems += _take(pair.strip(), given)
    if problems:
        raise ConfigError(problems, "feature gates")
    return GateChoice({**_by_groups(given), **_named(given)}, tuple(_warnings(given)))


def _take(pair: str, given: dict[str, bool]) -> Iterator[Problem]:
    name, equals, word = (part.strip() for part in pair.partition("="))
    name = ALIASES.get(name, name)
    gate = GATES.get(name)
    value = _WORDS.get(word)
    if not equals:
        yield Problem(FIELD, pair, "must be NAME=true or NAME=false")
    elif gate is None and name not in _GROUPS:
        yield Problem(FIELD, name, f"unrecognized feature gate{_similar(name)}")
    elif value is None:
        yield Problem(FIELD, pair, "the value must be true or false")
    elif gate is not None and gate.is_locked and value is not gate.default:
        yield Problem(FIELD, pair, f"the feature is locked to {str(gate.default).lower()}")
    else:
        given[name] = value


def _similar(name: str) -> str:
    close = difflib.get_close_matches(name, [*GATES, *_GROUPS], 1)
    return f", did you mean {close[0]}?" if close else ""


def _by_groups(given: Mapping[str, bool]) -> dict[str, bool]:
    values = dict(DEFAULT_GATES)
    for group, stage in _GROUPS.items():
        if group in given:
            values.update({gate.name: given[group] for gate in GATES.values() if gate.stage is stage})
    return values


def _named(given: Mapping[str, bool]) -> dict[str, bool]:
    return {name: value for name, value in given.items() if name in GATES}


def _warnings(given: Mapping[str, bool]) -> Iterator[str]:
    for name, value in given.items():
        gate = GATES.get(name)
        if gate is None:
            continue
        text = f"{FIELD} {name}={str(value).lower()}"
        if gate.stage is Stage.GA:
            yield f"{text}: the feature is generally available, the gate will go away"
        elif _is_idle(gate, value):
            yield f"{text}: has no effect here"


def _is_idle(gate: Gate, value: bool) -> bool:
    return value is not gate.default and gate.name not in ACTED_UPON
