"""Frozen settings of one scheduler, read once at the edge (runtime/config.py) and passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXTENSION_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)


@dataclass(frozen=True, slots=True)
class PluginRef:
    name: str
    weight: int = 0  # 0 counts as 1 at score


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """`points`: extension point -> plugins in the order they run, multiPoint already expanded."""

    scheduler_name: str
    points: Mapping[str, tuple[PluginRef, ...]]
    args: Mapping[str, Any] = field(default_factory=dict)  # plugin name -> its args (a dict or args struct)
    percentage_of_nodes_to_score: int | None = None


@dataclass(frozen=True, slots=True)
class ExtenderTls:
    """Files are paths, data is the PEM text itself (already decoded); data goes before files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """`ignored_by_scheduler`: NodeResourcesFit leaves the resource to the extender."""

    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """One HTTP extender, checked. An empty verb: it is not asked for that. `http_timeout` in seconds."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0  # more than 0 with a prioritize verb
    enable_https: bool = False
    tls: ExtenderTls | None = None
    http_timeout: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()  # none: all pods are its business
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    profiles: tuple[ProfileSettings, ...]
    pod_initial_backoff: float = 1.0
    pod_max_backoff: float = 10.0
    pod_max_in_unschedulable: float = 300.0
    percentage_of_nodes_to_score: int = 0
    gates: Mapping[str, bool] = field(default_factory=dict)
    qps: float = 50.0
    burst: int = 100
    extenders: tuple[ExtenderSettings, ...] = ()
