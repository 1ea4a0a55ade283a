"""Profiles: names, plugin lists, args; each profile by itself and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from pilotage import plugins
from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, ProfileSettings
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_expand import KnownPlugins, expand
from pilotage.runtime.config_model import PluginConfigEntry, ProfileFile
from pilotage.runtime.config_upstream import GATED_POINTS, REMOVED, UPSTREAM_POINTS
from pilotage.runtime.config_validate import percentage_problems
from pilotage.runtime.plugin_args import KINDS, read_plugin_args

DEFAULT_SCHEDULER = "default-scheduler"
# Keep pods pending that need what is not built yet: not switched off by `disabled: "*"`, only by name.
GUARDS: Final = ("NotBuiltYet",)


@dataclass(slots=True)
class Profiles:
    settings: list[ProfileSettings] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_profiles(
    files: Sequence[ProfileFile] | None,
    registry: Registry,
    gates: Mapping[str, bool],
    ignored_resources: Sequence[str] = (),
) -> Profiles:
    """`ignored_resources`: what extenders manage in NodeResourcesFit's place."""
    found = Profiles()
    files = files or (ProfileFile(),)
    known = known_plugins(registry, gates)
    for index, file in enumerate(files):
        reader = ArgsReader(f"profiles[{index}].pluginConfig", registry, known, gates, found)
        _read_profile(file, _name(file, len(files)), f"profiles[{index}]", reader, ignored_resources)
    _check_names(found)
    _check_queue_sort(found)
    return found


def _name(file: ProfileFile, count: int) -> str:
    if file.scheduler_name is None:
        return DEFAULT_SCHEDULER if count == 1 else ""
    return file.scheduler_name


def known_plugins(registry: Registry, gates: Mapping[str, bool]) -> KnownPlugins:
    names = frozenset(registry.names())
    return KnownPlugins(
        names=names,
        missing=frozenset(plugins.NOT_BUILT_YET) - names,
        points=lambda name: _points(registry, name) - _closed(name, gates),
        defaults=tuple(ref for ref in plugins.DEFAULT_MULTIPOINT if ref.name in names),
        guards=frozenset(GUARDS),
        upstream=UPSTREAM_POINTS,
        removed=REMOVED,
    )


def _closed(name: str, gates: Mapping[str, bool]) -> frozenset[str]:
    """Points that a feature gate keeps a plugin from."""
    gate, points = GATED_POINTS.get(name, ("", frozenset()))
    return points if gate and not gates.get(gate) else frozenset()


def _points(registry: Registry, name: str) -> frozenset[str]:
    """A factory that does not tell its points is at all of them, but never sorts the queue by accident."""
    points = registry.points(name)
    return points - {"queueSort"} if len(points) == len(EXTENSION_POINTS) else points


def _read_profile(
    file: ProfileFile, name: str, path: str, reader: ArgsReader, ignored_resources: Sequence[str]
) -> None:
    expansion = expand(file.plugins, reader.known, f"{path}.plugins")
    found = reader.found
    found.problems += expansion.problems
    found.warnings += expansion.warnings
    args = reader.read(file.plugin_config or (), expansion.enabled)
    if ignored_resources and "NodeResourcesFit" in args:
        args["NodeResourcesFit"] = _ignoring(args["NodeResourcesFit"], ignored_resources)
    found.problems += percentage_problems(
        f"{path}.percentageOfNodesToScore", file.percentage_of_nodes_to_score
    )
    found.settings.append(
        ProfileSettings(
            scheduler_name=name,
            points=expansion.points,
            args=args,
            percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        )
    )


def _ignoring(args: Any, resources: Sequence[str]) -> Any:
    return msgspec.structs.replace(
        args, ignored_resources=tuple(dict.fromkeys((*args.ignored_resources, *resources)))
    )


@dataclass(frozen=True, slots=True)
class ArgsReader:
    """Reads pluginConfig of one profile; problems and warnings go to `found`."""

    path: str
    registry: Registry
    known: KnownPlugins
    gates: Mapping[str, bool]
    found: Profiles

    def read(self, entries: Sequence[PluginConfigEntry], enabled: frozenset[str]) -> dict[str, Any]:
        """Args by plugin: what is written, and the defaults of plugins that are enabled without any."""
        args: dict[str, Any] = {}
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            where = f"{self.path}[{index}]"
            if entry.name in seen:
                self.found.problems.append(Problem(f"{where}.name", entry.name, "has args twice"))
            elif entry.name in REMOVED:
                self.found.problems.append(Problem(f"{where}.name", entry.name, REMOVED[entry.name]))
            else:
                self._read_entry(entry, where, args)
            seen.add(entry.name)
        for name in sorted(enabled - seen):
            default = read_plugin_args(name, self._kind(name), None, self.path, self.gates)
            if default is not None:
                args[name] = default
        return args

    def _read_entry(self, entry: PluginConfigEntry, where: str, args: dict[str, Any]) -> None:
        name = entry.name
        try:
            read = read_plugin_args(name, self._kind(name), entry.args, f"{where}.args", self.gates)
        except ConfigError as error:
            self.found.problems += error.problems
            return
        if name in self.known.names and read is not None:
            args[name] = read
        if reason := self._why_unused(entry):
            self.found.warnings.append(f'{where}: plugin "{name}" {reason}; its args are not used')

    def _kind(self, name: str) -> type[Any] | None:
        kind = self.registry.args_type(name) if name in self.known.names else None
        return kind or KINDS.get(name)

    def _why_unused(self, entry: PluginConfigEntry) -> str:
        if entry.name in self.known.missing:
            return "is not built yet"
        if entry.name not in self.known.names:
            return "is not known"
        takes_none = entry.name in UPSTREAM_POINTS and self._kind(entry.name) is None
        return "takes no args" if takes_none and entry.args else ""


def _check_names(found: Profiles) -> None:
    seen: set[str] = set()
    for index, profile in enumerate(found.settings):
        where = f"profiles[{index}].schedulerName"
        if not profile.scheduler_name:
            is_alone = len(found.settings) == 1
            reason = "must not be empty" if is_alone else "each of several profiles needs a name"
            found.problems.append(Problem(where, None, reason))
        elif profile.scheduler_name in seen:
            found.problems.append(Problem(where, profile.scheduler_name, "is the name of another profile"))
        seen.add(profile.scheduler_name)


def _check_queue_sort(found: Profiles) -> None:
    """There is one queue: all profiles must sort it alike."""
    sorters = [profile.points["queueSort"] for profile in found.settings]
    if any(len(refs) != 1 for refs in sorters):
        return  # reported where the profile was expanded
    first = found.settings[0]
    name = sorters[0][0].name
    for index, (profile, refs) in enumerate(zip(found.settings, sorters, strict=True)):
        where = f"profiles[{index}].plugins.queueSort"
        if refs[0].name != name:
            reason = f"must be the same in all profiles ({name} in the first)"
            found.problems.append(Problem(where, refs[0].name, reason))
        elif profile.args.get(name) != first.args.get(name):
            found.problems.append(Problem(where, name, "must have the same args in all profiles"))
