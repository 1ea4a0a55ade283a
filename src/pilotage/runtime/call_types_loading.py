"""The call types there are: the built-in ones, those of installed packages, and those that a file names.

A package offers call types by entry points of the group `pilotage.call_types`:

    [project.entry-points."pilotage.call_types"]
    quota_status = "my_package:QuotaStatus"

The entry's name is the call type's name; its object is a class without arguments, a factory, or an instance.
The file of `--pilotage-config` names others as `module:Class`, and it alone may put one in the place of
another (`replaces`). All are fixed before the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pilotage.calls.defaults import default_call_types
from pilotage.calls.registry import CallTypeError, CallTypes
from pilotage.calls.types import CallType
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.plugins_loading import PluginLoadError

GROUP = "pilotage.call_types"


class CallTypeLoadError(PluginLoadError):
    """An installed call type that cannot be used; the text names call type, package and reason."""


@dataclass(frozen=True, slots=True)
class CallTypeSource:
    """A call type by its place. `replaces`: whose place it takes. `field`: where the file names it."""

    module: str
    attribute: str
    replaces: str
    field: str

    @property
    def path(self) -> str:
        return f"{self.module}:{self.attribute}"


@dataclass(frozen=True, slots=True)
class AddedType:
    """An implementation to register, or to `replace` the one of its name with."""

    implementation: CallType[Any]
    replaces: bool = False


def added_types(
    found: Iterable[EntryPoint] | None = None, sources: Iterable[CallTypeSource] = ()
) -> tuple[AddedType, ...]:
    """Those of packages (`found`: instead of the installed ones) and of `sources`.

    Raises CallTypeLoadError for packages, ConfigError for all bad sources at once.
    """
    trial = default_call_types("")
    added: list[AddedType] = []
    for point in sorted(entry_points(group=GROUP) if found is None else found, key=lambda one: one.name):
        added.append(_from_package(point, trial))
    problems: list[Problem] = []
    for source in sources:
        try:
            added.append(_from_source(source, trial))
        except _NoCallTypeError as error:
            problems.append(Problem(error.field or source.field, error.value or source.path, str(error)))
    if problems:
        raise ConfigError(problems)
    return tuple(added)


def call_types(host: str, added: Iterable[AddedType] = ()) -> CallTypes:
    """All of one scheduler. Raises CallTypeError."""
    types = default_call_types(host)
    for one in added:
        if one.replaces:
            types.replace(one.implementation)
        else:
            types.register(one.implementation)
    return types


class _NoCallTypeError(Exception):
    """Why there is no call type at a place; `field` and `value` where that is not the path itself."""

    def __init__(self, text: str, field: str = "", value: str = "") -> None:
        super().__init__(text)
        self.field = field
        self.value = value


def _from_package(point: EntryPoint, trial: CallTypes) -> AddedType:
    who = f'call type "{point.name}" of {_package(point)}'
    try:
        implementation = _made(point.load())
    except Exception as error:  # importing and making run the package's own code
        reason = f"{type(error).__name__}: {error}"
        raise CallTypeLoadError(f"{who} cannot be loaded from {point.value}: {reason}") from error
    name = getattr(implementation, "name", None)
    if name != point.name:
        raise CallTypeLoadError(f"{who}: {point.value} calls itself {name!r}")
    try:
        trial.register(implementation)
    except CallTypeError as error:
        raise CallTypeLoadError(f"{who}: {error}") from None
    return AddedType(implementation)


def _from_source(source: CallTypeSource, trial: CallTypes) -> AddedType:
    implementation = _imported(source)
    name = getattr(implementation, "name", None)
    try:
        if not source.replaces:
            trial.register(implementation)
        elif name != source.replaces:
            text = f"{source.path} calls itself {name!r}: what replaces another bears its name"
            raise _NoCallTypeError(text, f"{source.field.rpartition('.')[0]}.replaces", source.replaces)
        else:
            trial.replace(implementation)
    except CallTypeError as error:
        raise _NoCallTypeError(str(error)) from None
    return AddedType(implementation, bool(source.replaces))


def _imported(source: CallTypeSource) -> Any:
    try:
        found: Any = importlib.import_module(source.module)
        for name in source.attribute.split("."):
            found = getattr(found, name)
        return _made(found)
    except Exception as error:  # importing and making run the module's own code
        raise _NoCallTypeError(f"cannot be loaded: {type(error).__name__}: {error}") from error


def _made(found: Any) -> Any:
    """Classes and factories are called, instances are taken as they are."""
    is_instance = not isinstance(found, type) and hasattr(found, "requests")
    return found if is_instance else found()


def _package(point: EntryPoint) -> str:
    return f"package {point.dist.name} {point.dist.version}" if point.dist is not None else "unknown package"
