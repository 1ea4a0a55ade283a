"""kube-scheduler's flags as options of `pilotage run`, under their own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import rich_click as click

F = TypeVar("F", bound=Callable[..., Any])

# Go's spelling of booleans: --flag, --flag=true, --flag=false.
_SWITCH: Mapping[str, Any] = {
    "type": click.BOOL,
    "is_flag": False,
    "flag_value": "true",
    "metavar": "[=true|false]",
}

_OPTIONS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("--master", {"metavar": "URL"}, "Address of the API server, instead of the kubeconfig's."),
    (
        "--leader-elect",
        _SWITCH,
        "Decide only while holding the lease.  [default: true, or what --config says]",
    ),
    ("--leader-elect-lease-duration", {"metavar": "DURATION"}, "How long a lease lasts.  [default: 15s]"),
    (
        "--leader-elect-renew-deadline",
        {"metavar": "DURATION"},
        "A leader that could not renew for so long ends.  [default: 10s]",
    ),
    ("--leader-elect-retry-period", {"metavar": "DURATION"}, "Between two tries.  [default: 2s]"),
    ("--leader-elect-resource-lock", {"metavar": "KIND"}, "Only leases."),
    ("--leader-elect-resource-name", {"metavar": "NAME"}, "Of the lease.  [default: kube-scheduler]"),
    ("--leader-elect-resource-namespace", {"metavar": "NAME"}, "Of the lease.  [default: kube-system]"),
    (
        "--pod-max-in-unschedulable-pods-duration",
        {"metavar": "DURATION"},
        "After so long an unschedulable pod is tried again anyway.  [default: 5m]",
    ),
    ("--kube-api-qps", {"type": float, "metavar": "N"}, "Deprecated: clientConnection.qps."),
    ("--kube-api-burst", {"type": int, "metavar": "N"}, "Deprecated: clientConnection.burst."),
    ("--kube-api-content-type", {"metavar": "TYPE"}, "Deprecated: clientConnection.contentType."),
    ("--profiling", _SWITCH, "Deprecated: enableProfiling; no meaning here."),
    ("--contention-profiling", _SWITCH, "Deprecated: enableContentionProfiling; no meaning here."),
    ("--authentication-kubeconfig", {"metavar": "FILE"}, "Accepted; no meaning here."),
    ("--authorization-kubeconfig", {"metavar": "FILE"}, "Accepted; no meaning here."),
    (
        "--bind-address",
        {"metavar": "ADDRESS"},
        "Serve /healthz /livez /readyz over HTTPS there, for probes.  [default: 0.0.0.0]",
    ),
    (
        "--secure-port",
        {"type": click.IntRange(0, 65535), "metavar": "PORT"},
        "The port of that; 0: no HTTPS.  [default: 10259 with --bind-address, else none]",
    ),
    ("--vmodule", {"metavar": "LEVELS"}, "Accepted; no meaning here."),
)


def scheduler_flags(command: F) -> F:
    """Adds the options; their values arrive as keyword arguments, None where one is not given."""
    for name, settings, text in reversed(_OPTIONS):
        command = click.option(name, default=None, help=text, **settings)(command)
    return command


def given_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the keyword arguments, what stands on the command line, by flag."""
    names = {name: name.removeprefix("--").replace("-", "_") for name, _, _ in _OPTIONS}
    return {flag: values[name] for flag, name in names.items() if values.get(name) is not None}
