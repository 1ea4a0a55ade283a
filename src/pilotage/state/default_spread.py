"""The selector of default spread constraints: the workload that a pod belongs to.

Built from the Services that select the pod and from the ReplicationController, ReplicaSet or StatefulSet
that controls it; None when there is neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pilotage.api.meta import OwnerReference
from pilotage.api.others import ReplicaSet, ReplicationController, Service, StatefulSet
from pilotage.api.selectors import LabelMatcher, SelectorError, compile_label_selector, match_labels
from pilotage.state.objects import ObjectStore
from pilotage.state.podinfo import PodInfo

_CONTROLLERS: Final = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
}
_RESOURCES: Final = ("services", *_CONTROLLERS.values())
_MAX_ANSWERS: Final = 4096


class DefaultSelectors:
    """Answers are kept while no Service or controller changes."""

    __slots__ = ("_answers", "_objects", "_revisions")

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._revisions: tuple[int, ...] = ()
        self._answers: dict[tuple[str, frozenset[tuple[str, str]], str, str], LabelMatcher | None] = {}

    def selector(self, info: PodInfo) -> LabelMatcher | None:
        revisions = tuple(map(self._objects.revision, _RESOURCES))
        if revisions != self._revisions or len(self._answers) >= _MAX_ANSWERS:
            self._answers.clear()
            self._revisions = revisions
        owner = _controller(info)
        resource = _CONTROLLERS.get((owner.api_version, owner.kind), "") if owner is not None else ""
        name = owner.name if owner is not None else ""
        key = (info.namespace, frozenset(info.labels.items()), resource, name)
        if key not in self._answers:
            self._answers[key] = self._find(info, resource, name)
        return self._answers[key]

    def _find(self, info: PodInfo, resource: str, name: str) -> LabelMatcher | None:
        pairs = dict(pair for found in self._services(info) for pair in found.items())
        controller = self._objects.get(resource, name, info.namespace) if resource else None
        if isinstance(controller, ReplicationController):
            pairs.update(controller.spec.selector or {})  # where the two contradict, it decides
        selector = match_labels(pairs)
        if isinstance(controller, (ReplicaSet, StatefulSet)):
            selector = selector & _selector_of(controller)
        return None if selector.is_everything or selector.is_nothing else selector

    def _services(self, info: PodInfo) -> Iterator[Mapping[str, str]]:
        """Selectors of the Services that select the pod, by name."""
        services = self._objects.in_namespace("services", info.namespace)
        for service in sorted(services, key=lambda s: s.metadata.name):
            wanted = service.spec.selector if isinstance(service, Service) else None
            if wanted and all(info.labels.get(key) == value for key, value in wanted.items()):
                yield wanted


def _controller(info: PodInfo) -> OwnerReference | None:
    owners = info.pod.metadata.owner_references or ()
    return next((owner for owner in owners if owner.controller), None)


def _selector_of(controller: ReplicaSet | StatefulSet) -> LabelMatcher:
    """What the controller selects; everything where it does not say or that cannot be told."""
    selector = controller.spec.selector
    try:
        return match_labels(None) if selector is None else compile_label_selector(selector)
    except SelectorError:
        return match_labels(None)
