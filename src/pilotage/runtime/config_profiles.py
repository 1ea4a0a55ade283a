"""Profiles: names, plugin lists, args; each profile by itself and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pilotage import plugins
from pilotage.framework.args import PluginArgs
from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, ProfileSettings
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_expand import KnownPlugins, expand
from pilotage.runtime.config_model import PluginConfigEntry, ProfileFile
from pilotage.runtime.plugin_args import read_plugin_args

DEFAULT_SCHEDULER = "default-scheduler"
# Keep pods pending that need what is not built yet: not switched off by `disabled: "*"`, only by name.
GUARDS: Final = ("NotBuiltYet",)
# Points at which kube-scheduler's plugin of that name does something and ours needs nothing.
SILENT_POINTS: Final = {
    "TaintToleration": frozenset({"preScore"}),
    "NodeAffinity": frozenset({"preFilter", "preScore"}),
    "NodePorts": frozenset({"preFilter"}),
    "NodeResourcesFit": frozenset({"preFilter", "preScore"}),
    "PodTopologySpread": frozenset({"preFilter", "preScore"}),
    "InterPodAffinity": frozenset({"preFilter", "preScore"}),
    "NodeResourcesBalancedAllocation": frozenset({"preScore"}),
}


@dataclass(slots=True)
class Profiles:
    settings: list[ProfileSettings] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_profiles(files: Sequence[ProfileFile] | None, registry: Registry) -> Profiles:
    found = Profiles()
    files = files or (ProfileFile(),)
    known = known_plugins(registry)
    for index, file in enumerate(files):
        name = file.scheduler_name or ("" if len(files) > 1 else DEFAULT_SCHEDULER)
        _read_profile(file, name, f"profiles[{index}]", registry, known, found)
    _check_names(found)
    _check_queue_sort(found)
    return found


def known_plugins(registry: Registry) -> KnownPlugins:
    names = frozenset(registry.names())
    return KnownPlugins(
        names=names,
        missing=frozenset(plugins.NOT_BUILT_YET) - names,
        points=lambda name: _points(registry, name),
        defaults=tuple(ref for ref in plugins.DEFAULT_MULTIPOINT if ref.name in names),
        guards=frozenset(GUARDS),
        silent=SILENT_POINTS,
    )


def _points(registry: Registry, name: str) -> frozenset[str]:
    """A factory that does not tell its points is at all of them, but never sorts the queue by accident."""
    points = registry.points(name)
    return points - {"queueSort"} if len(points) == len(EXTENSION_POINTS) else points


def _read_profile(
    file: ProfileFile, name: str, path: str, registry: Registry, known: KnownPlugins, found: Profiles
) -> None:
    expansion = expand(file.plugins, known, f"{path}.plugins")
    found.problems += expansion.problems
    found.warnings += expansion.warnings
    args = _read_args(file.plugin_config or (), f"{path}.pluginConfig", registry, known, found)
    for plugin in sorted(expansion.enabled - args.keys()):
        default = read_plugin_args(plugin, registry.args_type(plugin), None, path)
        if default is not None:
            args[plugin] = default
    found.settings.append(
        ProfileSettings(
            scheduler_name=name,
            points=expansion.points,
            args=args,
            percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        )
    )


def _read_args(
    entries: Sequence[PluginConfigEntry],
    path: str,
    registry: Registry,
    known: KnownPlugins,
    found: Profiles,
) -> dict[str, Any]:
    args: dict[str, Any] = {}
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        if entry.name in seen:
            found.problems.append(Problem(f"{where}.name", entry.name, "has args twice"))
        elif entry.name in known.names:
            try:
                kind = registry.args_type(entry.name) or _takes_none(entry.name)
                args[entry.name] = read_plugin_args(entry.name, kind, entry.args, f"{where}.args")
            except ConfigError as error:
                found.problems += error.problems
        elif entry.name in known.missing:
            found.warnings.append(f'{where}: plugin "{entry.name}" is not built yet; its args are not used')
        else:
            reason = "unknown plugin" if entry.name else "a plugin needs a name"
            found.problems.append(Problem(f"{where}.name", entry.name, reason))
        seen.add(entry.name)
    return args


def _takes_none(name: str) -> type[PluginArgs] | None:
    """Built-in plugins without args of their own take none; others' args are their own business."""
    return PluginArgs if name in plugins.default_registry() else None


def _check_names(found: Profiles) -> None:
    seen: set[str] = set()
    for index, profile in enumerate(found.settings):
        where = f"profiles[{index}].schedulerName"
        if not profile.scheduler_name:
            found.problems.append(Problem(where, None, "each of several profiles needs a name"))
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
