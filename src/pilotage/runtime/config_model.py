"""KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) as it is written: shape only.

None means "not given"; defaults and rules are applied elsewhere. Unknown fields are refused.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of the parts of the file."""


class LeaderElectionFile(Strict, frozen=True):
    leader_elect: bool | None = None
    lease_duration: str | None = None
    renew_deadline: str | None = None
    retry_period: str | None = None
    resource_lock: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None


class ClientConnectionFile(Strict, frozen=True):
    kubeconfig: str | None = None
    accept_content_types: str | None = None
    content_type: str | None = None
    qps: float | None = None
    burst: Int32 | None = None


class PluginEntry(Strict, frozen=True):
    name: str = ""
    weight: Int32 | None = None


class PluginSetFile(Strict, frozen=True):
    enabled: list[PluginEntry] | None = None
    disabled: list[PluginEntry] | None = None


class PluginsFile(Strict, frozen=True):
    pre_enqueue: PluginSetFile | None = None
    queue_sort: PluginSetFile | None = None
    pre_filter: PluginSetFile | None = None
    filter: PluginSetFile | None = None
    post_filter: PluginSetFile | None = None
    pre_score: PluginSetFile | None = None
    score: PluginSetFile | None = None
    reserve: PluginSetFile | None = None
    permit: PluginSetFile | None = None
    pre_bind: PluginSetFile | None = None
    bind: PluginSetFile | None = None
    post_bind: PluginSetFile | None = None
    placement_generate: PluginSetFile | None = None
    placement_score: PluginSetFile | None = None
    multi_point: PluginSetFile | None = None


class PluginConfigEntry(Strict, frozen=True):
    name: str = ""
    args: dict[str, Any] | None = None


class ProfileFile(Strict, frozen=True):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: PluginsFile | None = None
    plugin_config: list[PluginConfigEntry] | None = None


class ManagedResource(Strict, frozen=True):
    name: str = ""
    ignored_by_scheduler: bool | None = None


class ExtenderTLS(Strict, frozen=True):
    insecure: bool | None = None
    server_name: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None
    cert_data: str | None = None
    key_data: str | None = None
    ca_data: str | None = None


class ExtenderFile(Strict, frozen=True):
    url_prefix: str = msgspec.field(default="", name="urlPrefix")
    filter_verb: str | None = None
    preempt_verb: str | None = None
    prioritize_verb: str | None = None
    weight: Int64 | None = None
    bind_verb: str | None = None
    enable_https: bool | None = msgspec.field(default=None, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: str | None = msgspec.field(default=None, name="httpTimeout")
    node_cache_capable: bool | None = None
    managed_resources: list[ManagedResource] | None = None
    ignorable: bool | None = None


class ConfigurationFile(Strict, frozen=True):
    api_version: str = ""
    kind: str = ""
    parallelism: Int32 | None = None
    leader_election: LeaderElectionFile | None = None
    client_connection: ClientConnectionFile | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: list[ProfileFile] | None = None
    extenders: list[ExtenderFile] | None = None
    delay_cache_until_active: bool | None = None
