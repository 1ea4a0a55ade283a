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

from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_model import API_VERSION, KIND, ConfigurationFile
from pilotage.runtime.config_profiles import read_profiles
from pilotage.runtime.config_shape import read_shape
from pilotage.runtime.config_validate import (
    ClientConnection,
    LeaderElection,
    client_connection,
    envelope_problems,
    extender_problems,
    leader_election,
    percentage_problems,
    value_problems,
)
from pilotage.runtime.config_yaml import read_yaml
from pilotage.runtime.plugins_loading import build_registry

__all__ = ["ConfigError", "LoadedConfig", "Problem", "default_settings", "load_config", "load_settings"]

log = logging.getLogger("pilotage.config")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    settings: Settings
    client: ClientConnection
    leader_election: LeaderElection
    warnings: tuple[str, ...] = ()


def default_settings(registry: Registry | None = None) -> Settings:
    """One profile, default-scheduler, with the default plugins."""
    return load_config({"apiVersion": API_VERSION, "kind": KIND}, registry).settings


def load_settings(source: str | Path | Mapping[str, Any], registry: Registry | None = None) -> Settings:
    """Settings from a file (YAML or JSON) or a tree; warnings go to the log. Raises ConfigError."""
    loaded = load_config(source, registry)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded.settings


def load_config(source: str | Path | Mapping[str, Any], registry: Registry | None = None) -> LoadedConfig:
    """As `load_settings`, with what does not concern decisions. `registry`: the plugins there are."""
    name = "" if isinstance(source, Mapping) else str(source)
    try:
        tree = source if isinstance(source, Mapping) else read_yaml(Path(source))
        return _load(tree, registry if registry is not None else build_registry())
    except ConfigError as error:
        raise ConfigError(error.problems, name) from None


def _load(tree: Mapping[str, Any], registry: Registry) -> LoadedConfig:
    _check_envelope(tree)
    file = read_shape(dict(tree), ConfigurationFile)
    problems = [*value_problems(file), *extender_problems(file.extenders)]
    election = leader_election(file.leader_election, problems)
    client = client_connection(file.client_connection)
    profiles = read_profiles(file.profiles, registry)
    problems += profiles.problems
    for index, profile in enumerate(file.profiles or ()):
        field = f"profiles[{index}].percentageOfNodesToScore"
        problems += percentage_problems(field, profile.percentage_of_nodes_to_score)
    if problems:
        raise ConfigError(problems)
    initial, largest = file.pod_initial_backoff_seconds, file.pod_max_backoff_seconds
    settings = Settings(
        profiles=tuple(profiles.settings),
        pod_initial_backoff=float(1 if initial is None else initial),
        pod_max_backoff=float(10 if largest is None else largest),
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score or 0,
        qps=client.qps,
        burst=client.burst,
    )
    ignored = [
        f"extenders[{i}]: HTTP extenders are not supported yet; this one is ignorable and ignored"
        for i, _ in enumerate(file.extenders or ())
    ]
    return LoadedConfig(settings, client, election, (*ignored, *profiles.warnings))


def _check_envelope(tree: Mapping[str, Any]) -> None:
    """A file of another kind is told so, instead of a list of its fields."""
    version, kind = tree.get("apiVersion", ""), tree.get("kind", "")
    if not isinstance(version, str) or not isinstance(kind, str):
        return
    problems = tuple(envelope_problems(ConfigurationFile(api_version=version, kind=kind)))
    if problems:
        raise ConfigError(problems)
