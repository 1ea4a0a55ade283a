"""`--pilotage-config`: what kube-scheduler's file has no words for: lanes, workers, plugins, call types.

Kept apart so that a KubeSchedulerConfiguration stays one that kube-scheduler reads too.

Laws: strict like that file: unknown fields and broken rules are refused, all at once; what is left out
keeps its default; only lanes whose calls may be lost have a cap or an age.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotage.calls.lanes import DEFAULT_LIMITS, LaneLimits
from pilotage.calls.types import Lane
from pilotage.runtime.call_types_loading import AddedType, CallTypeSource
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_model import Int32, Strict
from pilotage.runtime.config_shape import read_shape, without_nulls
from pilotage.runtime.config_yaml import read_yaml
from pilotage.runtime.dispatcher import WORKERS
from pilotage.runtime.durations import parse_duration
from pilotage.runtime.plugins_loading import PluginSource

PILOTAGE_API_VERSION = "pilotage.dev/v1alpha1"
PILOTAGE_KIND = "PilotageConfiguration"
LOSSY_LANES = (Lane.STATUS, Lane.EVENT)
_FEWEST_WORKERS = 2  # one is always kept for binds


class LaneFile(Strict, frozen=True):
    in_flight: Int32 | None = None
    max_waiting: Int32 | None = None
    max_age: str | None = None


class LanesFile(Strict, frozen=True):
    bind: LaneFile | None = None
    volume: LaneFile | None = None
    nomination: LaneFile | None = None
    status: LaneFile | None = None
    event: LaneFile | None = None


class CallsFile(Strict, frozen=True):
    workers: Int32 | None = None
    lanes: LanesFile | None = None


class PluginFile(Strict, frozen=True):
    name: str | None = None
    path: str = ""


class CallTypeFile(Strict, frozen=True):
    path: str = ""
    replaces: str | None = None


class PilotageFile(Strict, frozen=True):
    api_version: str = ""
    kind: str = ""
    calls: CallsFile | None = None
    call_types: list[CallTypeFile] | None = None
    plugins: list[PluginFile] | None = None


@dataclass(frozen=True, slots=True)
class CallTuning:
    """`workers`: API requests at once. `types`: beside or in place of the built-in call types."""

    workers: int = WORKERS
    lanes: Mapping[Lane, LaneLimits] = field(default_factory=lambda: DEFAULT_LIMITS)
    types: tuple[AddedType, ...] = ()


@dataclass(frozen=True, slots=True)
class PilotageConfig:
    calls: CallTuning = field(default_factory=CallTuning)
    plugins: tuple[PluginSource, ...] = ()
    call_types: tuple[CallTypeSource, ...] = ()


def load_pilotage_config(source: str | Path | Mapping[str, Any]) -> PilotageConfig:
    """A file (YAML or JSON) or a tree. Raises ConfigError."""
    name = "" if isinstance(source, Mapping) else str(source)
    try:
        tree = without_nulls(source if isinstance(source, Mapping) else read_yaml(Path(source)))
        return _load(tree)
    except ConfigError as error:
        raise ConfigError(error.problems, name) from None


def _load(tree: Mapping[str, Any]) -> PilotageConfig:
    for name, wanted in (("apiVersion", PILOTAGE_API_VERSION), ("kind", PILOTAGE_KIND)):
        if tree.get(name) != wanted:
            raise ConfigError([Problem(name, tree.get(name), f"must be {wanted}")])
    file = read_shape(tree, PilotageFile)
    problems: list[Problem] = []
    calls = _calls(file.calls or CallsFile(), problems)
    plugins = tuple(_plugins(file.plugins or (), problems))
    types = tuple(_call_types(file.call_types or (), problems))
    if problems:
        raise ConfigError(problems)
    return PilotageConfig(calls, plugins, types)


def _calls(file: CallsFile, problems: list[Problem]) -> CallTuning:
    workers = WORKERS if file.workers is None else file.workers
    if workers < _FEWEST_WORKERS:
        problems.append(Problem("calls.workers", workers, f"must be {_FEWEST_WORKERS} or more"))
    lanes = {
        lane: _lane(lane, getattr(file.lanes, lane.name.lower(), None) or LaneFile(), problems)
        for lane in Lane
    }
    return CallTuning(workers, lanes)


def _lane(lane: Lane, file: LaneFile, problems: list[Problem]) -> LaneLimits:
    where, default = f"calls.lanes.{lane.name.lower()}", DEFAULT_LIMITS[lane]
    in_flight = default.in_flight if file.in_flight is None else file.in_flight
    cap = default.cap if file.max_waiting is None else file.max_waiting
    age = _age(f"{where}.maxAge", file.max_age, default.max_age, problems)
    if in_flight < 1:
        problems.append(Problem(f"{where}.inFlight", in_flight, "must be 1 or more"))
    if cap is not None and cap < 1:
        problems.append(Problem(f"{where}.maxWaiting", cap, "must be 1 or more"))
    if lane not in LOSSY_LANES:
        problems += _must_not_lose(where, file)
    return LaneLimits(in_flight, cap, age)


def _must_not_lose(where: str, file: LaneFile) -> Iterator[Problem]:
    names = " and ".join(lane.name.lower() for lane in LOSSY_LANES)
    for name, value in (("maxWaiting", file.max_waiting), ("maxAge", file.max_age)):
        if value is not None:
            yield Problem(f"{where}.{name}", value, f"only the lanes {names} may lose calls")


def _age(field: str, text: str | None, default: float | None, problems: list[Problem]) -> float | None:
    if text is None:
        return default
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        problems.append(Problem(field, text, str(error)))
        return default
    if seconds <= 0:
        problems.append(Problem(field, text, "must be more than 0"))
    return seconds


def _call_types(files: Any, problems: list[Problem]) -> Iterator[CallTypeSource]:
    for index, file in enumerate(files):
        where = f"callTypes[{index}]"
        module, _, attribute = file.path.partition(":")
        if not (module and attribute):
            problems.append(Problem(f"{where}.path", file.path, "must be module:Class"))
        elif file.replaces == "":
            problems.append(Problem(f"{where}.replaces", "", "must name a call type, or be left out"))
        else:
            yield CallTypeSource(module, attribute, file.replaces or "", f"{where}.path")


def _plugins(files: Any, problems: list[Problem]) -> Iterator[PluginSource]:
    seen: set[str] = set()
    for index, file in enumerate(files):
        where = f"plugins[{index}]"
        module, colon, attribute = file.path.partition(":")
        if not (module and colon and attribute):
            problems.append(Problem(f"{where}.path", file.path, "must be module:Class"))
            continue
        name = file.name or attribute.rpartition(".")[2]
        if name in seen:
            problems.append(Problem(f"{where}.name", name, "is the name of another plugin"))
        seen.add(name)
        yield PluginSource(name, module, attribute, f"{where}.path")
