"""The objects of a snapshot: typed views of whatever a dump or an API server gave.

Laws: nothing is lost silently: kinds that scheduling does not read are counted in `ignored`, objects that
cannot be decoded stay as `DecodeFailure`s; a manifest that no server has seen is completed as a server would.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from pilotage.api.decode import DecodeError, DecodeFailure, convert_object
from pilotage.api.kinds import Kind, by_kind, by_resource
from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.localcluster.rest.errors import RestError
from pilotage.localcluster.rest.pod_admission import SYSTEM_PRIORITY_CLASSES, complete_pod
from pilotage.runtime.watched import watched_kinds

Tree = dict[str, Any]
Item = tuple[Kind, KubeObject | DecodeFailure]

_EVENT_KIND: Final = "Event"
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_UNSEEN_VERSION: Final = ""


class SnapshotError(ValueError):
    """A snapshot that cannot be used; the text names source, object and fault."""


@dataclass(frozen=True)
class Snapshot:
    """`events`: Event objects as they came. `ignored`: kind -> number of objects that scheduling does not
    read. `notes`: what users should know about what is missing in it.
    """

    items: tuple[Item, ...]
    events: tuple[Mapping[str, Any], ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def pods(self) -> list[Pod]:
        return [view for _, view in self.items if isinstance(view, Pod)]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Raises SnapshotError for a pod that is there and cannot be decoded."""
        for kind, view in self.items:
            if isinstance(view, Pod):
                if (view.metadata.namespace, view.metadata.name) == (namespace, name):
                    return view
            elif kind.resource == "pods" and _is_unreadable(view, namespace, name):
                raise SnapshotError(f"pod {namespace}/{name} cannot be read: {view.error}")
        return None

    def events_about(self, namespace: str, name: str) -> int:
        """How many events tell about the pod, each counted as often as it was seen."""
        return sum(_times(event) for event in self.events if _subject(event) == (namespace, name))


def _is_unreadable(view: KubeObject | DecodeFailure, namespace: str, name: str) -> TypeGuard[DecodeFailure]:
    return isinstance(view, DecodeFailure) and (view.namespace, view.name) == (namespace, name)


def snapshot_of_trees(trees: Iterable[Tree], source: str) -> Snapshot:
    """Objects with apiVersion and kind, Lists taken apart already. Raises SnapshotError."""
    known: list[tuple[Kind, Tree]] = []
    events: list[Tree] = []
    ignored: Counter[str] = Counter()
    read = {kind.resource for kind in watched_kinds()}
    found = [copy.copy(tree) for tree in trees]
    classes = [tree for tree in found if tree.get("kind") == "PriorityClass"]
    for tree in found:
        kind = by_kind(str(tree.get("apiVersion", "")), str(tree.get("kind", "")))
        if tree.get("kind") == _EVENT_KIND:
            events.append(tree)
        elif kind is None or kind.resource not in read:
            ignored[str(tree.get("kind"))] += 1
        else:
            known.append((kind, tree))
    items = [(kind, _view(kind, tree, classes, source)) for kind, tree in known]
    return Snapshot(
        tuple(in_order([*items, *missing_namespaces(items)])), tuple(events), ignored, tuple(_notes(items))
    )


def _view(kind: Kind, tree: Tree, classes: Sequence[Tree], source: str) -> KubeObject | DecodeFailure:
    """The typed view; an object that no server has seen gets identity and defaults."""
    meta = dict(tree["metadata"])
    tree["metadata"] = meta
    if kind.namespaced and not meta.get("namespace"):
        meta["namespace"] = "default"
    if not meta.get("name"):
        meta["name"] = f"{meta.get('generateName') or kind.singular}0"
    is_unseen = not meta.get("uid")
    if is_unseen:
        meta["uid"] = f"{kind.resource}/{meta.get('namespace', '')}/{meta['name']}"
        meta.setdefault("resourceVersion", _UNSEEN_VERSION)
    try:
        view = convert_object(kind, tree)
        if kind.resource == "pods" and is_unseen:
            view = convert_object(kind, _completed(tree, classes, source))
    except DecodeError as problem:
        return problem.failure
    return view


def _completed(tree: Tree, classes: Sequence[Tree], source: str) -> Tree:
    completed = copy.deepcopy(tree)
    try:
        complete_pod(completed, [*classes, *SYSTEM_PRIORITY_CLASSES])
    except RestError as problem:
        name = f"{tree['metadata']['namespace']}/{tree['metadata']['name']}"
        raise SnapshotError(f"{source}: pod {name}: {problem}") from None
    except (TypeError, AttributeError, ValueError, KeyError):
        return tree  # a shape that no pod has: decoding names the field
    return completed


def missing_namespaces(items: Sequence[Item]) -> list[Item]:
    """A Namespace for each one that objects live in and that is not among them."""
    kind = by_resource("namespaces")
    assert kind is not None
    there = {view.metadata.name for of, view in items if of is kind and isinstance(view, KubeObject)}
    used = {_namespace(view) for _, view in items} - there - {""}
    return [(kind, convert_object(kind, _namespace_tree(name))) for name in sorted(used)]


def _namespace(view: KubeObject | DecodeFailure) -> str:
    return view.namespace if isinstance(view, DecodeFailure) else view.metadata.namespace


def _namespace_tree(name: str) -> Tree:
    metadata = {"name": name, "uid": f"namespaces//{name}", "labels": {_NAMESPACE_LABEL: name}}
    return {"metadata": metadata}


def in_order(items: Iterable[Item]) -> list[Item]:
    """Pods last, nodes before them, the order within a kind kept."""
    ranks = {"nodes": 1, "pods": 2}
    return sorted(items, key=lambda item: ranks.get(item[0].resource, 0))


def _notes(items: Sequence[Item]) -> Iterable[str]:
    """Kinds that pods in the dump need and that the dump has none of."""
    there = {kind.resource for kind, _ in items}
    pods = [view for _, view in items if isinstance(view, Pod)]
    if "nodes" not in there:
        yield "there are no nodes in it"
    has_claims = any(v.persistent_volume_claim for pod in pods for v in pod.spec.volumes or ())
    if has_claims and "persistentvolumeclaims" not in there:
        yield "pods in it use PersistentVolumeClaims, but it has none (kubectl get ...,pvc,pv,sc,csinodes)"
    if any(_selects_namespaces(pod) for pod in pods) and "namespaces" not in there:
        yield "pods in it select namespaces by label, but it has no Namespaces (kubectl get ...,ns)"


def _selects_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = [term for side in sides if side for term in side.required or ()]
    return any(term.namespace_selector is not None for term in terms)


def _subject(event: Mapping[str, Any]) -> tuple[str, str]:
    """(namespace, name) of the pod that an event of either API is about; ("", "") of another kind."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    if about.get("kind") != "Pod":
        return "", ""
    return about.get("namespace") or "", about.get("name") or ""


def _times(event: Mapping[str, Any]) -> int:
    series = event.get("series") or {}
    count = series.get("count") or event.get("count") or event.get("deprecatedCount") or 1
    return count if isinstance(count, int) else 1
