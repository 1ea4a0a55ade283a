"""Which plugins run at each extension point: multiPoint expanded as kube-scheduler does.

1. The profile's multiPoint list is merged into the default one: a default that is listed again keeps its
   place and takes the new weight, a disabled one drops out, others are appended.
2. At a point: plugins of the merged list that the profile lists there again (in that order), then the other
   ones of the merged list that implement the point, then those listed only there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pilotage.framework.settings import EXTENSION_POINTS, PluginRef
from pilotage.runtime.config_errors import Problem
from pilotage.runtime.config_model import PluginEntry, PluginSetFile, PluginsFile

ALL = "*"
_NO_SET = PluginSetFile()
_FIELDS = {f.encode_name: f.name for f in msgspec.structs.fields(PluginsFile)}


@dataclass(frozen=True, slots=True)
class KnownPlugins:
    """`points(name)`: extension points of a built plugin. `missing`: known names that are not built yet."""

    names: frozenset[str]
    missing: frozenset[str]
    points: Callable[[str], frozenset[str]]
    defaults: Sequence[PluginRef]
    guards: frozenset[str] = frozenset()  # defaults that only their own name disables
    upstream: Mapping[str, frozenset[str]] = field(default_factory=dict)  # points of kube-scheduler's plugins
    removed: Mapping[str, str] = field(default_factory=dict)  # names that were known once -> what to do

    def accepts(self, name: str, point: str) -> bool:
        """Whether the plugin may be listed there: where kube-scheduler's acts, though ours may not."""
        if point == "multiPoint":
            return True
        if name in self.upstream:
            return point in self.upstream[name]
        return name not in self.names or point in self.points(name)


@dataclass(slots=True)
class Expansion:
    points: dict[str, tuple[PluginRef, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def enabled(self) -> frozenset[str]:
        return frozenset(ref.name for refs in self.points.values() for ref in refs)


def expand(plugins: PluginsFile | None, known: KnownPlugins, path: str) -> Expansion:
    """The plugins of each extension point, and what is wrong with the lists. `path`: of `plugins`."""
    found = Expansion()
    sets = _sets(plugins or PluginsFile())
    for point, entries in sets.items():
        _check_set(entries, point, known, f"{path}.{point}", found)
    everywhere = _merge(known.defaults, sets["multiPoint"], known)
    for point in EXTENSION_POINTS:
        found.points[point] = _at_point(point, everywhere, sets[point], known)
    _check_counts(found, path)
    return found


def _sets(plugins: PluginsFile) -> Mapping[str, PluginSetFile]:
    return {point: getattr(plugins, name) or _NO_SET for point, name in _FIELDS.items()}


def _merge(defaults: Sequence[PluginRef], own: PluginSetFile, known: KnownPlugins) -> list[PluginRef]:
    disabled = _disabled(own)
    listed = {ref.name: ref for ref in _refs(own, known)}
    merged: list[PluginRef] = []
    for default in defaults:
        is_dropped = ALL in disabled and default.name not in known.guards
        if is_dropped or default.name in disabled:
            continue
        merged.append(listed.pop(default.name, default))
    return [*merged, *listed.values()]


def _at_point(
    point: str, everywhere: Sequence[PluginRef], own: PluginSetFile, known: KnownPlugins
) -> tuple[PluginRef, ...]:
    disabled = _disabled(own)
    inherited = [ref for ref in everywhere if point in known.points(ref.name)]
    if ALL in disabled:
        inherited = [ref for ref in inherited if ref.name in known.guards]
    inherited = [ref for ref in inherited if ref.name not in disabled]
    listed = {ref.name: ref for ref in _refs(own, known) if point in known.points(ref.name)}
    names = {ref.name for ref in inherited}
    again = [ref for ref in listed.values() if ref.name in names]
    others = [ref for ref in inherited if ref.name not in listed]
    only_here = [ref for ref in listed.values() if ref.name not in names]
    return (*again, *others, *only_here)


def _refs(own: PluginSetFile, known: KnownPlugins) -> list[PluginRef]:
    return [PluginRef(e.name, e.weight or 0) for e in own.enabled or () if e.name in known.names]


def _disabled(own: PluginSetFile) -> frozenset[str]:
    return frozenset(entry.name for entry in own.disabled or ())


def _check_set(own: PluginSetFile, point: str, known: KnownPlugins, path: str, found: Expansion) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(own.enabled or ()):
        where = f"{path}.enabled[{index}]"
        if entry.name in seen:
            found.problems.append(Problem(f"{where}.name", entry.name, f"enabled twice at {point}"))
        else:
            found.problems += _entry_problems(entry, point, known, where)
            if entry.name in known.missing:
                found.warnings.append(f'{where}.name: plugin "{entry.name}" is not built yet and is left out')
        seen.add(entry.name)
    for index, entry in enumerate(own.disabled or ()):
        if entry.name not in known.names | known.missing | {ALL}:
            found.warnings.append(f'{path}.disabled[{index}].name: no plugin is named "{entry.name}"')


def _entry_problems(entry: PluginEntry, point: str, known: KnownPlugins, where: str) -> Iterator[Problem]:
    if entry.name in known.removed:
        yield Problem(f"{where}.name", entry.name, known.removed[entry.name])
    elif not entry.name:
        yield Problem(f"{where}.name", entry.name, "a plugin needs a name")
    elif entry.name not in known.names | known.missing:
        names = ", ".join(sorted(known.names))
        yield Problem(f"{where}.name", entry.name, f"unknown plugin; known ones are: {names}")
    elif not known.accepts(entry.name, point):
        yield Problem(f"{where}.name", entry.name, f"does not implement {point}")
    if (entry.weight or 0) < 0:
        yield Problem(f"{where}.weight", entry.weight, "must not be negative")


def _check_counts(found: Expansion, path: str) -> None:
    sorters = [ref.name for ref in found.points["queueSort"]]
    if len(sorters) != 1:
        reason = f"exactly one plugin must be enabled, found {len(sorters)}"
        found.problems.append(Problem(f"{path}.queueSort", ", ".join(sorters) or None, reason))
    if not found.points["bind"]:
        found.problems.append(Problem(f"{path}.bind", None, "at least one plugin must be enabled"))
    total = sum(100 * (ref.weight or 1) for ref in found.points["score"])
    if total > 2**63 - 1:
        found.problems.append(Problem(f"{path}.score", total, "the weights are too large together"))
