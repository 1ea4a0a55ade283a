"""The resize subresource of a Pod: resources change in place, everything else stays as it is stored.

Laws: of the body only `resources` and `resizePolicy` of containers and init containers and the pod-level
resources are read. Only cpu and memory move; nothing that was set can be removed; the QoS class stays; status
is never touched (the kubelet's business).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest.admission import check_form
from pilotage.localcluster.rest.errors import Cause, forbidden_field, invalid, invalid_value
from pilotage.localcluster.rest.object_validation import validate
from pilotage.localcluster.rest.pod_admission import qos_class
from pilotage.localcluster.rest.trees import child, children, made, numbered, text
from pilotage.localcluster.store import Tree

_RESIZABLE: Final = ("cpu", "memory")
_MIRROR: Final = "kubernetes.io/config.mirror"
_NO_SUPPORT: Final = "Pod running on node without support for resize"


def prepare_resize(kind: Kind, old: Tree, body: Tree) -> Tree:
    """The Pod that replaces `old`. Raises RestError 400 or 422."""
    check_form(kind, body)
    new = deepcopy(old)
    _take_resources(made(body, "spec"), made(new, "spec"))
    causes = list(_causes(old, new)) or validate(kind, new)
    if causes:
        raise invalid(kind, text(child(old, "metadata"), "name"), causes)
    return new


def _take_resources(source: Tree, target: Tree) -> None:
    for field in ("containers", "initContainers"):
        wanted = {text(one, "name"): one for one in children(source, field)}
        for container in children(target, field):
            given = wanted.get(text(container, "name"), {})
            for part in ("resources", "resizePolicy"):
                if part in given:
                    container[part] = given[part]
    if "resources" in source:
        target["resources"] = source["resources"]


def _causes(old: Tree, new: Tree) -> Iterator[Cause]:
    before, after = made(old, "spec"), made(new, "spec")
    if before == after:
        return
    yield from (forbidden_field("", why) for why in _refusals(old))
    for field in ("containers", "initContainers"):
        pairs = zip(numbered(before, field, "spec"), numbered(after, field, "spec"), strict=True)
        for (path, was), (_, now) in pairs:
            yield from _container(field, path, was, now)
    level_before, level_after = child(before, "resources"), child(after, "resources")
    if level_before != level_after:
        yield from _amounts(
            "spec.resources", level_before, level_after, "pod-level resources cannot be removed"
        )
    if qos_class(before) != qos_class(after):
        yield invalid_value("spec", qos_class(after), "Pod QOS Class may not change as a result of resizing")


def _container(field: str, path: str, was: Tree, now: Tree) -> Iterator[Cause]:
    before, after = child(was, "resources"), child(now, "resources")
    if before == after:
        return
    if field == "initContainers" and text(now, "restartPolicy") != "Always":
        why = "resources for non-sidecar init containers are immutable"
        yield forbidden_field(f"{path}.resources", why)
        return
    yield from _amounts(f"{path}.resources", before, after, "")


def _amounts(path: str, before: Tree | None, after: Tree | None, removed: str) -> Iterator[Cause]:
    for field in ("requests", "limits"):
        was, now = child(before, field) or {}, child(after, field) or {}
        where = f"{path}.{field}"
        if any(name not in now for name in was):
            yield forbidden_field(where, removed or f"resource {field} cannot be removed")
        if any(now[name] != was.get(name) for name in now if name not in _RESIZABLE):
            yield forbidden_field(where, "only cpu and memory resources are mutable")


def _refusals(pod: Tree) -> Iterator[str]:
    """Why a pod cannot be resized at all."""
    spec, metadata = made(pod, "spec"), child(pod, "metadata") or {}
    if _MIRROR in (child(metadata, "annotations") or {}):
        yield "static pods cannot be resized"
    if text(child(spec, "os"), "name") == "windows":
        yield "windows pods cannot be resized"
    if not _is_supported(pod):
        yield _NO_SUPPORT


def _is_supported(pod: Tree) -> bool:
    """A kubelet that resizes reports the resources of what runs."""
    for status in children(child(pod, "status"), "containerStatuses"):
        if child(child(status, "state"), "running") is not None:
            return child(status, "resources") is not None
    return True
