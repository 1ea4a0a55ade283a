"""The plugins there are: the default ones, and those of installed packages.

A package offers plugins by entry points of the group `pilotage.plugins`:

    [project.entry-points."pilotage.plugins"]
    MyPlugin = "my_package:MyPlugin"

The entry's name is the plugin's name in the configuration; its object is a plugin class, or a factory
`(args, handle) -> plugin`. Being installed enables nothing: the configuration does.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from pilotage import plugins
from pilotage.framework.registry import Registry

GROUP = "pilotage.plugins"


class PluginLoadError(Exception):
    """An installed plugin that cannot be used; the text names plugin, package and reason."""


def build_registry(found: Iterable[EntryPoint] | None = None) -> Registry:
    """Default plugins and installed ones (`found`: instead of those installed). Raises PluginLoadError."""
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
    return registry


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
