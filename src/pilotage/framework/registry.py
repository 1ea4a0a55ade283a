"""Plugins by name: who builds them and which extension points they implement.

Laws: a name is registered once; asking for an unknown one is an error that says who asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pilotage.framework.plugin import Handle
from pilotage.framework.settings import EXTENSION_POINTS

PluginFactory: TypeAlias = Callable[[Any, Handle | None], object]
"""`factory(args, handle)`: `args` is what the configuration says (a dict, an args struct or None)."""

POINT_METHODS: Mapping[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter_nodes", "filter"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score_nodes", "score"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}
"""Extension point -> methods, any of which implements it."""

_ALL_POINTS = frozenset(EXTENSION_POINTS)


class RegistryError(ValueError):
    """A plugin name that is registered twice or not at all."""


class Registry:
    """Plugin name -> factory. A plugin class is a factory."""

    def __init__(self) -> None:
        self._factories: dict[str, PluginFactory] = {}
        self._points: dict[str, frozenset[str]] = {}

    def register(self, name: str, factory: PluginFactory, points: Iterable[str] | None = None) -> None:
        """`points`: what the plugin implements, where a factory that is no class cannot tell.

        Raises RegistryError when the name is taken.
        """
        if name in self._factories:
            raise RegistryError(f'plugin "{name}" is registered already')
        self._factories[name] = factory
        self._points[name] = _declared_points(factory) if points is None else frozenset(points)

    def build(self, name: str, args: Any = None, handle: Handle | None = None) -> object:
        """A new instance. Raises RegistryError for an unknown name, and whatever the factory raises."""
        return self._factory(name)(args, handle)

    def points(self, name: str) -> frozenset[str]:
        """Extension points that the plugin implements; all of them where a factory does not tell."""
        self._factory(name)
        return self._points[name]

    def args_type(self, name: str) -> type[Any] | None:
        """The struct of the plugin's args (class attribute `args_type`), None where it has none."""
        found: type[Any] | None = getattr(self._factory(name), "args_type", None)
        return found

    def names(self) -> tuple[str, ...]:
        """In order of registration."""
        return tuple(self._factories)

    def __contains__(self, name: object) -> bool:
        return name in self._factories

    def _factory(self, name: str) -> PluginFactory:
        try:
            return self._factories[name]
        except KeyError:
            raise RegistryError(f'plugin "{name}" is not registered') from None


def implements(plugin: object, point: str) -> bool:
    """Whether the plugin (an instance or a class) has a method for the extension point."""
    return any(callable(getattr(plugin, method, None)) for method in POINT_METHODS[point])


def _declared_points(factory: PluginFactory) -> frozenset[str]:
    if not inspect.isclass(factory):
        return _ALL_POINTS
    return frozenset(point for point in EXTENSION_POINTS if implements(factory, point))
