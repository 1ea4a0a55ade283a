"""The plugins there are: the default ones, and those of installed packages.

A package offers plugins by entry points of the group `pilotage.plugins`:

    [project.entry-points."pilotage.plugins"]
    MyPlugin = "my_package:MyPlugin"

The entry's name is the plugin's name in the configuration; its object is a plugin class, or a factory
`(args, handle) -> plugin`. Being installed enables nothing: the configuration does.

A plugin that is in no package is named by the file of `--pilotage-config`, as `module:Class`. Nothing but
what that file names is imported, and only from sys.path.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pilotage import plugins
from pilotage.framework.registry import POINT_METHODS, Registry, implements
from pilotage.runtime.config_errors import ConfigError, Problem

GROUP = "pilotage.plugins"


class PluginLoadError(Exception):
    """An installed plugin that cannot be used; the text names plugin, package and reason."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """A plugin class by its place. `field`: where the configuration names it."""

    name: str
    module: str
    attribute: str
    field: str

    @property
    def path(self) -> str:
        return f"{self.module}:{self.attribute}"


def build_registry(
    found: Iterable[EntryPoint] | None = None, sources: Iterable[PluginSource] = ()
) -> Registry:
    """Default plugins, installed ones (`found`: instead of those installed) and those of `sources`.

    Raises PluginLoadError for packages, ConfigError for all bad sources at once.
    """
    registry = plugins.default_registry()
    owners = dict.fromkeys(registry.names(), "pilotage")
    points = entry_points(group=GROUP) if found is None else found
    for point in sorted(points, key=lambda one: (one.name, _package(one))):
        if point.name in owners:
            raise PluginLoadError(
                f'plugin "{point.name}" of {_package(point)} has the name of a plugin of '
                f"{owners[point.name]}: rename one of them or uninstall one of the packages"
            )
        owners[point.name] = _package(point)
        registry.register(point.name, _load(point))
    problems: list[Problem] = []
    for source in sources:
        _register(source, registry, owners, problems)
    if problems:
        raise ConfigError(problems)
    return registry


def _register(
    source: PluginSource, registry: Registry, owners: dict[str, str], problems: list[Problem]
) -> None:
    owner = owners.get(source.name)
    if owner is not None:
        reason = f'"{source.name}" is the name of a plugin of {owner} already: give it another name'
        problems.append(Problem(source.field, source.path, reason))
        return
    try:
        registry.register(source.name, _class_at(source))
        owners[source.name] = source.path
    except _NoPluginError as error:
        problems.append(Problem(source.field, source.path, str(error)))


class _NoPluginError(Exception):
    """Why there is no plugin at a place."""


def _class_at(source: PluginSource) -> type:
    try:
        found: Any = importlib.import_module(source.module)
    except ModuleNotFoundError as error:
        if error.name and (source.module == error.name or source.module.startswith(f"{error.name}.")):
            raise _NoPluginError(f'there is no module "{error.name}" on sys.path') from None
        raise _NoPluginError(f"its module needs another one: {error}") from None
    except Exception as error:  # importing runs the module's own code
        raise _NoPluginError(f"its module cannot be imported: {type(error).__name__}: {error}") from error
    for name in source.attribute.split("."):
        if not hasattr(found, name):
            raise _NoPluginError(f'module "{source.module}" has no "{source.attribute}"')
        found = getattr(found, name)
    if not inspect.isclass(found):
        raise _NoPluginError(f"is no class but a {type(found).__name__}")
    if not any(implements(found, point) for point in POINT_METHODS):
        raise _NoPluginError("is no plugin: the class has no method of any extension point")
    return found


def _load(point: EntryPoint) -> type:
    try:
        factory = point.load()
    except Exception as error:  # importing runs the package's own code
        raise PluginLoadError(
            f'plugin "{point.name}" of {_package(point)} cannot be loaded from {point.value}: '
            f"{type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise PluginLoadError(
            f'plugin "{point.name}" of {_package(point)}: {point.value} is neither a class nor a factory'
        )
    loaded: type = factory
    return loaded


def _package(point: EntryPoint) -> str:
    return (
        f"package {point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
    )
