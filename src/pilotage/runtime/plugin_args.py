"""pluginConfig: args decoded, their defaults filled in, and checked by the rules of their plugin.

Args of plugins that are not built yet are read and checked all the same, by stand-ins of their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from pilotage.framework.args import PluginArgs
from pilotage.framework.gates import STORAGE_CAPACITY_SCORING
from pilotage.plugins import ARGS
from pilotage.plugins.resource_scoring import DEFAULT_RESOURCES, ResourceSpec
from pilotage.plugins.volumes.scoring import DEFAULT_SHAPE
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_model import API_VERSION
from pilotage.runtime.config_shape import read_shape
from pilotage.runtime.plugin_args_rules import broken_rules

_ENVELOPE = ("apiVersion", "kind")


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """Durations as Go writes them."""

    filter_timeout: str = "10s"
    binding_timeout: str = "600s"


KINDS: Mapping[str, type[Any]] = {
    "DynamicResources": DynamicResourcesArgs,
    **ARGS,
}
"""Plugins of kube-scheduler that have args, each with the struct of its fields."""


def read_plugin_args(
    name: str,
    kind: type[Any] | None,
    tree: Mapping[str, Any] | None,
    path: str,
    gates: Mapping[str, bool],
) -> Any:
    """A plugin's args: a struct with defaults where the plugin has one (`kind`), else the tree as it is.

    Raises ConfigError.
    """
    fields = {key: value for key, value in (tree or {}).items() if key not in _ENVELOPE}
    problems = list(_envelope_problems(name, tree or {}, path)) if name in KINDS else []
    if kind is None:
        return fields or None
    args = with_defaults(name, read_shape(fields, kind, path), gates)
    broken = broken_rules(name, args, fields, gates)
    problems += (Problem(f"{path}.{field}", value, reason) for field, value, reason in broken)
    if problems:
        raise ConfigError(problems)
    return args


def with_defaults(name: str, args: Any, gates: Mapping[str, bool]) -> Any:
    """What stands for values that are there but empty (0, "", [])."""
    fill = _FILL.get(name)
    return args if fill is None else fill(args, gates)


def _envelope_problems(name: str, tree: Mapping[str, Any], path: str) -> Iterator[Problem]:
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if version and version != API_VERSION:
        yield Problem(f"{path}.apiVersion", version, f"must be {API_VERSION}")
    if kind and kind != f"{name}Args":
        yield Problem(f"{path}.kind", kind, f"must be {name}Args")


def _weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """No resources are cpu and memory; weight 0 is 1."""
    return tuple(
        msgspec.structs.replace(one, weight=one.weight or 1) for one in resources or DEFAULT_RESOURCES
    )


def _fit(args: Any, _gates: Mapping[str, bool]) -> Any:
    strategy = args.scoring_strategy
    filled = msgspec.structs.replace(strategy, resources=_weights(strategy.resources))
    return msgspec.structs.replace(args, scoring_strategy=filled)


def _balanced(args: Any, _gates: Mapping[str, bool]) -> Any:
    return msgspec.structs.replace(args, resources=_weights(args.resources))


def _spread(args: Any, _gates: Mapping[str, bool]) -> Any:
    return msgspec.structs.replace(args, defaulting_type=args.defaulting_type or "System")


def _volumes(args: Any, gates: Mapping[str, bool]) -> Any:
    if args.shape is not None or not gates.get(STORAGE_CAPACITY_SCORING):
        return args
    return msgspec.structs.replace(args, shape=DEFAULT_SHAPE)


_FILL: Mapping[str, Callable[[Any, Mapping[str, bool]], Any]] = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "PodTopologySpread": _spread,
    "VolumeBinding": _volumes,
}
