"""kube-scheduler's command line flags and both configuration files, as one effective configuration.

Laws: flags of the leader election win over the file; the other flags that a file can say are deprecated:
they count only without a file, and are never ignored silently; flags without meaning here are accepted and
told. All that is wrong comes as ConfigError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pilotage.framework.registry import Registry
from pilotage.runtime.call_types_loading import AddedType, added_types
from pilotage.runtime.config import LoadedConfig, load_config
from pilotage.runtime.config_errors import ConfigError, Problem
from pilotage.runtime.config_model import API_VERSION, KIND
from pilotage.runtime.config_yaml import read_yaml
from pilotage.runtime.durations import parse_duration
from pilotage.runtime.feature_gates import parse_feature_gates
from pilotage.runtime.pilotage_config import PilotageConfig, load_pilotage_config
from pilotage.runtime.plugins_loading import build_registry

UNSCHEDULABLE_FLAG = "--pod-max-in-unschedulable-pods-duration"

# Flag -> field of the file.
ELECTION_FLAGS: Mapping[str, str] = {
    "--leader-elect": "leaderElect",
    "--leader-elect-lease-duration": "leaseDuration",
    "--leader-elect-renew-deadline": "renewDeadline",
    "--leader-elect-retry-period": "retryPeriod",
    "--leader-elect-resource-lock": "resourceLock",
    "--leader-elect-resource-name": "resourceName",
    "--leader-elect-resource-namespace": "resourceNamespace",
}
DEPRECATED_FLAGS: Mapping[str, str] = {
    "--kube-api-qps": "clientConnection.qps",
    "--kube-api-burst": "clientConnection.burst",
    "--kube-api-content-type": "clientConnection.contentType",
    "--profiling": "enableProfiling",
    "--contention-profiling": "enableContentionProfiling",
}
IDLE_FLAGS: Mapping[str, str] = {
    "--authentication-kubeconfig": "health and metrics ask nobody for a login",
    "--authorization-kubeconfig": "health and metrics ask nobody for a permission",
    "--vmodule": "there are no log levels per module",
}


@dataclass(frozen=True, slots=True)
class Flags:
    """`given`: flags that stand on the command line, by name, with their values."""

    config: str | None = None
    pilotage_config: str | None = None
    kubeconfig: str | None = None
    feature_gates: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)


SECURE_PORT = 10259


def secure_address(given: Mapping[str, Any]) -> tuple[str, int | None]:
    """Where HTTPS is wanted: only where one of its flags is given, and not at port 0."""
    if "--secure-port" not in given and "--bind-address" not in given:
        return "", None
    return given.get("--bind-address", "0.0.0.0"), given.get("--secure-port", SECURE_PORT) or None


@dataclass(frozen=True, slots=True)
class Effective:
    loaded: LoadedConfig
    pilotage: PilotageConfig
    registry: Registry
    kubeconfig: str
    warnings: tuple[str, ...] = ()


def resolve(flags: Flags) -> Effective:
    """Raises ConfigError, PluginLoadError."""
    gates = parse_feature_gates(flags.feature_gates)
    pilotage = load_pilotage_config(flags.pilotage_config) if flags.pilotage_config else PilotageConfig()
    registry = _registry(pilotage, flags.pilotage_config or "")
    types = _added_types(pilotage, flags.pilotage_config or "")
    pilotage = replace(pilotage, calls=replace(pilotage.calls, types=types))
    loaded = _load(flags, registry, gates.values)
    duration = _unschedulable(flags.given.get(UNSCHEDULABLE_FLAG))
    if duration:
        loaded = replace(loaded, settings=replace(loaded.settings, pod_max_in_unschedulable=duration))
    kubeconfig = loaded.client.kubeconfig or flags.kubeconfig or ""
    told = (f"{flags.config}: {warning}" for warning in loaded.warnings)
    return Effective(
        loaded, pilotage, registry, kubeconfig, (*gates.warnings, *_warnings(flags, loaded), *told)
    )


def _registry(pilotage: PilotageConfig, source: str) -> Registry:
    try:
        return build_registry(sources=pilotage.plugins)
    except ConfigError as error:
        raise ConfigError(error.problems, source) from None


def _added_types(pilotage: PilotageConfig, source: str) -> tuple[AddedType, ...]:
    try:
        return added_types(sources=pilotage.call_types)
    except ConfigError as error:
        raise ConfigError(error.problems, source) from None


def _load(flags: Flags, registry: Registry, gates: Mapping[str, bool]) -> LoadedConfig:
    name = flags.config or "command line"
    try:
        tree = read_yaml(Path(flags.config)) if flags.config else {"apiVersion": API_VERSION, "kind": KIND}
        return load_config(_with_flags(tree, flags), registry, gates)
    except ConfigError as error:
        raise ConfigError(error.problems, name) from None


def _with_flags(tree: Mapping[str, Any], flags: Flags) -> Mapping[str, Any]:
    """The file's tree with what the command line says instead."""
    merged = dict(tree)
    fields = {f"leaderElection.{name}": flag for flag, name in ELECTION_FLAGS.items()}
    if not flags.config:
        fields |= {name: flag for flag, name in DEPRECATED_FLAGS.items()}
    for path, flag in fields.items():
        if flag not in flags.given:
            continue
        part, dot, name = path.rpartition(".")
        within = merged.get(part) or {} if dot else merged
        if not isinstance(within, Mapping):
            continue  # the shape of the file is wrong, and is told so
        if dot:
            merged[part] = {**within, name: flags.given[flag]}
        else:
            merged[name] = flags.given[flag]
    return merged


def _unschedulable(text: str | None) -> float:
    """Seconds; 0 leaves the default."""
    if text is None:
        return 0.0
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError([Problem(UNSCHEDULABLE_FLAG, text, str(error))], "command line") from None
    if seconds < 0:
        raise ConfigError([Problem(UNSCHEDULABLE_FLAG, text, "must not be negative")], "command line")
    return seconds


def _warnings(flags: Flags, loaded: LoadedConfig) -> Iterator[str]:
    for flag, path in DEPRECATED_FLAGS.items():
        if flag in flags.given:
            fate = f"ignored, {flags.config} counts" if flags.config else f"use {path} of --config"
            yield f"{flag} is deprecated: {fate}"
    if flags.kubeconfig and loaded.client.kubeconfig and flags.kubeconfig != loaded.client.kubeconfig:
        yield f"--kubeconfig is ignored: {flags.config} names {loaded.client.kubeconfig}"
    for flag, why in IDLE_FLAGS.items():
        if flag in flags.given:
            yield f"{flag} has no effect: {why}"
