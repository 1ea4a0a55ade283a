"""A cache of objects for tests of controllers and kubelets as pure functions."""

from __future__ import annotations

from typing import Any

from pilotage.api.decode import convert_object
from pilotage.api.meta import KubeObject
from pilotage.localcluster.controllers.plan import Plan
from pilotage.localcluster.objects import Cache, kind_of

NOW = 1_700_000_000.0
Tree = dict[str, Any]
versions = iter(range(1, 10**9))


def put(cache: Cache, resource: str, name: str, tree: Tree | None = None, **meta: Any) -> KubeObject:
    namespaced = resource not in ("nodes", "namespaces")
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(next(versions)), "generation": 1}
    metadata |= {"namespace": "default"} if namespaced else {}
    view = convert_object(kind_of(resource), {**(tree or {}), "metadata": metadata | meta})
    cache.told(resource, view)
    return view


def owner(kind: str, name: str, api_version: str = "apps/v1") -> list[Tree]:
    return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def pod(cache: Cache, name: str, *, node: str = "", ready: bool = False, phase: str = "Pending", **meta: Any):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}]
    status = {"phase": "Running" if ready else phase, "conditions": conditions if ready else []}
    return put(cache, "pods", name, {"spec": {"nodeName": node}, "status": status}, **meta)


TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def replica_set(cache: Cache, replicas: int, **meta: Any) -> KubeObject:
    spec = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE}
    return put(cache, "replicasets.apps", "web", {"spec": spec}, **meta)


def kinds_of(plan: Plan) -> list[str]:
    return [type(write).__name__ for write in plan.writes]
