"""A loaded configuration as a KubeSchedulerConfiguration again, with every default written out.

What is written is read back to the same settings: each extension point lists its plugins, and nothing is
left to multiPoint.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from pilotage.framework.settings import ExtenderSettings, ExtenderTls, ProfileSettings
from pilotage.runtime.config import LoadedConfig
from pilotage.runtime.config_model import API_VERSION, KIND
from pilotage.runtime.config_profiles import GUARDS
from pilotage.runtime.config_shape import without_nulls
from pilotage.runtime.durations import format_duration
from pilotage.runtime.plugin_args import KINDS

Tree = dict[str, Any]


def effective_yaml(loaded: LoadedConfig) -> str:
    return yaml.safe_dump(effective_tree(loaded), sort_keys=False)


def effective_tree(loaded: LoadedConfig) -> Tree:
    """The whole file as a tree."""
    settings, client = loaded.settings, loaded.client
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": loaded.parallelism,
        "percentageOfNodesToScore": settings.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": int(settings.pod_initial_backoff),
        "podMaxBackoffSeconds": int(settings.pod_max_backoff),
        "delayCacheUntilActive": loaded.delay_cache_until_active,
        "enableProfiling": loaded.enable_profiling,
        "enableContentionProfiling": loaded.enable_contention_profiling,
        "clientConnection": {
            "kubeconfig": client.kubeconfig,
            "acceptContentTypes": client.accept_content_types,
            "contentType": client.content_type,
            "qps": client.qps,
            "burst": client.burst,
        },
        "leaderElection": _election(loaded),
        "extenders": [_extender(one) for one in settings.extenders],
        "profiles": [_profile(one) for one in settings.profiles],
    }


def _election(loaded: LoadedConfig) -> Tree:
    election = loaded.leader_election
    return {
        "leaderElect": election.leader_elect,
        "leaseDuration": format_duration(election.lease_duration),
        "renewDeadline": format_duration(election.renew_deadline),
        "retryPeriod": format_duration(election.retry_period),
        "resourceLock": election.resource_lock,
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }


def _profile(profile: ProfileSettings) -> Tree:
    tree: Tree = {
        "schedulerName": profile.scheduler_name,
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}]}, **dict(_points(profile))},
        "pluginConfig": [_args(name, args) for name, args in sorted(profile.args.items())],
    }
    if profile.percentage_of_nodes_to_score is not None:
        tree["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    return tree


def _points(profile: ProfileSettings) -> Iterator[tuple[str, Tree]]:
    for point, refs in profile.points.items():
        enabled: list[Tree] = []
        for ref in refs:
            # Not a plugin of kube-scheduler, and there without being listed.
            if ref.name not in GUARDS:
                weight = {"weight": ref.weight or 1} if point == "score" else {}
                enabled.append({"name": ref.name, **weight})
        if enabled:
            yield point, {"enabled": enabled}


def _args(name: str, args: Any) -> Tree:
    fields = without_nulls(msgspec.to_builtins(args))
    head = {"apiVersion": API_VERSION, "kind": f"{name}Args"} if name in KINDS else {}
    return {"name": name, "args": {**head, **fields}}


def _extender(one: ExtenderSettings) -> Tree:
    tree: Tree = {
        "urlPrefix": one.url_prefix,
        "filterVerb": one.filter_verb,
        "preemptVerb": one.preempt_verb,
        "prioritizeVerb": one.prioritize_verb,
        "bindVerb": one.bind_verb,
        "weight": one.weight,
        "enableHTTPS": one.enable_https,
        "httpTimeout": format_duration(one.http_timeout),
        "nodeCacheCapable": one.node_cache_capable,
        "managedResources": [
            {"name": resource.name, "ignoredByScheduler": resource.ignored_by_scheduler}
            for resource in one.managed_resources
        ],
        "ignorable": one.ignorable,
    }
    return {**tree, "tlsConfig": _tls(one.tls)} if one.tls is not None else tree


def _tls(tls: ExtenderTls) -> Tree:
    fields: Mapping[str, str | bool] = {
        "insecure": tls.insecure,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
        "caFile": tls.ca_file,
        "certData": _base64(tls.cert_data),
        "keyData": _base64(tls.key_data),
        "caData": _base64(tls.ca_data),
    }
    return {name: value for name, value in fields.items() if value}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
