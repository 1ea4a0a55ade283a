"""KubeSchedulerConfiguration files into frozen `Settings`, read once at the edge.

Laws:
- A file is refused as a whole, with every problem in it by field, value and reason; nothing is guessed.
- What kube-scheduler knows and this scheduler does not do yet is named in a warning, never silent.
- Defaults are filled in here and nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotage.framework.gates import DEFAULT_GATES
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ExtenderSettings, Settings
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_extenders import read_extenders
from pilotage.runtime.config_model import API_VERSION, KIND, ConfigurationFile
from pilotage.runtime.config_profiles import Profiles, read_profiles
from pilotage.runtime.config_shape import read_shape, without_nulls
from pilotage.runtime.config_validate import (
    ClientConnection,
    LeaderElection,
    client_connection,
    envelope_problems,
    leader_election,
    value_problems,
)
from pilotage.runtime.config_yaml import read_yaml
from pilotage.runtime.plugins_loading import build_registry

__all__ = [
    "ConfigError",
    "LoadedConfig",
    "Problem",
    "default_config",
    "default_settings",
    "load_config",
    "load_settings",
]

log = logging.getLogger("pilotage.config")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    settings: Settings
    client: ClientConnection
    leader_election: LeaderElection
    warnings: tuple[str, ...] = ()
    parallelism: int = 16
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False  # informers start only as leader


def default_settings(registry: Registry | None = None, gates: Mapping[str, bool] | None = None) -> Settings:
    """One profile, default-scheduler, with the default plugins."""
    return default_config(registry, gates).settings


def default_config(registry: Registry | None = None, gates: Mapping[str, bool] | None = None) -> LoadedConfig:
    return load_config({"apiVersion": API_VERSION, "kind": KIND}, registry, gates)


def load_settings(
    source: str | Path | Mapping[str, Any],
    registry: Registry | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Settings:
    """Settings from a file (YAML or JSON) or a tree; warnings go to the log. Raises ConfigError."""
    loaded = load_config(source, registry, gates)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded.settings


def load_config(
    source: str | Path | Mapping[str, Any],
    registry: Registry | None = None,
    gates: Mapping[str, bool] | None = None,
) -> LoadedConfig:
    """As `load_settings`, with what does not concern decisions.

    `registry`: the plugins there are. `gates`: feature gates that differ from their defaults.
    """
    name = "" if isinstance(source, Mapping) else str(source)
    try:
        tree = source if isinstance(source, Mapping) else read_yaml(Path(source))
        plugins = registry if registry is not None else build_registry()
        return _load(tree, plugins, {**DEFAULT_GATES, **(gates or {})})
    except ConfigError as error:
        raise ConfigError(error.problems, name) from None


def _load(tree: Mapping[str, Any], registry: Registry, gates: Mapping[str, bool]) -> LoadedConfig:
    tree = without_nulls(tree)
    _check_envelope(tree)
    file = read_shape(tree, ConfigurationFile)
    problems = list(value_problems(file))
    warnings: list[str] = []
    election = leader_election(file.leader_election, problems)
    extenders = read_extenders(file.extenders, problems, warnings)
    ignored = [one.name for each in extenders for one in each.managed_resources if one.ignored_by_scheduler]
    profiles = read_profiles(file.profiles, registry, gates, ignored)
    problems += profiles.problems
    if problems:
        raise ConfigError(problems)
    client = client_connection(file.client_connection)
    return LoadedConfig(
        settings=_settings(file, client, profiles, extenders, gates),
        client=client,
        leader_election=election,
        warnings=(*warnings, *profiles.warnings),
        parallelism=16 if file.parallelism is None else file.parallelism,
        enable_profiling=file.enable_profiling is not False,
        enable_contention_profiling=file.enable_contention_profiling is not False,
        delay_cache_until_active=bool(file.delay_cache_until_active),
    )


def _settings(
    file: ConfigurationFile,
    client: ClientConnection,
    profiles: Profiles,
    extenders: tuple[ExtenderSettings, ...],
    gates: Mapping[str, bool],
) -> Settings:
    initial, largest = file.pod_initial_backoff_seconds, file.pod_max_backoff_seconds
    return Settings(
        profiles=tuple(profiles.settings),
        pod_initial_backoff=float(1 if initial is None else initial),
        pod_max_backoff=float(10 if largest is None else largest),
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score or 0,
        gates=gates,
        qps=client.qps,
        burst=client.burst,
        extenders=extenders,
    )


def _check_envelope(tree: Mapping[str, Any]) -> None:
    """A file of another kind is told so, instead of a list of its fields."""
    version, kind = tree.get("apiVersion", ""), tree.get("kind", "")
    if not isinstance(version, str) or not isinstance(kind, str):
        return
    problems = tuple(envelope_problems(ConfigurationFile(api_version=version, kind=kind)))
    if problems:
        raise ConfigError(problems)
