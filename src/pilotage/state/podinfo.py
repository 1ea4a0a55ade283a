"""A pod compiled once for all decisions: key, priority, requests, and lazily the rest.

Laws: never raises on a pod that decoded (a nonsense quantity becomes `defect`); what it says depends on
the pod view alone, so that two replicas of one template share a `signature`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from datetime import datetime
from typing import NamedTuple

import msgspec

from pilotage.api.pods import Container, NodeSelectorTerm, Pod, Toleration, Volume
from pilotage.api.quantity import QuantityError
from pilotage.api.requests import (
    PodAmounts,
    is_resize_deferred,
    is_resize_infeasible,
    measure,
    pod_held,
    pod_requests,
)
from pilotage.api.selectors import (
    NodeMatcher,
    NodeTermMatcher,
    Requirement,
    SelectorError,
    compile_node_term,
    match_labels,
)
from pilotage.state.lazy import lazy, lazy_unless_empty
from pilotage.state.view import HostPort

_NO_LABELS: Mapping[str, str] = {}
_PACKER = msgspec.msgpack.Encoder()
_ENCODER = msgspec.json.Encoder(order="deterministic")


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim of the pod's namespace. `is_generated`: made for the pod's ephemeral volume."""

    name: str
    is_generated: bool = False


class PodInfo:
    """A pod view plus what decisions read of it. Compare pods by `uid`, never by identity.

    Nobody changes its dicts: pods of one template share them.
    """

    # Slots for what every pod has; a `__dict__` comes with the first value computed at need.
    __slots__ = (
        "__dict__",
        "defect",
        "key",
        "labels",
        "name",
        "namespace",
        "nonzero",
        "nonzero_usage",
        "pod",
        "priority",
        "requests",
        "terms",
        "uid",
        "usage",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid or pod.key  # manifests that no server has seen have none
        self.key = pod.key
        self.name = pod.metadata.name
        self.namespace = pod.metadata.namespace
        self.labels: Mapping[str, str] = pod.metadata.labels or _NO_LABELS
        self.priority = pod.spec.priority or 0
        # Why the pod cannot be scheduled whatever the nodes: a request that is not a quantity.
        self.defect = ""
        # Incoming pod's requests by resource: milli-CPU, bytes, units (spec only); no zeros.
        self.requests: dict[str, int] = {}
        # What it occupies once on a node: max over spec, allocated, actual (1.37 rule).
        self.usage: dict[str, int] = {}
        # (milli-CPU, bytes) of the incoming pod with kube-scheduler's scoring defaults.
        self.nonzero: tuple[int, int] = (0, 0)
        # (milli-CPU, bytes) of the pod on a node with the scoring defaults.
        self.nonzero_usage: tuple[int, int] = (0, 0)
        # Affinity and spread terms, compiled and owned by `state.terms`.
        self.terms: object | None = None
        self._compile_amounts(pod)

    def _compile_amounts(self, pod: Pod) -> None:
        try:
            amounts = _measured(pod)
        except QuantityError as exc:
            self.defect = str(exc)
        else:
            self.requests, self.usage, self.nonzero, self.nonzero_usage = amounts

    def __repr__(self) -> str:
        return f"PodInfo({self.key}, uid={self.uid})"

    @property
    def node_name(self) -> str:
        """`spec.nodeName`: empty for a pending pod, also while it is assumed."""
        return self.pod.spec.node_name

    @property
    def is_bound(self) -> bool:
        return bool(self.pod.spec.node_name)

    def bound_to(self, node_name: str) -> PodInfo:
        """The same pod as it looks once bound: what is counted while it is assumed."""
        bound = copy(self)
        spec = msgspec.structs.replace(self.pod.spec, node_name=node_name)
        bound.pod = msgspec.structs.replace(self.pod, spec=spec)
        vars(bound).pop("signature", None)
        return bound

    @lazy
    def held(self) -> dict[str, int]:
        """The larger of allocated and actual: what the kubelet counts for it beside a pod that is resized."""
        return self.usage if self.defect else pod_held(self.pod)

    def as_held(self) -> PodInfo:
        """The same pod, counted with what it has and not with what it wishes."""
        if self.held == self.usage:
            return self
        kept = copy(self)
        kept.usage = self.held
        return kept

    def asking_for(self, requests: dict[str, int]) -> PodInfo:
        """The same pod with other requests: a bound one that is judged as if it had to be placed again."""
        asking = copy(self)
        asking.requests = requests
        return asking

    @property
    def is_resize_deferred(self) -> bool:
        """Bound, alive, and the kubelet has no room for what its spec asks."""
        is_alive = self.is_bound and not self.is_terminal and not self.is_terminating
        return is_alive and is_resize_deferred(self.pod)

    @property
    def is_resizing(self) -> bool:
        """A resize is deferred or under way."""
        progress = self.pod.condition("PodResizeInProgress")
        return self.is_resize_deferred or (progress is not None and progress.status == "True")

    @property
    def is_terminal(self) -> bool:
        return self.pod.is_terminal

    @property
    def is_terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    @lazy
    def start_time(self) -> float | None:
        """`status.startTime`, seconds since the epoch; None while no kubelet has started the pod."""
        return _epoch_seconds(self.pod.status.start_time)

    @lazy
    def container_requests(self) -> dict[str, int]:
        """`requests` as if the pod had no pod-level resources: what NodeResourcesFit scores."""
        return self.requests if self.pod.spec.resources is None else pod_requests(self.pod, pod_level=False)

    @lazy
    def tolerations(self) -> tuple[Toleration, ...]:
        return tuple(self.pod.spec.tolerations or ())

    @lazy
    def node_selector(self) -> tuple[Requirement, ...]:
        """`spec.nodeSelector` as requirements, all of which a node must meet."""
        selector = self.pod.spec.node_selector
        return match_labels(selector).requirements if selector else ()

    @lazy
    def node_affinity(self) -> NodeMatcher | None:
        """Required node affinity; None when there is none. A term that makes no sense matches nothing."""
        affinity = self.pod.spec.affinity
        required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
        return None if required is None else NodeMatcher(tuple(map(_term, required.node_selector_terms)))

    @lazy_unless_empty
    def host_ports(self) -> tuple[HostPort, ...]:
        """Host ports of containers and of sidecars (init containers with restartPolicy Always)."""
        return tuple(dict.fromkeys(_host_ports(self.pod)))

    @lazy_unless_empty
    def claims(self) -> tuple[ClaimUse, ...]:
        """The claims of its volumes in their order; an ephemeral volume's is named after pod and volume."""
        return tuple(_claims(self.pod))

    @property
    def attachable_volumes(self) -> int:
        """How many of its volumes a driver may have to attach: claims, and disks that it mounts itself."""
        disks = sum(_is_disk(volume) for volume in self.pod.spec.volumes or ())
        return len(self.claims) + disks

    @lazy
    def images(self) -> tuple[str, ...]:
        """Image names as nodes report them (a tag always), one entry per use."""
        spec = self.pod.spec
        names = [c.image for c in (*(spec.init_containers or ()), *spec.containers)]
        names += [v.image.reference for v in spec.volumes or () if v.image is not None]
        return tuple(normalised_image_name(name) for name in names)

    @lazy
    def signature(self) -> bytes:
        """Equal for two pods when no plugin that reads namespace, labels and spec can tell them apart.

        Volumes without a source that scheduling reads are left out: their generated names differ by replica.
        """
        spec = self.pod.spec
        volumes = [v for v in spec.volumes or () if _is_scheduling_volume(v)]
        return _ENCODER.encode((self.namespace, self.labels, msgspec.structs.replace(spec, volumes=volumes)))


_AMOUNTS: dict[bytes, PodAmounts] = {}
_MAX_AMOUNTS = 1 << 13


def _measured(pod: Pod) -> PodAmounts:
    """The sums of a pod, computed once for all pods with the same containers and status amounts."""
    spec, status = pod.spec, pod.status
    key = _PACKER.encode(
        (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            status.container_statuses,
            status.init_container_statuses,
            status.resources,
            status.allocated_resources,
            is_resize_infeasible(pod),
        )
    )
    known = _AMOUNTS.get(key)
    if known is None:
        known = measure(pod)
        if len(_AMOUNTS) >= _MAX_AMOUNTS:
            _AMOUNTS.clear()
        _AMOUNTS[key] = known
    return known


def _term(term: NodeSelectorTerm) -> NodeTermMatcher:
    try:
        return compile_node_term(term)
    except SelectorError:
        return NodeTermMatcher()


def _epoch_seconds(text: str | None) -> float | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def _is_scheduling_volume(volume: object) -> bool:
    fields = msgspec.structs.asdict(volume)  # type: ignore[arg-type]  # any Struct is fine
    return any(value is not None for name, value in fields.items() if name != "name")


def _is_disk(volume: Volume) -> bool:
    sources = (
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.azure_disk,
        volume.cinder,
        volume.vsphere_volume,
    )
    return any(source is not None for source in sources)


def _claims(pod: Pod) -> Iterator[ClaimUse]:
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield ClaimUse(f"{pod.metadata.name}-{volume.name}", True)


def _host_ports(pod: Pod) -> Iterator[HostPort]:
    sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    for container in (*sidecars, *pod.spec.containers):
        yield from _container_host_ports(container, pod.spec.host_network)


def _container_host_ports(container: Container, host_network: bool) -> Iterator[HostPort]:
    """On the host's network every container port is a host port, whether defaulting wrote so or not."""
    for port in container.ports or ():
        number = port.host_port or (port.container_port if host_network else 0)
        if number > 0:
            yield HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", number)


def normalised_image_name(name: str) -> str:
    """The name with `:latest` where it has neither tag nor digest."""
    if name.rfind(":") <= name.rfind("/"):
        return f"{name}:latest"
    return name
