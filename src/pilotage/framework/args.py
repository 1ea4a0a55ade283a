"""Plugin args: what pluginConfig says, as a struct with defaults; unknown fields are refused."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

A = TypeVar("A", bound="PluginArgs")

_ENVELOPE = ("apiVersion", "kind")


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of the args of all plugins."""


def read_args(kind: type[A], args: Any) -> A:
    """`args`: a mapping as in the configuration file, the struct itself, or None for the defaults.

    Raises ValueError (msgspec.ValidationError) naming field and problem.
    """
    if isinstance(args, kind):
        return args
    fields = {name: value for name, value in dict(args or {}).items() if name not in _ENVELOPE}
    return msgspec.convert(fields, kind)
