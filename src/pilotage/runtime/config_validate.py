"""Rules of a KubeSchedulerConfiguration beyond its shape, profiles excepted; and its plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilotage.runtime.config_errors import Problem
from pilotage.runtime.config_model import (
    API_VERSION,
    KIND,
    ClientConnectionFile,
    ConfigurationFile,
    LeaderElectionFile,
)
from pilotage.runtime.durations import parse_duration

RENEW_FACTOR = 1.2  # the renew deadline must leave room for this many retry periods


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Times in seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """`kubeconfig`: empty for in-cluster credentials."""

    kubeconfig: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    accept_content_types: str = ""
    qps: float = 50.0
    burst: int = 100


def envelope_problems(file: ConfigurationFile) -> Iterator[Problem]:
    """apiVersion and kind."""
    if file.api_version != API_VERSION:
        yield Problem("apiVersion", file.api_version, f"must be {API_VERSION}")
    if file.kind != KIND:
        yield Problem("kind", file.kind, f"must be {KIND}")


def value_problems(file: ConfigurationFile) -> Iterator[Problem]:
    if file.parallelism is not None and file.parallelism <= 0:
        yield Problem("parallelism", file.parallelism, "must be more than 0")
    yield from percentage_problems("percentageOfNodesToScore", file.percentage_of_nodes_to_score)
    initial = _default(file.pod_initial_backoff_seconds, 1)
    largest = _default(file.pod_max_backoff_seconds, 10)
    if initial <= 0:
        yield Problem("podInitialBackoffSeconds", initial, "must be more than 0")
    if largest < initial:
        reason = f"must not be less than podInitialBackoffSeconds ({initial})"
        yield Problem("podMaxBackoffSeconds", largest, reason)
    burst = file.client_connection.burst if file.client_connection else None
    if burst is not None and burst < 0:
        yield Problem("clientConnection.burst", burst, "must not be negative")


def percentage_problems(field: str, value: int | None) -> Iterator[Problem]:
    if value is not None and not 0 <= value <= 100:
        yield Problem(field, value, "must be from 0 to 100")


def client_connection(file: ClientConnectionFile | None) -> ClientConnection:
    """0 and absent mean the default; a negative rate means no limit."""
    file = file or ClientConnectionFile()
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=file.kubeconfig or "",
        content_type=file.content_type or default.content_type,
        accept_content_types=file.accept_content_types or "",
        qps=file.qps or default.qps,
        burst=file.burst or default.burst,
    )


def leader_election(file: LeaderElectionFile | None, problems: list[Problem]) -> LeaderElection:
    """The settings of the election; what is wrong with them is added to `problems`."""
    file = file or LeaderElectionFile()
    default = LeaderElection()
    found = LeaderElection(
        leader_elect=file.leader_elect is not False,
        lease_duration=_seconds("leaseDuration", file.lease_duration, default.lease_duration, problems),
        renew_deadline=_seconds("renewDeadline", file.renew_deadline, default.renew_deadline, problems),
        retry_period=_seconds("retryPeriod", file.retry_period, default.retry_period, problems),
        resource_lock=file.resource_lock or default.resource_lock,
        resource_name=file.resource_name or default.resource_name,
        resource_namespace=file.resource_namespace or default.resource_namespace,
    )
    if found.leader_elect:
        problems.extend(_election_problems(found))
    return found


def _seconds(name: str, text: str | None, default: float, problems: list[Problem]) -> float:
    if text is None:
        return default
    try:
        return parse_duration(text) or default
    except ValueError as error:
        problems.append(Problem(f"leaderElection.{name}", text, str(error)))
        return default


def _election_problems(found: LeaderElection) -> Iterator[Problem]:
    where = "leaderElection"
    times = {
        "leaseDuration": found.lease_duration,
        "renewDeadline": found.renew_deadline,
        "retryPeriod": found.retry_period,
    }
    for name, value in times.items():
        if value <= 0:
            yield Problem(f"{where}.{name}", value, "must be more than 0")
    if found.lease_duration <= found.renew_deadline:
        yield Problem(f"{where}.leaseDuration", found.lease_duration, "must be longer than renewDeadline")
    if found.renew_deadline <= found.retry_period * RENEW_FACTOR:
        reason = f"must be longer than retryPeriod x {RENEW_FACTOR}"
        yield Problem(f"{where}.renewDeadline", found.renew_deadline, reason)
    if found.resource_lock != "leases":
        yield Problem(f"{where}.resourceLock", found.resource_lock, "must be leases")


def _default(value: int | None, default: int) -> int:
    return default if value is None else value
