"""Objects as the scheduler keeps them: what nothing reads of them is left out, equal parts are one object.

Laws: only pods that are bound lose anything, since what is told of a pending pod goes outside as it came
(extenders read annotations); no decision depends on what is lost. Parts are shared because a hundred thousand
pods come from a few hundred templates; they are frozen, so nobody can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from pilotage.api.meta import Condition, KubeObject, ObjectMeta
from pilotage.api.nodes import ContainerImage, Node
from pilotage.api.pods import ContainerStatus, Pod, PodSpec, PodStatus, Volume

K = TypeVar("K", bound=KubeObject)

MAX_PARTS: Final = 1 << 14
MIRROR: Final = "kubernetes.io/config.mirror"
_UNREAD_CONDITIONS: Final = frozenset(
    ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
)
_SHARED_SPEC: Final = (
    "containers",
    "init_containers",
    "tolerations",
    "affinity",
    "topology_spread_constraints",
    "node_selector",
    "resources",
    "overhead",
    "scheduler_name",
    "priority_class_name",
    "preemption_policy",
)
_encode: Final = msgspec.msgpack.Encoder().encode


class Sharing:
    """One store of equal parts; it starts anew when full, and what was shared stays shared."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def slim(self, view: K) -> K:
        """The same object to every reader in the scheduler, in less memory."""
        if isinstance(view, Pod):
            return cast(K, self._pod(view)) if view.spec.node_name else view
        if isinstance(view, Node):
            return cast(K, self._node(view))
        return view

    def _one(self, key: Any, value: Any) -> Any:
        if len(self._parts) >= MAX_PARTS:
            self._parts.clear()
        return self._parts.setdefault(key, value)

    def _equal(self, *parts: Any) -> Any:
        """The tuple of parts, of which equal ones exist once."""
        return self._one(_encode(parts), parts)

    # Pods

    def _pod(self, pod: Pod) -> Pod:
        kind, api_version = self._equal(pod.kind, pod.api_version)
        return Pod(
            kind=kind,
            api_version=api_version,
            metadata=self._meta(pod.metadata),
            spec=self._spec(pod.spec),
            status=self._status(pod.status),
        )

    def _meta(self, meta: ObjectMeta) -> ObjectMeta:
        namespace, generate_name, labels, owners, finalizers = self._equal(
            meta.namespace, meta.generate_name, meta.labels, meta.owner_references, meta.finalizers
        )
        return msgspec.structs.replace(
            meta,
            namespace=namespace,
            generate_name=generate_name,
            labels=labels,
            annotations=_kept_annotations(meta.annotations),
            owner_references=owners,
            finalizers=finalizers,
        )

    def _spec(self, spec: PodSpec) -> PodSpec:
        parts = self._equal(*(getattr(spec, name) for name in _SHARED_SPEC))
        changed = dict(zip(_SHARED_SPEC, parts, strict=True))
        node_name = self._one(spec.node_name, spec.node_name)
        volumes = [volume for volume in spec.volumes or () if _has_source(volume)] or None
        return msgspec.structs.replace(spec, node_name=node_name, volumes=volumes, **changed)

    def _status(self, status: PodStatus) -> PodStatus:
        phase, containers, init, resources, allocated = self._equal(
            status.phase,
            _with_amounts(status.container_statuses),
            _with_amounts(status.init_container_statuses),
            status.resources,
            status.allocated_resources,
        )
        return PodStatus(
            phase=phase,
            conditions=_kept_conditions(status.conditions),
            nominated_node_name=status.nominated_node_name,
            start_time=status.start_time,
            container_statuses=containers,
            init_container_statuses=init,
            resources=resources,
            allocated_resources=allocated,
        )

    # Nodes

    def _node(self, node: Node) -> Node:
        if not node.status.images:
            return node
        images = [self._image(image) for image in node.status.images]
        return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=images))

    def _image(self, image: ContainerImage) -> ContainerImage:
        shared: ContainerImage = self._one((image.size_bytes, *(image.names or ())), image)
        return shared


def _kept_conditions(conditions: list[Condition] | None) -> list[Condition] | None:
    """Resizing and disruption; how a bound pod came up is nobody's question here."""
    return [c for c in conditions or () if c.type not in _UNREAD_CONDITIONS] or None


def _kept_annotations(annotations: Mapping[str, str] | None) -> dict[str, str] | None:
    if not annotations or MIRROR not in annotations:
        return None
    return {MIRROR: annotations[MIRROR]}


_SOURCES: Final = tuple(name for name in Volume.__struct_fields__ if name != "name")


def _has_source(volume: Volume) -> bool:
    """Whether it has a source that a plugin reads; the names of the others are generated, one per pod."""
    return any(getattr(volume, name) is not None for name in _SOURCES)


def _with_amounts(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
    kept = [s for s in statuses or () if s.resources is not None or s.allocated_resources is not None]
    return kept or None
