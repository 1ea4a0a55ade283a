"""What the demo shows at its end, computed from the objects that the API server returned. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotage.api.quantity import milli_value

ZONE_LABEL = "topology.kubernetes.io/zone"
POOL_LABEL = "pool"
NO_ZONE = "(no zone)"

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Pods of one owner that wait for the same reason."""

    pods: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Requested share of allocatable cpu, one number (0..1) per node of a pool."""

    pool: str
    cpu: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Times in seconds. `calls`: sent, merged, skipped and whatever else the call queue counted.

    `running`: bound pods whose (simulated) kubelet says so.
    """

    nodes: int
    bound: int
    running: int
    zones: Mapping[str, int]
    utilisation: tuple[Utilisation, ...]
    pending: tuple[Pending, ...]
    bind_p50: float
    bind_p99: float
    elapsed: float
    calls: Mapping[str, int] = field(default_factory=dict)


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile; 0.0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarise(
    pods: Sequence[Tree],
    nodes: Sequence[Tree],
    bind_seconds: Sequence[float],
    elapsed: float,
    calls: Mapping[str, int],
) -> Summary:
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    return Summary(
        nodes=len(nodes),
        bound=len(bound),
        running=sum(is_running(pod) for pod in bound),
        zones=pods_per_zone(bound, nodes),
        utilisation=cpu_utilisation(bound, nodes),
        pending=pending_pods(pod for pod in pods if not pod["spec"].get("nodeName")),
        bind_p50=percentile(bind_seconds, 0.50),
        bind_p99=percentile(bind_seconds, 0.99),
        elapsed=elapsed,
        calls=dict(calls),
    )


def is_running(pod: Tree) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _labels(node: Tree) -> Tree:
    labels: Tree = node["metadata"].get("labels") or {}
    return labels


def pods_per_zone(bound: Sequence[Tree], nodes: Sequence[Tree]) -> dict[str, int]:
    zone_of = {node["metadata"]["name"]: _labels(node).get(ZONE_LABEL, NO_ZONE) for node in nodes}
    counts = Counter(zone_of.get(pod["spec"]["nodeName"], NO_ZONE) for pod in bound)
    return {zone: counts[zone] for zone in sorted(set(zone_of.values()))}


def _pod_cpu(pod: Tree) -> int:
    """Requested milli-CPU of regular containers and sidecars (enough for a picture)."""
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    containers = [*spec["containers"], *sidecars]
    return sum(
        milli_value(((c.get("resources") or {}).get("requests") or {}).get("cpu", 0)) for c in containers
    )


def cpu_utilisation(bound: Sequence[Tree], nodes: Sequence[Tree]) -> tuple[Utilisation, ...]:
    used: Counter[str] = Counter()
    for pod in bound:
        used[pod["spec"]["nodeName"]] += _pod_cpu(pod)
    pools: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        cpu = milli_value((node["status"].get("allocatable") or {}).get("cpu", 0))
        share = used[node["metadata"]["name"]] / cpu if cpu else 0.0
        pools[_labels(node).get(POOL_LABEL, "nodes")].append(share)
    return tuple(Utilisation(pool, tuple(shares)) for pool, shares in pools.items())


def _owner(pod: Tree) -> str:
    """`namespace/workload`: the pod's name without the suffixes of its controllers."""
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or ()
    name = owners[0]["name"] if owners else meta["name"]
    revision = (meta.get("labels") or {}).get("pod-template-hash", "")
    return f"{meta['namespace']}/{name.removesuffix('-' + revision)}"


def _reason(pod: Tree) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or "no reason given")
    return "not tried yet"


def pending_pods(pods: Iterable[Tree]) -> tuple[Pending, ...]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in pods:
        meta = pod["metadata"]
        groups[_owner(pod), _reason(pod)].append(f"{meta['namespace']}/{meta['name']}")
    return tuple(Pending(tuple(sorted(names)), reason) for (_, reason), names in sorted(groups.items()))
